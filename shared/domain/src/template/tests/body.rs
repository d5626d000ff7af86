use proptest::prelude::*;
use serde_json::Value;

use super::super::*;
use super::{names, texts, typed, variables};
use crate::arguments::Bound;
use crate::json;

fn compile(text: &str, labels: &str) -> Result<BodyTemplate, BadTemplate> {
    BodyTemplate::compile(text, &Scope::new(&names(labels), &variables()))
}

fn fill(text: &str, labels: &str, bound: &Bound) -> String {
    match compile(text, labels).unwrap().fill(bound) {
        Ok(Some(body)) => String::from_utf8(body.bytes).unwrap(),
        Ok(None) => "none".to_owned(),
        Err(fault) => fault.error_text(),
    }
}

#[test]
fn each_refusal_names_its_place() {
    for (text, place) in [
        (r#"{"$1":2}"#, "JSON key"),
        (r#"{$1:2}"#, "JSON key"),
        (r#"{"a":1,"a":2}"#, "JSON key"),
        (r#"{"$ref":2}"#, "JSON key"),
        (r#"{"a":"$NAME"}"#, "JSON string"),
        (r#"{"a":$NAME}"#, "JSON value"),
        (r#"{"a":${b}}"#, "JSON value"),
        (r#"{"a":"$5.00"}"#, "JSON string"),
        (r#"{"a":$5.00}"#, "JSON value"),
        ("hello $1", "body"),
        ("hello", "body"),
        ("<a>$1</a>", "body"),
        (r#"{"a":$1"#, "body"),
        (r#"{"a":$1 $2}"#, "body"),
        (r#"{"a":"\u00$1"}"#, "body"),
        (r#"{"a":"\$1"}"#, "body"),
        (r#"{"a":"\ud83d$1\ude00"}"#, "body"),
        (r#"{"a":"x}"#, "body"),
        (r#"{"a":tru}"#, "body"),
        (r#"{"a":01}"#, "body"),
        ("{\"a\":\"\n\"}", "body"),
        ("[1,]", "body"),
        ("$$", "body"),
        (&("[".repeat(65) + &"]".repeat(65)), "body"),
        ("form:$1", "form name"),
        ("form:$1=a", "form name"),
        ("form:a=$NAME", "form value"),
        ("form:a=%4$1", "form value"),
        ("form:a=b c", "body"),
        ("text/plain:$NAME", "text body"),
        ("text/pl$1:x", "body"),
        ("application/xml:<a/>", "body"),
    ] {
        let bad = compile(text, "").unwrap_err();
        assert_eq!(bad.place, place, "{text}: {bad}");
        assert!(bad.fix.is_some() || text.contains("\"a\":2"), "{text}");
    }
}

#[test]
fn arguments_stand_in_json_by_the_place_they_land_in() {
    let template = r#"{"s":"<$1>","v":$1,"list":[ $2 , "$$5" ],"n":1.10}"#;
    assert_eq!(
        fill(template, "", &texts(&["a\"b\\\n", "12"])),
        r#"{"s":"<a\"b\\\n>","v":"a\"b\\\n","list":[12,"$5"],"n":1.10}"#
    );
    assert_eq!(
        fill(template, "", &texts(&[r#"{"k": 1e400}"#, "true"])),
        r#"{"s":"<{\"k\": 1e400}>","v":{"k": 1e400},"list":[true,"$5"],"n":1.10}"#
    );
    assert_eq!(fill(template, "", &texts(&[r#""q""#, "x"])), r#"{"s":"<\"q\">","v":"q","list":["x","$5"],"n":1.10}"#);
    assert_eq!(fill(r#"{"a":$1}"#, "a", &typed(&[("a", r#""12""#)])), r#"{"a":"12"}"#);
    assert_eq!(fill(r#"{"a":$1}"#, "a", &typed(&[("a", "-0")])), r#"{"a":-0}"#);
    assert_eq!(fill(r#"{"a":$1}"#, "", &texts(&[r#"{"k":1,"k":2}"#])), "argument_refused:$1:duplicate_name");
    assert_eq!(fill(r#"{"a":$1}"#, "", &texts(&["1} ,"])), r#"{"a":"1} ,"}"#);
    assert_eq!(fill(r#"{"$$ref":"$REGION","n":$LIMIT}"#, "", &Bound::default()), r#"{"$ref":"eu-1","n":50}"#);
}

#[test]
fn a_body_may_be_one_slot() {
    assert_eq!(fill("$1+", "", &texts(&[r#"{"name":"x"}"#])), r#"{"name":"x"}"#);
    assert_eq!(fill("\n$1+\n", "", &texts(&["plain"])), r#""plain""#);
    assert_eq!(fill("$1+", "", &texts(&["a", "b"])), r#""a|b""#);
    assert_eq!(fill("$2+", "a b", &typed(&[("a", "1"), ("b", "-")])), "none");
    assert_eq!(fill("", "", &Bound::default()), "none");
    assert_eq!(fill(" \n ", "", &Bound::default()), "none");
}

#[test]
fn an_absent_optional_argument_drops_its_member_and_nothing_else() {
    let bound = typed(&[("a", "-"), ("b", "2")]);
    assert_eq!(fill(r#"{"a":$1,"b":${b},"c":"$1","d":{"e":${a}}}"#, "a b", &bound), r#"{"b":2,"d":{}}"#);
    assert_eq!(fill(r#"{"a":"x$1"}"#, "a b", &bound), "missing_argument:$1");
    assert_eq!(fill("[${a}]", "a b", &bound), "missing_argument:a");
    assert_eq!(fill(r#"{"a":$1}"#, "a b", &typed(&[("a", "null")])), r#"{"a":null}"#);
}

#[test]
fn a_form_is_urlencoded() {
    let body = compile("form:a=$1&fixed=x+y&b=$2", "a b").unwrap();
    let filled = body.fill(&typed(&[("a", r#""1 &=+ü""#), ("b", "-")])).unwrap().unwrap();
    assert_eq!(filled.media_type, "application/x-www-form-urlencoded");
    assert_eq!(String::from_utf8(filled.bytes).unwrap(), "a=1+%26%3D%2B%C3%BC&fixed=x+y");
    assert_eq!(fill("form:a=$1", "a", &typed(&[("a", "[1,2]")])), "a=1&a=2");
    assert_eq!(
        fill("form:To=$1&Body=${text}", "to text", &typed(&[("to", r#""+1""#), ("text", r#""a|b""#)])),
        "To=%2B1&Body=a%7Cb"
    );
}

#[test]
fn text_goes_out_only_with_a_declared_type() {
    let filled = compile("text/csv; header=present:\na,$1\n", "").unwrap().fill(&texts(&["x\ny"])).unwrap().unwrap();
    assert_eq!(
        (filled.media_type.as_str(), filled.bytes.as_slice()),
        ("text/csv; header=present", b"a,x\ny\n".as_slice())
    );
    assert_eq!(fill("text/plain:$$5 for $1", "", &texts(&["{}"])), "$5 for {}");
    assert_eq!(fill("text/plain:$1", "", &texts(&["a\0b"])), "argument_refused:$1:control_character");
}

fn shape(value: &Value) -> String {
    match value {
        Value::Object(members) => members.iter().map(|(name, value)| format!("{name}{{{}}}", shape(value))).collect(),
        Value::Array(items) => items.iter().map(|item| format!("[{}]", shape(item))).collect(),
        Value::String(_) => "s".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => "v".to_owned(),
    }
}

proptest! {
    #[test]
    fn no_argument_changes_the_shape_of_a_body(a in any::<String>(), b in r#"[\[\]{}",:\\ua0-9 $\{]{0,16}"#) {
        let strings = compile(r#"{"a":"$1","b":["<$2>",{"c":"$1$2"}]}"#, "").unwrap();
        let values = compile(r#"{"a":$1,"b":[$2],"z":1}"#, "").unwrap();
        for bound in [texts(&[&a, &b]), texts(&[&b, &a])] {
            let body = strings.fill(&bound).unwrap().unwrap();
            let value = json::value(std::str::from_utf8(&body.bytes).unwrap()).unwrap();
            prop_assert_eq!(shape(&value), "a{s}b{[s][c{s}]}");
            prop_assert_eq!(value["a"].as_str().unwrap(), bound.position(1).unwrap().as_text());
            if let Ok(body) = values.fill(&bound) {
                let value = json::value(std::str::from_utf8(&body.unwrap().bytes).unwrap()).unwrap();
                prop_assert_eq!(value.as_object().unwrap().len(), 3);
                prop_assert_eq!(value["b"].as_array().unwrap().len(), 1);
                prop_assert_eq!(&value["z"], &Value::from(1));
            }
        }
    }

    #[test]
    fn no_template_panics_and_what_compiles_fills_to_json(
        text in r#"(form:|text/plain:)?[\[\]{}",:\\ua0-9 $+.=&é\n-]{0,30}"#,
    ) {
        if let Ok(template) = compile(&text, "") {
            if let Ok(Some(body)) = template.fill(&texts(&["x", "{}"]))
                && body.media_type == "application/json"
            {
                prop_assert!(json::check(std::str::from_utf8(&body.bytes).unwrap()).is_ok());
            }
            let _ = template.fill(&Bound::default());
        }
        let _ = ListTemplate::compile(&text, &[], &variables()).map(|list| list.fill(&texts(&["x"])).ok());
    }
}
