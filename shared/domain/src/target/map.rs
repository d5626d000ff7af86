//! `target_map:{op:{method,url,body?}}`: several requests in one row. The first argument names the operation, and in its
//! templates `$1` is the argument after that.

use serde_json::value::RawValue;

use super::{Operation, method, split_line};
use crate::json::{self, JsonKind};
use crate::template::{BadTemplate, Scope, shown};

/// The most operations of one row.
const MAX_OPERATIONS: usize = 64;
/// The longest name of an operation, in bytes.
const MAX_NAME: usize = 64;

/// Reads the map. An operation without a `body` has the row's template where its method carries a body.
pub(super) fn compile(text: &str, template: &str, scope: &Scope<'_>) -> Result<Vec<Operation>, BadTemplate> {
    let members = json::object(text).map_err(|problem| {
        BadTemplate::new("target_map", format!("it is no object of operations: {problem}"))
            .fix("write `target_map:{\"list\":{\"method\":\"GET\",\"url\":\"https://…\"}}`")
    })?;
    if members.is_empty() || members.len() > MAX_OPERATIONS {
        let why = format!("it has {} operations, not 1 to {MAX_OPERATIONS}", members.len());
        return Err(BadTemplate::new("target_map", why));
    }
    let inner = Scope {
        names: scope.names.get(1..).unwrap_or_default(),
        is_closed: scope.is_closed,
        variables: scope.variables,
        shift: scope.shift + 1,
    };
    members.iter().map(|(name, raw)| operation(name, raw, template, &inner)).collect()
}

fn operation(name: &str, raw: &RawValue, template: &str, scope: &Scope<'_>) -> Result<Operation, BadTemplate> {
    let is_name = !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(|c| c.is_control() || c == '|');
    if !is_name {
        return Err(BadTemplate::new("target_map", format!("`{}` is no name of an operation", shown(name))));
    }
    read(name, raw, template, scope).map_err(|bad| BadTemplate { place: format!("{} of `{name}`", bad.place), ..bad })
}

fn read(name: &str, raw: &RawValue, template: &str, scope: &Scope<'_>) -> Result<Operation, BadTemplate> {
    let (mut word, mut url, mut body) = (None, None, None);
    if json::kind(raw.get()) == JsonKind::String {
        let line = text(raw)?;
        let (method, url) = split_line(&line)?;
        let template = if method.takes_body() { template } else { "" };
        return Operation::of(name, method, url, template, scope);
    }
    let members = json::object(raw.get())
        .map_err(|_| BadTemplate::new("operation", "it is neither `\"METHOD url\"` nor an object"))?;
    for (member, value) in &members {
        match member.as_str() {
            "method" => word = Some(text(value)?),
            "url" => url = Some(text(value)?),
            "body" if json::kind(value.get()) == JsonKind::String => body = Some(text(value)?),
            "body" if json::kind(value.get()) == JsonKind::Null => {}
            "body" => body = Some(value.get().to_owned()),
            other => {
                return Err(BadTemplate::new("operation", format!("`{}` is no part of it", shown(other)))
                    .fix("an operation has `method`, `url` and `body`"));
            }
        }
    }
    let url = url.ok_or_else(|| BadTemplate::new("operation", "it has no `url`"))?;
    let method = method(word.as_deref().unwrap_or("GET").trim())?;
    let own = if method.takes_body() { template } else { "" };
    Operation::of(name, method, url.trim(), body.as_deref().unwrap_or(own), scope)
}

fn text(raw: &RawValue) -> Result<String, BadTemplate> {
    json::unescape(raw.get()).map_err(|_| BadTemplate::new("operation", "a part that must be a string is none"))
}
