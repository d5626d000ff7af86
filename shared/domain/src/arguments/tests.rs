use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::schema::Schema;

fn names(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

/// A row without a schema that reads `$1` to `$highest`, the last one as `$N+` where `rest`.
fn open(labels: &str, highest: usize, rest: bool) -> Signature {
    let uses = SlotUse { highest, rest_from: rest.then_some(highest), ..SlotUse::default() };
    Signature { names: names(labels), uses, schema: None }
}

fn checked(schema: &str, highest: usize, rest: bool) -> Signature {
    let schema = Schema::parse(schema).unwrap();
    Signature { names: argument_names(Some(&schema), &[]), schema: Some(Arc::new(schema)), ..open("", highest, rest) }
}

fn body(text: &str) -> Sent {
    Sent::new(Some(text.to_owned()), None).unwrap()
}

fn args(text: &str) -> Sent {
    Sent::new(None, Some(serde_json::from_str(text).unwrap())).unwrap()
}

fn bound(signature: &Signature, sent: &Sent) -> String {
    signature.bind(sent).map_or_else(|fault| fault.error_text(), |bound| bound.canonical_text())
}

const WEATHER: &str = r#"{"type":"object","properties":{"place":{"type":"string"},"days":{"type":"integer"},
    "wind":{"type":"boolean"},"area":{"type":"object"}},"required":["place"],"additionalProperties":false}"#;

#[test]
fn pipe_text_is_split_once() {
    let two = open("", 2, false);
    assert_eq!(bound(&two, &body("37.77|-122.42")), r#"["37.77","-122.42"]"#);
    assert_eq!(bound(&two, &body(r"a\|b|c\\|d")), r#"["a|b","c\\|d"]"#);
    assert_eq!(bound(&two, &body("a|")), r#"["a",""]"#);
    assert_eq!(bound(&two, &body(" a | b ")), r#"[" a "," b "]"#);
    assert_eq!(bound(&two, &body("a")), "missing_argument:$2");
    assert_eq!(bound(&two, &body("a|b|c")), "extra_arguments:expected 2, got 3");
    assert_eq!(bound(&two, &Sent::Nothing), "missing_argument:$1");
    assert_eq!(bound(&two, &body("")), "missing_argument:$1");
}

#[test]
fn the_last_argument_of_a_row_that_takes_the_rest_takes_it() {
    let two = open("", 2, true);
    assert_eq!(bound(&two, &body(r#"ROUTER|{"content":"a|b"}"#)), r#"["ROUTER","{\"content\":\"a|b\"}"]"#);
    assert_eq!(bound(&two, &body(r#"K|{"re":"a\\|b"}"#)), r#"["K","{\"re\":\"a\\\\|b\"}"]"#);
    assert_eq!(bound(&two, &body(r"K|a\|b|c")), r#"["K","a|b|c"]"#);
    assert_eq!(bound(&open("", 1, true), &body("a|b|c")), r#"["a|b|c"]"#);
    assert_eq!(bound(&open("", 1, true), &args(r#"["a","b"]"#)), r#"["a|b"]"#);
    assert_eq!(bound(&open("", 1, true), &Sent::Nothing), "missing_argument:$1");
    let three = Signature { names: names("a b c"), ..open("", 1, true) };
    let three = three.bind(&body("x|y|z|w")).unwrap();
    assert_eq!(three.canonical_text(), r#"{"a":"x","b":"y","c":"z|w"}"#);
    assert_eq!(three.rest(2).unwrap().as_text(), "y|z|w");
    assert_eq!(three.rest(4), None);
}

#[test]
fn a_row_that_takes_none_says_so() {
    let none = open("", 0, false);
    assert_eq!(bound(&none, &Sent::Nothing), "{}");
    assert_eq!(bound(&none, &args("{}")), "{}");
    assert_eq!(bound(&none, &body("x")), "extra_arguments:expected 0, got 1");
    assert_eq!(bound(&none, &args(r#"["x"]"#)), "extra_arguments:expected 0, got 1");
    assert_eq!(bound(&none, &args(r#"{"x":1}"#)), "args_invalid::additionalProperties");
    let passing = Signature { uses: SlotUse { highest: 1, optional: true, ..SlotUse::default() }, ..none };
    assert_eq!(bound(&passing, &Sent::Nothing), "{}");
    assert_eq!(bound(&passing, &body("x")), r#"["x"]"#);
    assert_eq!(bound(&passing, &body("x|y")), "extra_arguments:expected 1, got 2");
}

#[test]
fn a_json_body_is_one_argument_without_a_schema_and_the_set_with_one() {
    assert_eq!(bound(&open("json", 1, false), &body(r#"{"a":1.10,"b":"x|y"}"#)), r#"{"json":{"a":1.10,"b":"x|y"}}"#);
    assert_eq!(bound(&open("", 1, false), &body("[1e400]")), "[[1e400]]");
    assert_eq!(
        bound(&checked(WEATHER, 2, false), &body(r#"{"days":3,"place":"Rome"}"#)),
        r#"{"place":"Rome","days":3}"#
    );
    assert_eq!(bound(&checked(WEATHER, 2, false), &body(r#"["Rome",3]"#)), r#"{"place":"Rome","days":3}"#);
    assert_eq!(bound(&open("", 2, false), &body("{not json|b")), r#"["{not json","b"]"#);
    assert_eq!(bound(&open("", 1, false), &body("[REPLY]hi[/REPLY]")), r#"["[REPLY]hi[/REPLY]"]"#);
    assert_eq!(bound(&open("", 1, false), &body(r#"{"a":1,"a":2}"#)), "argument_refused:body:duplicate_name");
    assert_eq!(bound(&open("", 1, false), &body(r#"{"a":"\ud800"}"#)), "argument_refused:body:lone_surrogate");
    assert_eq!(bound(&open("", 1, false), &body(&"[".repeat(500))), format!(r#"["{}"]"#, "[".repeat(500)));
}

#[test]
fn names_find_their_positions() {
    let row = open("owner repo", 2, false);
    assert_eq!(bound(&row, &args(r#"{"repo":"r","owner":"o"}"#)), r#"{"owner":"o","repo":"r"}"#);
    assert_eq!(bound(&row, &args(r#"{"owner":"o"}"#)), "missing_argument:repo");
    assert_eq!(bound(&row, &args(r#"["o"]"#)), "missing_argument:$2");
    assert_eq!(bound(&row, &args(r#"{"owner":"o","repo":"r","x":1}"#)), "args_invalid::additionalProperties");
    assert_eq!(bound(&open("", 2, false), &args(r#"{"$2":"b","$1":"a"}"#)), r#"["a","b"]"#);
    let named = SlotUse { named: ["id".to_owned()].into(), ..SlotUse::default() };
    let named = Signature { names: names("id"), uses: named, schema: None };
    assert_eq!(bound(&named, &args("{}")), "missing_argument:id");
}

#[test]
fn both_fields_or_a_scalar_are_refused() {
    let raw = |text: &str| Some(serde_json::from_str(text).unwrap());
    assert!(Sent::new(Some("a".into()), raw("{}")).is_err());
    assert!(Sent::new(None, raw("12")).is_err());
    assert!(matches!(Sent::new(None, raw("null")), Ok(Sent::Nothing)));
    assert!(matches!(Sent::new(Some(String::new()), None), Ok(Sent::Nothing)));
    let fault = open("a", 1, false).bind(&args(r#"{"a":"\udfff"}"#)).unwrap_err();
    assert_eq!(fault.error_text(), "argument_refused:args:lone_surrogate");
}

#[test]
fn text_takes_the_type_of_its_property_where_that_is_exact() {
    let row = checked(WEATHER, 4, true);
    for (text, set) in [
        ("Rome", r#"{"place":"Rome"}"#),
        ("12|12", r#"{"place":"12","days":12}"#),
        ("Rome|1.0|true", r#"{"place":"Rome","days":1.0,"wind":true}"#),
        (r#"Rome|1|false|{"a": [1]}"#, r#"{"place":"Rome","days":1,"wind":false,"area":{"a": [1]}}"#),
        (r#"Rome|1|false|{"a":"x|y"}"#, r#"{"place":"Rome","days":1,"wind":false,"area":{"a":"x|y"}}"#),
        ("Rome|twelve", "args_invalid:/days:type"),
        ("Rome| 12", "args_invalid:/days:type"),
        ("Rome|1.5", "args_invalid:/days:type"),
        ("Rome|1|yes", "args_invalid:/wind:type"),
        ("Rome|1|true|[1]", "args_invalid:/area:type"),
        ("", "args_invalid::required"),
    ] {
        assert_eq!(bound(&row, &body(text)), set, "{text}");
    }
    assert_eq!(bound(&checked(WEATHER, 2, false), &body("a|1|true|{}|b")), "extra_arguments:expected 4, got 5");
    assert_eq!(bound(&row, &args(r#"{"place":"Rome","days":"12"}"#)), "args_invalid:/days:type");
    assert_eq!(bound(&row, &args(r#"{"place":"Rome","x":"12"}"#)), "args_invalid::additionalProperties");
    assert_eq!(bound(&row, &args(r#"["Rome",2]"#)), r#"{"place":"Rome","days":2}"#);
    let either = checked(
        r#"{"properties":{"a":{"type":["integer","string"]},"b":{},"c":{"type":["integer","null"]}}}"#,
        3,
        false,
    );
    assert_eq!(bound(&either, &body("12|12|null")), r#"{"a":"12","b":"12","c":null}"#);
    assert_eq!(bound(&either, &body(r#"x|{"k":1}|7"#)), r#"{"a":"x","b":{"k":1},"c":7}"#);
}

#[test]
fn numbers_keep_their_text() {
    for number in ["9007199254740993", "1.10", "-0", "1e400", "1E-7", "123456789012345678901234567890.5"] {
        let row = checked(r#"{"properties":{"n":{"type":"number"}},"required":["n"]}"#, 1, false);
        let set = format!(r#"{{"n":{number}}}"#);
        assert_eq!(bound(&row, &args(&set)), set);
        assert_eq!(bound(&row, &body(number)), set);
        assert_eq!(bound(&open("n", 1, false), &args(&set)), set);
        assert_eq!(bound(&open("n", 1, false), &args(&format!("[{number}]"))), set);
    }
}

#[test]
fn absent_optional_arguments_stay_absent_and_unknown_ones_are_named() {
    let bound = checked(WEATHER, 2, false).bind(&args(r#"{"place":"Rome"}"#)).unwrap();
    assert_eq!((bound.position(1).is_some(), bound.position(2), bound.checked), (true, None, true));
    let row = checked(r#"{"properties":{"a":{}}}"#, 1, false);
    let bound = row.bind(&args(r#"{"z":1,"a":2,"b":3}"#)).unwrap();
    assert_eq!(bound.warnings, ["unknown_argument:z", "unknown_argument:b"]);
    assert_eq!(bound.canonical_text(), r#"{"a":2,"b":3,"z":1}"#);
    assert_eq!(bound.canonical().get(), bound.canonical_text());
}

#[test]
fn positions_take_their_names_from_the_order_then_the_labels_then_the_properties() {
    let of = |schema: &str, labels: &str| {
        let schema = Schema::parse(schema).unwrap();
        argument_names(Some(&schema), &names(labels)).join(" ")
    };
    assert_eq!(of(r#"{"properties":{"a":{},"b":{},"c":{}},"x-arg-order":["c","a"]}"#, "b a"), "c a b");
    assert_eq!(of(r#"{"properties":{"a":{},"b":{},"c":{}}}"#, "b a"), "b a c");
    assert_eq!(of(r#"{"properties":{"b":{},"a":{}}}"#, ""), "b a");
    assert_eq!(of(r#"{"properties":{"b":{},"a":{}}}"#, "x"), "b a");
    assert_eq!(of("{}", "x y"), "x y");
    assert_eq!(argument_names(None, &names("x y")), ["x", "y"]);
}

#[test]
fn one_set_has_one_text_however_it_was_sent() {
    let row = checked(WEATHER, 2, false);
    let text = bound(&row, &body("Rome|3"));
    for sent in [args(r#"{"days":3,"place":"Rome"}"#), args(r#"["Rome",3]"#), args(r#"{"place":"R\u006fme","days":3}"#)]
    {
        assert_eq!(bound(&row, &sent), text);
    }
    assert_ne!(bound(&row, &args(r#"["Rome",3.0]"#)), text);
}

proptest! {
    #[test]
    fn binding_never_panics_and_its_text_is_json(
        text in r#"[\[\]{}",:|\\ua-c0-9 \.e$-]{0,40}"#,
        highest in 0usize..4,
        rest in any::<bool>(),
    ) {
        let rows = [open("", highest, rest), open("a b", highest, rest), checked(WEATHER, highest, rest),
            checked(r#"{"properties":{"a":{},"b":{"type":["array","null","number"]}}}"#, highest, rest)];
        let raw: Option<Box<serde_json::value::RawValue>> = serde_json::from_str(&text).ok();
        for row in rows {
            for sent in [Some(body(&text)), raw.clone().and_then(|raw| Sent::new(None, Some(raw)).ok())].into_iter().flatten() {
                if let Ok(bound) = row.bind(&sent) {
                    prop_assert!(crate::json::check(&bound.canonical_text()).is_ok());
                }
            }
        }
    }

    #[test]
    fn pieces_joined_by_pipes_come_back(pieces in prop::collection::vec("[a-z| \"]{1,5}", 1..5)) {
        let text = pieces.iter().map(|piece| piece.replace('|', "\\|")).collect::<Vec<_>>().join("|");
        let bound = open("", pieces.len(), false).bind(&body(&text)).unwrap();
        let back: Vec<_> = bound.positional.iter().flatten().map(|argument| argument.as_text().to_owned()).collect();
        prop_assert_eq!(back, pieces);
    }
}
