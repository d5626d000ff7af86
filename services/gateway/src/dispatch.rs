//! `/api/dispatch`: the four calls.

mod ask;
mod contract;
pub(crate) mod batch;
mod envelope;
pub(crate) mod invoke;
pub(crate) mod listener;
mod map;
mod open;
pub(crate) mod progress;
mod registry;
mod shape;
mod summary;

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use callbook_domain::fault::{Fault, Reason, Result};
use http::{HeaderMap, Method, Uri};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

pub(crate) use self::envelope::Failure;
pub(crate) use self::map::book;
pub(crate) use self::shape::Shape;
pub(crate) use self::summary::{Match, Untrusted};
use crate::answer::{Answer, Effect, Format, Refused, Risk, RowType, json};
use crate::app::App;
use crate::door::Shared;
use crate::receipt;
use crate::request::{Call, Limit, Query, names, recognize};

/// The verbs and the parameters that go with each.
const VERBS: &[(&str, &[&str])] = &[
    ("ask", &["ask", "limit", "cursor", "category", "type", "effect", "risk", "namespace", "share"]),
    ("key", &["key", "format", "share"]),
    ("registry", &["registry", "category", "limit", "cursor"]),
    ("map", &["map", "limit", "cursor"]),
    ("confirm", &["confirm", "share"]),
    ("receipt", &["receipt", "share"]),
    ("invoke", &["invoke", "body", "args", "idempotency_key", "deadline_ms", "share"]),
];

/// One verb, and the parameters that go with it.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Parameters {
    /// A question in plain words: gives the rows that fit, best first.
    #[param(nullable = false)]
    ask: Option<String>,
    /// Key of a row: gives its contract.
    #[param(nullable = false)]
    key: Option<String>,
    /// `1`: gives all enabled rows without test-shaped keys.
    #[param(nullable = false)]
    registry: Option<String>,
    /// `1`: gives totals and shelves. A category or namespace: gives its rows.
    #[param(nullable = false)]
    map: Option<String>,
    /// Id of an invocation: gives the public confirmation.
    #[param(nullable = false)]
    confirm: Option<String>,
    /// Id of an invocation: gives the full receipt to whoever may see it.
    #[param(nullable = false)]
    receipt: Option<String>,
    /// Key of a row: runs it, as the POST does. Only with `share`.
    #[param(nullable = false)]
    invoke: Option<String>,
    /// Arguments of `invoke` as text. Not beside `args`.
    #[param(nullable = false)]
    body: Option<String>,
    /// Arguments of `invoke` as a JSON object or list. Not beside `body`.
    #[param(nullable = false)]
    args: Option<String>,
    /// Name of the call of `invoke`: the address opened again gives the same answer and runs nothing.
    #[param(nullable = false, min_length = 1, max_length = 255)]
    idempotency_key: Option<String>,
    /// How long the caller of `invoke` waits, in milliseconds.
    #[param(nullable = false, minimum = 1)]
    deadline_ms: Option<u64>,
    /// A token that was minted for addresses, for `invoke`, `ask`, `key`, `confirm` and `receipt`; not beside another
    /// credential. Answers to it are not kept and give no referrer.
    #[param(nullable = false)]
    #[expect(dead_code, reason = "the door has taken its value, and only its name is left")]
    share: Option<String>,
    /// Entries a page, from 1.
    #[param(nullable = false, inline)]
    limit: Option<Limit>,
    /// `next_cursor` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
    /// Only rows of this category.
    #[param(nullable = false)]
    category: Option<String>,
    /// Only rows of this type.
    #[param(nullable = false)]
    #[serde(rename = "type")]
    row_type: Option<RowType>,
    /// Only rows of this effect.
    #[param(nullable = false)]
    effect: Option<Effect>,
    /// Only rows of this risk.
    #[param(nullable = false)]
    risk: Option<Risk>,
    /// Only rows under this namespace.
    #[param(nullable = false)]
    namespace: Option<String>,
    /// Form of the contract. Absent: JSON.
    #[param(nullable = false, inline)]
    format: Option<Format>,
}

impl Parameters {
    fn page_size(&self) -> u32 {
        Limit::page_size(self.limit)
    }
}

/// Reads the book by one verb: `ask`, `key`, `registry`, `map`, `confirm` or `receipt`; without a verb it says what
/// this is. None of them changes anything. `invoke` runs a row that reads, for models that can only open an address, and
/// takes no other credential than `share`.
#[utoipa::path(
    get, path = "/api/dispatch", tag = "loop", operation_id = "read_book", params(Parameters),
    responses(
        (status = 200, description = "The answer of the verb", content(
            (View = "application/json"), (String = "text/markdown"), (String = "text/x-typescript")
        )),
        (status = 304, description = "The contract is still the one of `If-None-Match`"),
        Refused
    )
)]
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    call: Call,
    method: Method,
    uri: Uri,
    shared: Option<Extension<Shared>>,
    headers: HeaderMap,
) -> Answer {
    let verb = verb(&names(&uri)?)?;
    let asked = Query::<Parameters>::read(&uri)?;
    match verb {
        None => index(),
        Some("ask") => ask::ask(&app, &call, asked).await,
        Some("key") => contract::contract(&app, &call, asked, &headers).await,
        Some("registry") => registry::registry(&app, &call, asked).await,
        Some("map") => map::map(&app, &call, asked).await,
        Some("confirm") => receipt::confirm(&app, &call, &asked.confirm.unwrap_or_default()).await,
        Some("invoke") => {
            open::check(&method, shared.is_some(), &headers)?;
            open::invoke(&app, call, asked).await
        }
        Some(_) => receipt::full(&app, &call, &asked.receipt.unwrap_or_default()).await,
    }
}

/// The one verb of a query, and nothing beside it that does not go with it.
fn verb(received: &[String]) -> Result<Option<&'static str>> {
    let mut verbs = VERBS.iter().filter(|(verb, _)| received.iter().any(|name| name == verb));
    match (verbs.next(), verbs.next()) {
        (Some((first, _)), Some((second, _))) => {
            Err(Fault::new(Reason::AmbiguousRequest, format!("the query has two verbs, `{first}` and `{second}`"))
                .fix("send one verb a request")
                .with("received_params", json!(received).to_string()))
        }
        (Some((verb, known)), None) => recognize(received, known).map(|()| Some(*verb)),
        (None, _) => {
            let known: Vec<&str> = VERBS.iter().map(|(verb, _)| *verb).collect();
            recognize(received, &known).map(|()| None)
        }
    }
}

/// What the GET gives, by verb.
#[derive(ToSchema)]
#[schema(as = DispatchView)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes in the API document what the verbs answer")]
enum View {
    Index(Index),
    Ask(ask::Answered),
    Contract(contract::Contract),
    Registry(registry::Page),
    Map(map::Book),
    Shelf(map::ShelfPage),
    Confirm(receipt::Confirmation),
    Receipt(Box<receipt::Receipt>),
    Invoke(envelope::Invocation),
}

/// What this is.
#[derive(Serialize, ToSchema)]
struct Index {
    name: &'static str,
    version: &'static str,
    r#loop: [Step; 4],
    docs: &'static str,
    openapi: &'static str,
}

/// One of the four calls.
#[derive(Serialize, ToSchema)]
struct Step {
    step: &'static str,
    method: &'static str,
    url: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'static str>,
}

fn index() -> Answer {
    let get = |step, url| Step { step, method: "GET", url, body: None };
    let body = Some(r#"{"key":"{key}","body":"{arguments}"}"#);
    json(&Index {
        name: "callbook",
        version: env!("CARGO_PKG_VERSION"),
        r#loop: [
            get("ask", "/api/dispatch?ask={question}"),
            get("contract", "/api/dispatch?key={key}"),
            Step { step: "invoke", method: "POST", url: "/api/dispatch", body },
            get("receipt", "/api/dispatch?confirm={invocation_id}"),
        ],
        docs: "/llms.txt",
        openapi: "/openapi.json",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> Result<Option<&'static str>> {
        verb(&names(&format!("/api/dispatch?{query}").parse().unwrap()).unwrap())
    }

    #[test]
    fn one_verb_is_one_answer() {
        assert_eq!(of(""), Ok(None));
        assert_eq!(of("pretty=1"), Ok(None));
        assert_eq!(of("ask=what+time&limit=3"), Ok(Some("ask")));
        assert_eq!(of("key=NOW&format=markdown"), Ok(Some("key")));
        assert_eq!(of("invoke=NOW&body=a&share"), Ok(Some("invoke")));
    }

    #[test]
    fn two_verbs_are_ambiguous() {
        let fault = of("ask=x&key=NOW").unwrap_err();
        assert_eq!(fault.reason(), Reason::AmbiguousRequest);
        assert_eq!(fault.metadata(), [("received_params", r#"["ask","key"]"#.to_owned())]);
    }

    #[test]
    fn what_does_not_go_with_the_verb_is_not_recognized() {
        for bad in
            ["limit=3", "key=NOW&limit=3", "confirm=inv_1&format=json", "asked=x", "map=1&share", "share", "body=a"]
        {
            assert_eq!(of(bad).unwrap_err().reason(), Reason::UnrecognizedRequest, "{bad}");
        }
    }

    #[tokio::test]
    async fn the_index_is_small() {
        let body = axum::body::to_bytes(index().unwrap().into_body(), 1_500).await.unwrap();
        assert!(body.starts_with(br#"{"name":"callbook","version":""#));
    }
}
