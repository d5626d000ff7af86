//! A fault as the body of an HTTP answer: the fields of Callbook and, beside them, the members of RFC 9457.

use callbook_domain::fault::{Fault, Reason};
use serde_json::{Map, Value, json};

use crate::status::statuses;

/// The media type of the body.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Status and body of a fault. `ran` is false where nothing was called, true where a call was fired and its result
/// could not be stored, and null where nobody knows (a connection that broke on the way).
pub fn http_body(fault: &Fault) -> (u16, Value) {
    let reason = fault.reason();
    let status = statuses(reason).http;
    let mut body = Map::new();
    body.insert("error".to_owned(), json!(fault.error_text()));
    body.insert("message".to_owned(), json!(fault.message()));
    body.insert("ran".to_owned(), ran(fault));
    if let Some(fix) = fault.how_to_fix() {
        body.insert("fix".to_owned(), json!(fix));
    }
    if reason == Reason::RegistryHygieneRefused {
        body.insert("how_to_fix".to_owned(), json!(fault.how_to_fix()));
        body.insert("state_changed".to_owned(), json!(false));
    }
    if let Some(ms) = fault.retry_after() {
        body.insert("retry_after_ms".to_owned(), json!(ms));
    }
    let name = reason.wire_name().to_ascii_lowercase();
    body.insert("type".to_owned(), json!(format!("urn:callbook:error:{name}")));
    body.insert("title".to_owned(), json!(name.replace('_', " ")));
    body.insert("status".to_owned(), json!(status));
    body.insert("detail".to_owned(), json!(fault.message()));
    for (name, value) in fault.metadata() {
        body.entry(*name).or_insert_with(|| variable(name, value));
    }
    (status, Value::Object(body))
}

fn ran(fault: &Fault) -> Value {
    match fault.metadata().iter().find(|(name, _)| *name == "fired") {
        Some((_, fired)) if fired == "true" => json!(true),
        Some((_, fired)) if fired == "unknown" => Value::Null,
        Some(_) | None => json!(fault.reason() == Reason::ResultNotStored),
    }
}

/// Variables are text, except the few that the interface shows as a list or as true and false.
fn variable(name: &str, value: &str) -> Value {
    let typed = matches!(name, "did_you_mean" | "received_params" | "recognized" | "fired");
    let typed = typed.then(|| serde_json::from_str(value).ok()).flatten();
    typed.unwrap_or_else(|| json!(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_write_says_how_to_fix_it_and_that_nothing_changed() {
        let fault = Fault::new(Reason::RegistryHygieneRefused, "the docstring does not say when to use the row")
            .detail("missing_when_to_use")
            .fix("add a line `# WHEN_TO_USE: …`")
            .with("key", "weather.today");
        let (status, body) = http_body(&fault);
        assert_eq!(status, 422);
        assert_eq!(
            body,
            json!({
                "error": "registry_hygiene_refused: missing_when_to_use",
                "message": "the docstring does not say when to use the row",
                "ran": false,
                "fix": "add a line `# WHEN_TO_USE: …`",
                "how_to_fix": "add a line `# WHEN_TO_USE: …`",
                "state_changed": false,
                "type": "urn:callbook:error:registry_hygiene_refused",
                "title": "registry hygiene refused",
                "status": 422,
                "detail": "the docstring does not say when to use the row",
                "key": "weather.today",
            })
        );
    }

    #[test]
    fn an_unknown_key_lists_what_was_perhaps_meant() {
        let fault = Fault::new(Reason::UnknownKey, "no row of this key")
            .with("attempted", "[1]")
            .with("did_you_mean", r#"["weather.today"]"#);
        let (status, body) = http_body(&fault);
        assert_eq!(status, 404);
        assert_eq!(body["attempted"], "[1]", "a key stays text, whatever it looks like");
        assert_eq!(body["did_you_mean"], json!(["weather.today"]));
    }

    #[test]
    fn a_call_that_was_fired_never_reads_as_not_run() {
        let stored = Fault::new(Reason::ResultNotStored, "fired").with("fired", "true").retry_after_ms(1500);
        let body = http_body(&stored).1;
        assert_eq!((&body["ran"], &body["fired"], &body["retry_after_ms"]), (&json!(true), &json!(true), &json!(1500)));
        let lost = Fault::new(Reason::ServiceUnavailable, "gone").with("fired", "unknown");
        assert_eq!(http_body(&lost).1["ran"], Value::Null);
    }

    #[test]
    fn a_variable_cannot_take_the_place_of_a_member() {
        let fault = Fault::new(Reason::Forbidden, "no").with("status", "200").with("ran", "true");
        let body = http_body(&fault).1;
        assert_eq!((&body["status"], &body["ran"]), (&json!(403), &json!(false)));
    }
}
