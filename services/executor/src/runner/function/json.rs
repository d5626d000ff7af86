//! Functions of JSON. What they give is written as it was in their arguments.

use std::collections::HashMap;

use callbook_domain::arguments::Argument;
use callbook_domain::json::{self, JsonKind, Problem};
use callbook_domain::outcome::{Failure, Output};

use super::path::{Found, Path};
use super::{Given, text_of};

/// The node of a JSONPath in a document, or the list of nodes where the path can name several. A document may have the
/// seed's `HTTP 200:` in front.
pub(in crate::runner) fn get(arguments: &[Argument]) -> Given {
    let path = Path::parse(text_of(arguments, 0))?;
    let text = without_status(text_of(arguments, 1)).trim();
    let value = json::value(text).map_err(|problem| bad_json("the document", &problem))?;
    match path.find(&value, text)? {
        Some(Found::One(node)) => Ok(Output::json(node)),
        Some(Found::Several(nodes)) => Ok(Output::json(format!("[{}]", nodes.join(",")))),
        None => Err(Failure::new("fn:no_match", "the document has nothing at this path")),
    }
}

/// Text behind `HTTP <status>:`.
fn without_status(text: &str) -> &str {
    let behind = text.strip_prefix("HTTP ").and_then(|rest| rest.split_once(':'));
    match behind {
        Some((status, body)) if status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit()) => body,
        Some(_) | None => text,
    }
}

/// Objects as one: each is a merge patch (RFC 7396) of those before it.
pub(super) fn merge(arguments: &[Argument]) -> Given {
    let mut merged: Option<Node> = None;
    for (at, argument) in arguments.iter().enumerate() {
        let next = Node::read(without_status(argument.as_text()))
            .map_err(|problem| bad_json(&format!("argument {}", at + 1), &problem))?;
        if let Node::Whole(_) = next {
            return Err(Failure::new("fn:not_json", format!("argument {} is not a JSON object", at + 1)));
        }
        merged = Some(match merged {
            None => next,
            Some(target) => target.patched(next),
        });
    }
    let mut text = String::new();
    merged.unwrap_or(Node::Object(Vec::new())).write(&mut text);
    Ok(Output::json(text))
}

fn bad_json(what: &str, problem: &Problem) -> Failure {
    Failure::new("fn:not_json", format!("{what} is not taken as JSON: {problem}"))
}

/// JSON as far as merging looks into it.
enum Node {
    /// Members in order.
    Object(Vec<(String, Node)>),
    /// Anything else, as it is written.
    Whole(String),
}

impl Node {
    fn read(text: &str) -> Result<Node, Problem> {
        let text = text.trim();
        json::check(text)?;
        if json::kind(text) != JsonKind::Object {
            return Ok(Node::Whole(text.to_owned()));
        }
        let members = json::object(text)?.into_iter();
        let members = members.map(|(name, member)| Ok((name, Node::read(member.get())?)));
        members.collect::<Result<_, Problem>>().map(Node::Object)
    }

    fn is_null(&self) -> bool {
        matches!(self, Node::Whole(text) if json::kind(text) == JsonKind::Null)
    }

    /// A change that is an object changes members, and makes an object of what is none; any other takes its place.
    fn patched(self, change: Node) -> Node {
        let Node::Object(changes) = change else { return change };
        let mut members: Vec<(String, Option<Node>)> = match self {
            Node::Object(members) => members.into_iter().map(|(name, member)| (name, Some(member))).collect(),
            Node::Whole(_) => Vec::new(),
        };
        let places: HashMap<String, usize> =
            members.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
        for (name, change) in changes {
            match (places.get(&name), change.is_null()) {
                (None, true) => {}
                (Some(at), true) => members[*at].1 = None,
                (Some(at), false) => members[*at].1 = members[*at].1.take().map(|old| old.patched(change)),
                // a change of nothing, so that the nulls in it go
                (None, false) => members.push((name, Some(Node::Object(Vec::new()).patched(change)))),
            }
        }
        Node::Object(members.into_iter().filter_map(|(name, member)| Some((name, member?))).collect())
    }

    fn write(&self, text: &mut String) {
        match self {
            Node::Whole(whole) => text.push_str(whole),
            Node::Object(members) => {
                text.push('{');
                for (at, (name, member)) in members.iter().enumerate() {
                    text.push_str(if at > 0 { "," } else { "" });
                    text.push_str(&json::quote(name));
                    text.push(':');
                    member.write(text);
                }
                text.push('}');
            }
        }
    }
}
