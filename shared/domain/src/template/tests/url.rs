use proptest::prelude::*;

use super::super::url::UrlTemplate;
use super::super::*;
use super::{names, texts, typed, variables};
use crate::arguments::{Bound, Sent, Signature, argument_names};
use crate::schema::Schema;

fn compile(text: &str, labels: &str) -> Result<UrlTemplate, BadTemplate> {
    UrlTemplate::compile(text, &Scope::new(&names(labels), &variables()))
}

fn fill(text: &str, labels: &str, bound: &Bound) -> String {
    match compile(text, labels).unwrap().fill(bound) {
        Ok(url) => url.to_string(),
        Err(fault) => fault.error_text(),
    }
}

fn refuses(cases: &[(&str, &str)]) {
    for (url, place) in cases {
        let bad = compile(url, "").unwrap_err();
        assert_eq!(bad.place, *place, "{url}: {bad}");
        assert!(bad.fix.is_some(), "{url}");
    }
}

#[test]
fn a_refusal_of_an_origin_names_its_place() {
    refuses(&[
        ("$1://a.example/x", "scheme"),
        ("http$1://a.example/x", "scheme"),
        ("ftp://a.example/x", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("/relative/$1", "scheme"),
        ("//a.example/x", "scheme"),
        ("https://$1/x", "host"),
        ("https://$1.a.example/x", "host"),
        ("https://a.example$1", "host"),
        ("https://$REGION.a.example/x", "host"),
        ("https:///x", "host"),
        ("https://a b/x", "host"),
        ("https://%61.example/x", "host"),
        ("https://a.example\\@b.example/x", "userinfo"),
        ("https://a.example\\b/x", "host"),
        ("https://[::1/x", "host"),
        ("https://a.example:$1/x", "port"),
        ("https://a.example:99999/x", "host"),
        ("https://u:p@a.example/x", "userinfo"),
        ("https://$1@a.example/x", "userinfo"),
    ]);
}

#[test]
fn a_refusal_of_path_or_query_names_its_place() {
    refuses(&[
        ("https://a.example/x#$1", "fragment"),
        ("https://a.example/x#y", "fragment"),
        ("https://a.example/x?a=1#y", "fragment"),
        ("https://a.example/a b", "URL"),
        ("https://a.example/a\nb", "URL"),
        ("https://a.example/a\u{1}b", "URL"),
        ("https://a.example/a\\b", "URL"),
        ("https://a.example/?q=a\\b", "URL"),
        ("https://a.example/%zz", "path"),
        ("https://a.example/%$1", "path"),
        ("https://a.example/%2$1", "path"),
        ("https://a.example/a/../b", "path"),
        ("https://a.example/a/%2e%2E/b", "path"),
        ("https://a.example/a/.", "path"),
        ("https://a.example/$NAME", "path"),
        ("https://a.example/${name}", "path"),
        ("https://a.example/x?$1=2", "query name"),
        ("https://a.example/x?$1", "query name"),
        ("https://a.example/x?a=1&b$1=2", "query name"),
        ("https://a.example/x?a=%$1", "query value"),
        ("https://a.example/x?a=$NAME", "query value"),
    ]);
}

#[test]
fn an_argument_stays_in_its_segment() {
    let url = "https://api.example.com/repos/$1/x-$2.json";
    assert_eq!(
        fill(url, "", &texts(&["a b", "ü+%2F&?#"])),
        "https://api.example.com/repos/a%20b/x-%C3%BC%2B%252F%26%3F%23.json"
    );
    assert_eq!(
        fill(url, "", &texts(&["@:$,;=!", "~-._"])),
        "https://api.example.com/repos/%40%3A%24%2C%3B%3D%21/x-~-._.json"
    );
    for (argument, rule) in [
        ("", "empty_segment"),
        (".", "dot_segment"),
        ("..", "dot_segment"),
        ("a/b", "path_separator"),
        ("../x", "path_separator"),
        ("a\\b", "path_separator"),
        ("a\nb", "control_character"),
        ("a\0", "control_character"),
        ("\u{85}", "control_character"),
    ] {
        assert_eq!(fill(url, "", &texts(&[argument, "x"])), format!("argument_refused:$1:{rule}"), "{argument:?}");
    }
    assert_eq!(fill("https://a.example/%2e$1", "", &texts(&["."])), "argument_refused:$1:dot_segment");
    assert_eq!(fill("https://a.example/.$1", "", &texts(&["."])), "argument_refused:$1:dot_segment");
    assert_eq!(fill("https://a.example/.$1", "", &texts(&[".."])), "https://a.example/...");
    assert_eq!(fill("https://a.example/${id}", "id", &typed(&[("id", "null")])), "argument_refused:id:null");
    assert_eq!(fill("https://a.example/${id}", "id", &typed(&[("id", "-")])), "missing_argument:id");
    assert_eq!(
        fill("https://a.example/${id}", "id", &typed(&[("id", r#"["a","b c"]"#)])),
        "https://a.example/a%2Cb%20c"
    );
    assert_eq!(fill("https://a.example/$1", "", &texts(&[&"x".repeat(17_000)])), "request_too_large");
}

#[test]
fn the_rest_may_span_segments_each_by_the_rule() {
    let url = "https://api.example.com/repos/$1+/issues";
    assert_eq!(fill(url, "", &texts(&["owner/na me"])), "https://api.example.com/repos/owner/na%20me/issues");
    assert_eq!(fill(url, "", &texts(&["a", "b"])), "https://api.example.com/repos/a%7Cb/issues");
    for (argument, rule) in [
        ("a//b", "empty_segment"),
        ("/a", "empty_segment"),
        ("a/", "empty_segment"),
        ("a/../../b", "dot_segment"),
        ("./a", "dot_segment"),
        ("a\\b", "path_separator"),
    ] {
        assert_eq!(fill(url, "", &texts(&[argument])), format!("argument_refused:$1:{rule}"), "{argument:?}");
    }
    assert_eq!(fill("https://a.example/${+path}", "path", &typed(&[("path", r#""a/b""#)])), "https://a.example/a/b");
    assert_eq!(
        fill("https://a.example/${path}", "path", &typed(&[("path", r#""a/b""#)])),
        "argument_refused:path:path_separator"
    );
}

#[test]
fn the_url_that_was_written_is_kept() {
    for url in [
        "https://api.open-meteo.com/v1/forecast?latitude=1&longitude=2&current=temperature_2m",
        "https://a.example/",
        "https://a.example:8443/a%2Fb/%7Bid%7D/c;d=e,f?x&y=&&z=%zz&w=a+b&q=%24",
        "https://a.example/a//b/",
        "http://127.0.0.1:8080/x?a[]=1",
    ] {
        assert_eq!(fill(url, "", &Bound::default()), url);
    }
    assert_eq!(fill("HTTPS://A.Example:443", "", &Bound::default()), "https://a.example/");
    assert_eq!(fill("https://a.example?x=1", "", &Bound::default()), "https://a.example/?x=1");
    assert_eq!(fill("https://a.example/ä/{x}|y", "", &Bound::default()), "https://a.example/%C3%A4/%7Bx%7D%7Cy");
    assert_eq!(fill("https://a.example/$$1/$.x?q=$$1", "", &Bound::default()), "https://a.example/$1/$.x?q=$1");
    assert_eq!(compile("https://BÜCHER.example:443/x", "").unwrap().origin(), "https://xn--bcher-kva.example");
    assert_eq!(fill("https://a.example/$REGION?n=$LIMIT", "", &Bound::default()), "https://a.example/eu-1?n=50");
}

#[test]
fn query_values_are_encoded_and_absent_ones_drop_their_pair() {
    let url = "https://a.example/x?a=$1&fixed=1&b=<${b}>";
    assert_eq!(
        fill(url, "a b", &typed(&[("a", r#""1&c=2 +'ü""#), ("b", "true")])),
        "https://a.example/x?a=1%26c%3D2%20%2B%27%C3%BC&fixed=1&b=%3Ctrue%3E"
    );
    assert_eq!(fill(url, "a b", &typed(&[("a", "-"), ("b", "-")])), "https://a.example/x?fixed=1");
    assert_eq!(fill(url, "a b", &typed(&[("a", "null"), ("b", "null")])), "https://a.example/x?fixed=1");
    assert_eq!(fill("https://a.example/x?a=$1", "a", &typed(&[("a", "-")])), "https://a.example/x");
    assert_eq!(fill("https://a.example/x?a=$1", "", &texts(&[""])), "https://a.example/x?a=");
    assert_eq!(
        fill("https://a.example/x?a=$1", "a", &typed(&[("a", r#"["x","y&z",3]"#)])),
        "https://a.example/x?a=x&a=y%26z&a=3"
    );
    assert_eq!(fill("https://a.example/x?a=$1&b=1", "a", &typed(&[("a", "[]")])), "https://a.example/x?b=1");
    assert_eq!(fill("https://a.example/x?a=$1", "a", &typed(&[("a", "[[1]]")])), "argument_refused:$1:nested_list");
    assert_eq!(fill("https://a.example/x?a=$1", "", &texts(&["[1,2]"])), "https://a.example/x?a=%5B1%2C2%5D");
    assert_eq!(fill("https://a.example/x?q=tag:$1", "a", &typed(&[("a", "[1,2]")])), "https://a.example/x?q=tag:1%2C2");
}

#[test]
fn a_list_is_written_in_the_style_that_its_property_declares() {
    let schema = Schema::parse(
        r#"{"properties":{"a":{"type":"array","x-style":"pipeDelimited"},"b":{"style":"form","explode":false},
            "c":{"style":"spaceDelimited"},"d":{"type":"array"}}}"#,
    )
    .unwrap();
    let names = argument_names(Some(&schema), &[]);
    let signature = Signature { names, schema: Some(schema.into()), ..Signature::default() };
    let args = serde_json::from_str(r#"{"a":[1,2],"b":["x,y","z"],"c":[1,2],"d":[1.10,2]}"#).unwrap();
    let bound = signature.bind(&Sent::new(None, Some(args)).unwrap()).unwrap();
    let url = fill("https://a.example/?a=$1&b=${b}&c=$3&d=$4", "a b c d", &bound);
    assert_eq!(url, "https://a.example/?a=1%7C2&b=x%2Cy,z&c=1%202&d=1.10&d=2");
}

proptest! {
    #[test]
    fn no_argument_moves_the_request(a in any::<String>(), b in "[./\\\\%2eEfF?#@:a \u{0}-\u{20}]{0,12}", spread in any::<bool>()) {
        let text = if spread { "https://api.example.com/v1/$1+/end?q=$2&k=v" } else { "https://api.example.com/v1/$1/p-$2/end?q=$2&k=v" };
        let template = compile(text, "").unwrap();
        for bound in [texts(&[&a, &b]), texts(&[&b, &a]), texts(&[&b, &b])] {
            let Ok(url) = template.fill(&bound) else { continue };
            prop_assert_eq!(url.origin().ascii_serialization(), "https://api.example.com");
            prop_assert!(url.path().starts_with("/v1/") && url.path().ends_with("/end"));
            let segments: Vec<&str> = url.path_segments().unwrap().collect();
            prop_assert!(spread || segments.len() == 4);
            prop_assert!(segments.iter().all(|segment| !segment.is_empty() && *segment != "." && *segment != ".."));
            let pairs: Vec<_> = url.query_pairs().collect();
            prop_assert_eq!(pairs.len(), 2);
            prop_assert_eq!(&pairs[0].0, "q");
            prop_assert_eq!(&pairs[1], &("k".into(), "v".into()));
            prop_assert!(url.fragment().is_none() && url.username().is_empty() && url.password().is_none());
        }
    }

    #[test]
    fn a_query_value_comes_back_as_it_was_sent(value in any::<String>()) {
        let url = compile("https://a.example/?q=$1", "").unwrap().fill(&texts(&[&value]));
        if let Ok(url) = url {
            prop_assert_eq!(url.query_pairs().next().unwrap().1, value);
        } else {
            prop_assert!(value.len() > 5_000);
        }
    }

    #[test]
    fn no_template_panics(text in r#"(https?://)?[a-z.]{0,4}[/a-z0-9$\{\}+.?=&#%@:\\ \[\]é^|<>"'`;~!*()-]{0,30}"#, labels in "(a b)?") {
        if let Ok(template) = compile(&text, &labels) {
            let _ = template.fill(&Bound::default());
            if let Err(fault) = template.fill(&texts(&["x", "y"])) {
                prop_assert_ne!(fault.error_text(), "argument_refused:url:shape", "{}", text);
            }
        }
    }
}
