//! The label ARGS: the names and meanings of a row's positional arguments.

use std::collections::HashMap;

use super::collapsed;

/// What ARGS says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ArgsDoc {
    /// There is no ARGS label, or nothing after it.
    #[default]
    Absent,
    /// `none`: it takes no arguments.
    None,
    /// `see content`: the template tells.
    SeeContent,
    /// The arguments by position. No two have the same name.
    List(Vec<ArgDoc>),
}

/// One argument of ARGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgDoc {
    /// The words before `(` or `:`; `argN` where there are none.
    pub name: String,
    /// What stands in the parentheses or after the colon.
    pub meaning: Option<String>,
}

impl ArgsDoc {
    pub(super) fn read(value: &str) -> ArgsDoc {
        let head =
            value.trim_start_matches('(').split(['(', ')', '.', ':', ';', ',', '—']).next().unwrap_or_default().trim();
        if head.eq_ignore_ascii_case("none") && !value.contains('|') {
            return ArgsDoc::None;
        }
        if head.eq_ignore_ascii_case("see content") {
            return ArgsDoc::SeeContent;
        }
        let mut items: Vec<(Option<usize>, ArgDoc)> =
            arguments(value).into_iter().enumerate().map(|(at, item)| argument(at + 1, item)).collect();
        // `$2=b | $1=a` says positions itself.
        if items.iter().all(|(position, _)| position.is_some()) {
            items.sort_by_key(|(position, _)| *position);
        }
        let names = each_once(items.iter().map(|(_, item)| item.name.clone()));
        let items = names.into_iter().zip(items);
        ArgsDoc::List(items.map(|(name, (_, item))| ArgDoc { name, ..item }).collect())
    }
}

/// The names in order; one that was there already gets a number (`a`, `a_2`).
pub(crate) fn each_once(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut taken: HashMap<String, usize> = HashMap::new();
    let mut list = Vec::new();
    for wanted in names {
        let mut name = wanted.clone();
        while taken.contains_key(&name) {
            // The count goes on where it stopped, so that many equal names cost no more than others.
            let nth = taken.entry(wanted.clone()).or_insert(1);
            *nth += 1;
            name = format!("{wanted}_{nth}");
        }
        taken.insert(name.clone(), 1);
        list.push(name);
    }
    list
}

/// The items between pipes. A pipe in parentheses belongs to the meaning (`mode (fast|slow)`).
fn arguments(value: &str) -> Vec<&str> {
    let balanced = value.matches('(').count() == value.matches(')').count();
    let mut depth = 0i32;
    let items = value.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == '|' && (depth <= 0 || !balanced)
    });
    let mut items: Vec<&str> = items.map(str::trim).collect();
    while items.len() > 1 && items.last().is_some_and(|item| item.is_empty()) {
        items.pop();
    }
    items
}

fn argument(at: usize, item: &str) -> (Option<usize>, ArgDoc) {
    let (position, item) = position(item);
    let cut = item.find(['(', ':']).unwrap_or(item.len());
    let (name, rest) = item.split_at(cut);
    let rest = match rest.strip_prefix('(').and_then(|r| r.strip_suffix(')')) {
        Some(inner) if !inner.contains(['(', ')']) => inner,
        Some(_) | None => rest.strip_prefix(':').unwrap_or(rest),
    };
    let name = collapsed(name).unwrap_or_else(|| format!("arg{}", position.unwrap_or(at)));
    (position, ArgDoc { name, meaning: collapsed(rest) })
}

/// Takes `$N=`, `$N+=` or a lone `$N` off the front.
fn position(item: &str) -> (Option<usize>, &str) {
    let Some(rest) = item.strip_prefix('$') else { return (None, item) };
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let Ok(position) = rest[..digits].parse() else { return (None, item) };
    let rest = &rest[digits..];
    let rest = rest.strip_prefix('+').unwrap_or(rest).trim_start();
    (Some(position), rest.strip_prefix('=').unwrap_or(rest).trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(value: &str) -> Vec<(String, Option<String>)> {
        match ArgsDoc::read(value) {
            ArgsDoc::List(list) => list.into_iter().map(|arg| (arg.name, arg.meaning)).collect(),
            other => panic!("{other:?} is no list"),
        }
    }

    #[test]
    fn arguments_are_names_with_meanings() {
        let bare = |name: &str| (name.to_owned(), None);
        let with = |name: &str, meaning: &str| (name.to_owned(), Some(meaning.to_owned()));
        assert_eq!(list("$1=latitude | $2=longitude"), [bare("latitude"), bare("longitude")]);
        assert_eq!(list("key | json_body"), [bare("key"), bare("json_body")]);
        assert_eq!(list("a|b|"), [bare("a"), bare("b")]);
        assert_eq!(
            list("$1=mode (fast|slow) | $2+=rest: all: of it"),
            [with("mode", "fast|slow"), with("rest", "all: of it")]
        );
        assert_eq!(list("mode (fast|slow | b"), [with("mode", "(fast"), bare("slow"), bare("b")]);
        assert_eq!(list("$2=b | $1=a"), [bare("a"), bare("b")]);
        assert_eq!(list("$1: the city | | $3"), [with("arg1", "the city"), bare("arg2"), bare("arg3")]);
        assert_eq!(list("json body | x (one) two"), [bare("json body"), with("x", "(one) two")]);
        assert_eq!(list("a|a|a_2"), [bare("a"), bare("a_2"), bare("a_2_2")]);
    }

    #[test]
    fn no_arguments_are_said_with_a_word() {
        for none in ["none", "None.", "NONE (it reads the clock)", "(none)", "none, ever"] {
            assert_eq!(ArgsDoc::read(none), ArgsDoc::None, "{none}");
        }
        assert_eq!(ArgsDoc::read("see content"), ArgsDoc::SeeContent);
        assert_eq!(list("nonempty"), [("nonempty".to_owned(), None)]);
    }
}
