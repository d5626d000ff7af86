use super::*;
use crate::json;
use proptest::prelude::*;

fn applied(text: &str) -> Applied {
    Auth::parse(text).unwrap().apply(|name| Ok::<_, ()>(format!("<{name}>"))).unwrap()
}

fn header(text: &str) -> String {
    let headers = applied(text).headers;
    headers.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("; ")
}

#[test]
fn each_form_adds_what_it_says() {
    assert_eq!(applied(""), Applied::default());
    assert_eq!(header("bearer:TOKEN"), "Authorization: Bearer <TOKEN>");
    assert_eq!(header("oauth:O"), "Authorization: Bearer <O>");
    assert_eq!(header("basic:KEY"), format!("Authorization: Basic {}", BASE64.encode(b"<KEY>:")));
    assert_eq!(header("basic:U:P"), format!("Authorization: Basic {}", BASE64.encode(b"<U>:<P>")));
    assert_eq!(
        header(r#"headers:{"Authorization":"Token $A-${B}c","Accept":"a/b","X-Cost":"$$5 $ $"}"#),
        "Authorization: Token <A>-<B>c; Accept: a/b; X-Cost: $5 $ $"
    );
    assert_eq!(applied("query:key=K").query, [("key".to_owned(), "<K>".to_owned())]);
    assert_eq!(applied("query:K").query, [("access_token".to_owned(), "<K>".to_owned())]);
    assert_eq!(format!("{:?}", applied("bearer:TOKEN")), r#"Applied { headers: ["Authorization"], query: [], .. }"#);
}

#[test]
fn names_and_forms_are_known_without_values() {
    let auth = Auth::parse(r#"headers:{"A":"$X $Y","B":"${X}"}"#).unwrap();
    assert_eq!((auth.form(), auth.secret_names()), ("headers", vec!["X".to_owned(), "Y".to_owned()]));
    assert_eq!(Auth::parse(" ").unwrap().form(), "none");
    assert!(Auth::parse("bearer:A").unwrap().apply(|_| Err::<String, _>("gone")).is_err());
}

#[test]
fn what_is_no_form_is_refused_and_never_repeated() {
    for (text, error) in [
        ("magic:NAME", "unknown_prefix:magic"),
        ("none", "unknown_prefix:none"),
        ("sk-live-51Habcdef", "unknown_prefix:?"),
        ("Bearer:NAME", "unknown_prefix:?"),
    ] {
        assert_eq!(Auth::parse(text).unwrap_err().to_string(), error);
    }
    let long = format!("bearer:{}", "A".repeat(129));
    for bad in [
        "bearer",
        "bearer:",
        "bearer:sk-live",
        "bearer:A:B",
        "bearer: A",
        "basic:",
        "basic:A:",
        "basic:A:B:C",
        "query:=A",
        "query:a b=A",
        "query:a=",
        "headers:",
        "headers:[]",
        "headers:{}",
        r#"headers:{"A":1}"#,
        r#"headers:{"A b":"x"}"#,
        r#"headers:{"Host":"x"}"#,
        r#"headers:{"transfer-Encoding":"x"}"#,
        r#"headers:{"A":"x\r\nB: y"}"#,
        r#"headers:{"A":"x","a":"y"}"#,
        r#"headers:{"A":"é"}"#,
        r#"headers:{"A":"${"}"#,
        r#"headers:{"A":"${a-b}"}"#,
        &long,
    ] {
        let error = Auth::parse(bad).unwrap_err();
        assert!(matches!(error, BadAuth::Malformed { .. }), "{bad}: {error}");
        assert!(!error.to_string().contains("sk-live"));
    }
}

proptest! {
    #[test]
    fn nothing_panics_and_names_are_names(
        text in r#"(bearer|basic|query|headers|oauth|x)?:?[A-Za-z$\{\}":=, \\u{e9}-]{0,30}"#,
        value in r"[$\{\}A-Z{}$ é]{0,20}",
    ) {
        for text in [text, format!("headers:{{\"A\":{}}}", json::quote(&value))] {
            if let Ok(auth) = Auth::parse(&text) {
                prop_assert!(auth.secret_names().iter().all(|name| is_secret_name(name)));
            }
        }
    }
}
