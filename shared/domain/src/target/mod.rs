//! The request of an `http` row: method, URL and body, compiled once.

mod map;
#[cfg(test)]
mod tests;

use url::Url;

use crate::arguments::{Bound, SlotUse, extra};
use crate::fault::{Fault, Reason, Result};
use crate::row::{Effect, word_enum};
use crate::template::{BadTemplate, BodyTemplate, PublicVariables, Scope, UrlTemplate, slot_use};

word_enum! {
    /// The method of a request.
    Method {
        /// Reads.
        Get = "GET",
        /// Reads the head.
        Head = "HEAD",
        /// Reads what is possible.
        Options = "OPTIONS",
        /// Writes.
        Post = "POST",
        /// Replaces.
        Put = "PUT",
        /// Changes a part.
        Patch = "PATCH",
        /// Removes.
        Delete = "DELETE",
    }
}

impl Method {
    /// What a request of this method may change.
    pub fn effect(self) -> Effect {
        match self {
            Method::Get | Method::Head | Method::Options => Effect::Read,
            Method::Post | Method::Put | Method::Patch => Effect::Write,
            Method::Delete => Effect::Destructive,
        }
    }

    /// Whether the row's own template is the body of an operation that declares none.
    fn takes_body(self) -> bool {
        match self {
            Method::Post | Method::Put | Method::Patch => true,
            Method::Get | Method::Head | Method::Options | Method::Delete => false,
        }
    }
}

/// A request without its credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// Where it goes; of the operation's origin, whatever the arguments.
    pub url: Url,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// The body's media type.
    pub media_type: Option<String>,
}

/// One request, or a map of operations of which the first argument names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPlan {
    operations: Vec<Operation>,
    is_map: bool,
    names: Vec<String>,
}

/// One request with slots.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Operation {
    name: String,
    method: Method,
    url: UrlTemplate,
    body: BodyTemplate,
    uses: SlotUse,
}

impl HttpPlan {
    /// Reads `METHOD url`, a bare URL (GET), or `target_map:{…}`; `template` is the row's body template and `names` its
    /// argument names by position. Whether the origin may be called is decided elsewhere.
    ///
    /// # Errors
    /// The first thing that does not compile, with its place.
    pub fn compile(
        target: &str,
        template: &str,
        names: &[String],
        variables: &PublicVariables,
    ) -> Result<HttpPlan, BadTemplate> {
        let scope = Scope::new(names, variables);
        let target = target.trim();
        let (operations, is_map) = match target.strip_prefix("target_map:") {
            Some(map) => (map::compile(map.trim(), template, &scope)?, true),
            None => (vec![Operation::compile("", target, template, &scope)?], false),
        };
        Ok(HttpPlan { operations, is_map, names: names.to_vec() })
    }

    /// The request for a call's arguments.
    ///
    /// # Errors
    /// `argument_refused`, `missing_argument`, `extra_arguments` or `request_too_large`.
    pub fn fill(&self, bound: &Bound) -> Result<HttpRequest> {
        let operation = self.operation(bound)?;
        let body = operation.body.fill(bound)?;
        let (body, media_type) = body.map(|body| (body.bytes, body.media_type)).unzip();
        Ok(HttpRequest { method: operation.method, url: operation.url.fill(bound)?, body, media_type })
    }

    /// The origins that requests go to, each once.
    pub fn origins(&self) -> Vec<String> {
        let mut origins: Vec<String> = Vec::new();
        for operation in &self.operations {
            if !origins.iter().any(|known| known == operation.url.origin()) {
                origins.push(operation.url.origin().to_owned());
            }
        }
        origins
    }

    /// The most that a request may change.
    pub fn effect(&self) -> Effect {
        self.operations.iter().map(|operation| operation.method.effect()).max().unwrap_or(Effect::Read)
    }

    /// The names that the first argument may have; none where the row is one request.
    pub fn operations(&self) -> Vec<&str> {
        let names = self.operations.iter().map(|operation| operation.name.as_str());
        if self.is_map { names.collect() } else { Vec::new() }
    }

    /// What the templates read. Of a map, only the call tells which operation's arguments are needed.
    pub fn slot_use(&self) -> SlotUse {
        let all = self.operations.iter().map(|operation| operation.uses.clone());
        let uses = all.fold(SlotUse::default(), SlotUse::merge);
        if !self.is_map {
            return uses;
        }
        SlotUse { highest: uses.highest.max(1), optional: true, ..uses }
    }

    fn operation(&self, bound: &Bound) -> Result<&Operation> {
        if !self.is_map {
            return self.operations.first().ok_or_else(|| Fault::new(Reason::Internal, "a plan without a request"));
        }
        let one = SlotUse { highest: 1, ..SlotUse::default() };
        one.require(bound, &self.names, false)?;
        let wanted = bound.position(1).map(|argument| argument.as_text()).unwrap_or_default();
        let Some(operation) = self.operations.iter().find(|operation| operation.name == wanted) else {
            let available = self.operations().join(", ");
            return Err(Fault::new(Reason::ArgumentRefused, "the row has no operation of this name")
                .detail("$1:unknown_operation")
                .fix(format!("the first argument is one of: {available}"))
                .with("argument", "$1")
                .with("rule", "unknown_operation")
                .with("available", available));
        };
        if !bound.checked {
            operation.require(bound, &self.names)?;
        }
        Ok(operation)
    }
}

impl Operation {
    fn compile(name: &str, line: &str, template: &str, scope: &Scope<'_>) -> Result<Operation, BadTemplate> {
        let (method, url) = split_line(line)?;
        Operation::of(name, method, url, template, scope)
    }

    fn of(name: &str, method: Method, url: &str, template: &str, scope: &Scope<'_>) -> Result<Operation, BadTemplate> {
        let url = UrlTemplate::compile(url, scope)?;
        let body = BodyTemplate::compile(template, scope)?;
        let uses = slot_use(url.slots().chain(body.slots()), scope);
        Ok(Operation { name: name.to_owned(), method, url, body, uses })
    }

    /// Without a schema an operation needs what it reads, and takes no more.
    fn require(&self, bound: &Bound, names: &[String]) -> Result<()> {
        self.uses.require(bound, names, false)?;
        let of_names = names.iter().rposition(|name| self.uses.named.contains(name)).map_or(0, |at| at + 1);
        let places = self.uses.highest.max(of_names).max(1);
        let given = bound.positional.iter().rposition(Option::is_some).map_or(0, |at| at + 1);
        if given > places && self.uses.rest_from.is_none() { Err(extra(places, given)) } else { Ok(()) }
    }
}

/// `METHOD url`, or a URL alone.
fn split_line(line: &str) -> Result<(Method, &str), BadTemplate> {
    let line = line.trim();
    if line.is_empty() {
        return Err(
            BadTemplate::new("target", "it is empty").fix("write `METHOD url`, as in `GET https://host/path/$1`")
        );
    }
    match line.split_once(char::is_whitespace) {
        Some((word, url)) if !word.contains("://") => Ok((method(word)?, url.trim_start())),
        Some(_) | None => Ok((Method::Get, line)),
    }
}

fn method(word: &str) -> Result<Method, BadTemplate> {
    if word.contains('$') {
        return Err(BadTemplate::new("method", "no slot may stand in the method").fix("write the method out"));
    }
    Method::parse(word).ok_or_else(|| {
        let known: Vec<&str> = Method::ALL.iter().map(|method| method.as_str()).collect();
        BadTemplate::new("method", format!("`{}` is no method", crate::template::shown(word)))
            .fix(format!("use one of: {}", known.join(", ")))
    })
}
