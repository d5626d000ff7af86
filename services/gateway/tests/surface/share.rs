//! A token in an address: what fires, what does not, and that its text goes no further than it must.

use axum::body::Body;
use bytes::Bytes;
use callbook_wire::executor::v1 as executor;
use callbook_wire::executor::v1::arguments::Form;
use callbook_wire::receipt::v1 as receipt;
use callbook_wire::resolver::v1 as resolver;

use crate::client::{Answer, gateway, get, send};
use crate::fake::Fake;

/// Has the form of a token; whether it is one, services decide.
const TOKEN: &str = "e30.e30.AAAA";
const ID: &str = "inv_01JH0000000000000000000000";

/// A fake that runs everything.
fn willing() -> Fake {
    let fake = Fake::default();
    let proof = executor::Proof { invocation_id: ID.into(), ok: true, ..executor::Proof::default() };
    let output = Bytes::from_static(b"1");
    let answer = executor::Answer { ok: true, ran: true, output, proof: Some(proof), ..executor::Answer::default() };
    fake.say("ExecutorService/Invoke", &executor::InvokeResponse { answer: Some(answer) });
    fake.say("ResolverService/Ask", &resolver::AskResponse::default());
    fake.say("ReceiptService/Confirm", &receipt::ConfirmResponse::default());
    fake
}

/// Nothing keeps the answer, takes the address along, or repeats the token.
fn assert_quiet(answer: &Answer) {
    assert_eq!((answer.header("cache-control"), answer.header("referrer-policy")), ("no-store", "no-referrer"));
    assert!(!answer.text.contains(TOKEN) && !format!("{:?}", answer.headers).contains(TOKEN), "{}", answer.text);
}

/// Method, path, one header, and how it is refused.
type Try<'a> = (&'a str, &'a str, (&'a str, &'a str), u16, &'a str);

#[tokio::test]
async fn an_opened_address_runs_the_row_as_a_post_does() {
    let fake = willing();
    let gateway = gateway(&fake).await;
    let address = format!("/api/dispatch?invoke=TEMPERATURE&body=37.77%7C-122.42&share={TOKEN}&idempotency_key=once");
    let done = get(&gateway, &address).await;
    assert_eq!((done.status.as_u16(), &done.json()["ran"]), (200, &true.into()), "{}", done.text);
    assert_quiet(&done);
    let request: executor::InvokeRequest = fake.last();
    assert_eq!((request.key.as_str(), request.idempotency_key.as_deref()), ("TEMPERATURE", Some("once")));
    assert_eq!(request.arguments.unwrap().form, Some(Form::Body("37.77|-122.42".into())));
    assert_eq!(fake.asked().last().unwrap().headers["authorization"], format!("Url {TOKEN}"));
    let typed = get(&gateway, &format!("/api/dispatch?invoke=K&args=%7B%22n%22%3A1.10%7D&share={TOKEN}")).await;
    assert_eq!(typed.status, 200, "{}", typed.text);
    let request: executor::InvokeRequest = fake.last();
    assert_eq!(request.arguments.unwrap().form, Some(Form::ArgsJson(Bytes::from_static(b"{\"n\":1.10}"))));
}

#[tokio::test]
async fn reading_goes_on_with_the_same_token() {
    let fake = willing();
    let gateway = gateway(&fake).await;
    for verb in ["ask=warm".to_owned(), format!("confirm={ID}")] {
        let answer = get(&gateway, &format!("/api/dispatch?{verb}&share={TOKEN}")).await;
        assert_eq!(answer.status, 200, "{verb}: {}", answer.text);
        assert_quiet(&answer);
        assert_eq!(fake.asked().last().unwrap().headers["authorization"], format!("Url {TOKEN}"));
    }
    for other in
        ["/api/dispatch?map=1", "/api/dispatch?registry=1", "/api/directory?limit=1", "/api/tokens/explain?key=K"]
    {
        let asked = fake.asked().len();
        let answer = get(&gateway, &format!("{other}&share={TOKEN}")).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]), (400, &"unrecognized_request".into()), "{other}");
        assert!(answer.json()["received_params"].as_array().unwrap().contains(&"share".into()));
        assert_quiet(&answer);
        assert_eq!(fake.asked().len(), asked);
    }
}

#[tokio::test]
async fn nothing_fires_for_a_head_a_prefetch_a_key_or_two_credentials() {
    let fake = willing();
    let gateway = gateway(&fake).await;
    let with = format!("/api/dispatch?invoke=K&share={TOKEN}");
    let key = "/api/dispatch?invoke=K&share=owner-key-0123456789".to_owned();
    let none = "/api/dispatch?invoke=K".to_owned();
    let twice = format!("{with}&share={TOKEN}");
    let tries: [Try<'_>; 10] = [
        ("HEAD", &with, ("accept", "*/*"), 405, ""),
        ("GET", &with, ("sec-purpose", "prefetch;prerender"), 400, "invalid_request"),
        ("GET", &with, ("purpose", "prefetch"), 400, "invalid_request"),
        ("GET", &with, ("authorization", "Bearer k"), 400, "ambiguous_request"),
        ("GET", &with, ("x-terminal-key", "k"), 400, "ambiguous_request"),
        ("GET", &key, ("accept", "*/*"), 401, "unauthorized"),
        ("GET", &twice, ("accept", "*/*"), 400, "invalid_request"),
        ("GET", &none, ("authorization", "Bearer k"), 400, "invalid_request"),
        ("GET", &none, ("authorization", "Url e30.e30.AAAA"), 400, "invalid_request"),
        ("POST", &with, ("content-type", "application/json"), 400, "unrecognized_request"),
    ];
    for (method, address, header, status, error) in tries {
        let answer = send(&gateway, method, address, &[header], Body::empty()).await;
        assert_eq!(answer.status, status, "{method} {address} {header:?}: {}", answer.text);
        assert!(method == "HEAD" || answer.json()["error"] == error, "{address} {header:?}: {}", answer.text);
        assert!(!answer.text.contains("owner-key") && !answer.text.contains(TOKEN), "{}", answer.text);
        if address.contains("share") {
            assert_quiet(&answer);
        }
    }
    assert!(fake.asked().is_empty());
}
