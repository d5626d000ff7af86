//! The public receipt as a page: one file, no script, reads on a phone and on paper.

use std::sync::LazyLock;

use axum::response::Response;
use data_encoding::BASE64;
use http::{HeaderValue, StatusCode, header};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::Confirmation;
use crate::answer::{Mode, Status, Word, address, media};

const STYLE: &str = include_str!("page.css");

/// Nothing may be loaded, sent or framed; the one style is named by its hash.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = BASE64.encode(&Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).expect("the policy is ASCII")
});

/// The page of a receipt.
pub(super) fn receipt(receipt: &Confirmation, base: &str) -> Response {
    let id = &receipt.invocation_id;
    let (mark, sentence) = words(receipt.status);
    let body = html! {
        p class="mark" { (mark) }
        h1 { (receipt.key) }
        p { (sentence) }
        dl {
            (entry("Invocation", id))
            (entry("Status", receipt.status.map_or("not known here", Status::as_str)))
            (time("Started", receipt.started_at.as_deref()))
            (time("Ended", receipt.ended_at.as_deref()))
            (entry("Contract", &receipt.contract_hash))
            @if let Some(repairs) = &receipt.repairs { (other("Corrects", repairs)) }
            @if let Some(replay_of) = &receipt.replay_of { (other("Runs again", replay_of)) }
            @if receipt.mode == Some(Mode::Read) { (entry("Mode", "read: written after the call")) }
        }
        h2 { "Commitments" }
        p { "Each is the SHA-256 of a secret salt and the bytes. It proves the bytes to whoever holds both, and tells nobody else anything." }
        dl {
            @for (name, made) in [
                ("Input", &receipt.commitments.input), ("Output", &receipt.commitments.output),
                ("Request", &receipt.commitments.request), ("Response", &receipt.commitments.response),
            ] {
                @if let Some(made) = made { (entry(name, made)) }
            }
        }
        p class="foot" { a href=(address(base, format!("/api/dispatch?confirm={id}"))) { "This receipt as JSON" } }
    };
    page(StatusCode::OK, &format!("{mark}: {}", receipt.key), &body)
}

/// The page where there is no receipt.
pub(super) fn unknown() -> Response {
    let body = html! {
        p class="mark" { "Not confirmed" }
        h1 { "No receipt of this id" }
        p { "The engine has no invocation of this id on record. Check that the address is whole." }
    };
    page(StatusCode::NOT_FOUND, "Not confirmed", &body)
}

fn page(status: StatusCode, title: &str, body: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                meta name="color-scheme" content="light dark";
                title { (title) " · Callbook receipt" }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    };
    let mut response = media(status, "text/html; charset=utf-8", page.into_string());
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn words(status: Option<Status>) -> (&'static str, &'static str) {
    match status {
        Some(Status::ProvenMaterialResult) => ("Confirmed", "It ran, succeeded and gave a result."),
        Some(Status::ProvenAttemptNoMaterialResult) => ("Confirmed attempt", "It ran, and failed or gave nothing."),
        Some(Status::Pending) => ("Pending", "It is on record and has no result yet."),
        Some(Status::Unknown) => {
            ("Unknown", "The engine stopped between the call and its result. Whether the call went out is not known.")
        }
        Some(Status::Held) => ("Held", "It waits for a person's decision and has not run."),
        Some(Status::Denied) => ("Denied", "It was refused and did not run."),
        None => ("On record", "How it stands is not known here."),
    }
}

fn entry(name: &str, value: &str) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

fn time(name: &str, at: Option<&str>) -> Markup {
    html! { @if let Some(at) = at { div { dt { (name) } dd { time datetime=(at) { (at) } } } } }
}

fn other(name: &str, id: &str) -> Markup {
    html! { div { dt { (name) } dd { a href=(format!("/receipt/{id}")) { (id) } } } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::wire;

    #[tokio::test]
    async fn the_page_escapes_what_it_shows_and_loads_nothing() {
        let found = wire::ConfirmResponse {
            key: "<script>alert(1)</script>".into(),
            invocation_id: "inv_1".into(),
            status: 1,
            confirmed: true,
            ..wire::ConfirmResponse::default()
        };
        let response = receipt(&Confirmation::read(found), "http://h");
        let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        let page = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let page = std::str::from_utf8(&page).unwrap();
        assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script"));
        assert!(page.contains("Confirmed") && !page.contains("src=") && !page.contains("style="));
    }
}
