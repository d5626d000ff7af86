//! The table of functions, and the functions of JSON and text.

mod walk;

use callbook_domain::arguments::Argument;
use callbook_domain::function::FUNCTIONS;
use callbook_domain::outcome::Output;

use super::*;

fn arguments(texts: &[&str]) -> Vec<Argument> {
    texts.iter().map(|text| Argument::untyped(*text)).collect()
}

/// Text of what a function of its arguments gives, or the code of its failure.
fn given(function: fn(&[Argument]) -> Given, texts: &[&str]) -> String {
    match function(&arguments(texts)) {
        Ok(output) => output.as_text().unwrap().to_owned(),
        Err(failure) => failure.code,
    }
}

#[test]
fn every_function_of_the_table_has_a_body_and_no_other_has() {
    let bodies: Vec<&str> = BODIES.iter().map(|(name, _)| *name).collect();
    let table: Vec<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
    assert_eq!(bodies, table);
}

#[test]
fn a_count_of_arguments_that_the_table_does_not_allow_is_said_in_a_sentence() {
    let said = |name: &str, given: usize| check_count(function::find(name).unwrap(), given).map_err(|f| f.message);
    assert_eq!(said("json_get", 2), Ok(()));
    assert_eq!(said("json_get", 1).unwrap_err(), "`json_get` takes 2 arguments, 1 given");
    assert_eq!(said("trim", 0).unwrap_err(), "`trim` takes 1 argument, 0 given");
    assert_eq!(said("now", 2).unwrap_err(), "`now` takes at most 1 argument, 2 given");
    assert_eq!(said("ask", 3).unwrap_err(), "`ask` takes 1 to 2 arguments, 3 given");
}

#[test]
fn a_value_is_taken_out_of_json_as_it_is_written() {
    let document = r#"{"a":{"b":[1.10,-0, 1e400 ,9007199254740993],"":"é"},"s":"x\u0041\"","o":{ "k" : [ ] }}"#;
    for (path, value) in [
        ("$.a.b[0]", "1.10"),
        ("$.a.b[-1]", "9007199254740993"),
        ("$.a.b[1]", "-0"),
        ("$['a']['b'][2]", "1e400"),
        ("$.s", r#""x\u0041\"""#),
        ("$.a['']", "\"é\""),
        ("$.o", r#"{ "k" : [ ] }"#),
        ("$", document),
        ("$.a.b[*]", "[1.10,-0,1e400,9007199254740993]"),
        ("$.a.b[?@ > 1]", "[1.10,1e400,9007199254740993]"),
        ("$['s','s']", r#"["x\u0041\"","x\u0041\""]"#),
        ("$..k", "[[ ]]"),
        ("$.z[*]", "[]"),
        ("$.z", "fn:no_match"),
        ("$.a.b[4]", "fn:no_match"),
        ("a.b", "fn:arguments"),
        ("$..a..b", "fn:arguments"),
        ("$[?$.a]", "fn:arguments"),
        ("$[?match(@, 'a')]", "fn:arguments"),
        ("$[*,*][*,*][*,*]", "fn:arguments"),
    ] {
        assert_eq!(given(json::get, &[path, document]), value, "{path}");
    }
    assert_eq!(given(json::get, &["$.a", "HTTP 200:{\"a\":1}"]), "1");
    assert_eq!(given(json::get, &["$.a", "{\"a\":1,\"a\":2}"]), "fn:not_json");
    assert_eq!(given(json::get, &["$.a", "nothing"]), "fn:not_json");
    assert_eq!(json::get(&arguments(&["$", "[1]"])).unwrap(), Output::json("[1]"));
}

#[test]
fn hostile_paths_and_documents_end_soon_and_panic_nothing() {
    let deep = format!("{}{}{}", "[".repeat(119), ["1"; 100_000].join(","), "]".repeat(119));
    assert_eq!(given(json::get, &["$..*", &deep]), "fn:too_large");
    assert!(given(json::get, &["$..[?@ == 1]", &deep]).len() > 100_000);
    for path in
        ["(".repeat(900), format!("$[?{}", "(".repeat(900)), format!("${}", "[?@".repeat(300)), "$[?count(".repeat(50)]
    {
        assert_eq!(given(json::get, &[&path, "[1]"]), "fn:arguments");
    }
    assert_eq!(given(json::get, &["$[?length(length(length(length(length(@))))) == 1]", "[1]"]), "[]");
}

#[test]
fn objects_are_merged_as_patches_and_keep_their_text() {
    let merged = |texts: &[&str]| given(json::merge, texts);
    assert_eq!(
        merged(&[r#"{"a":1e400,"b":{"c":-0,"d":1}}"#, r#"{"b":{"d":null,"e":1.10},"z":[ 1 ]}"#]),
        r#"{"a":1e400,"b":{"c":-0,"e":1.10},"z":[ 1 ]}"#
    );
    assert_eq!(merged(&[r#"{"a":1}"#, r#"{"a":{"b":null,"c":{"d":null}}}"#]), r#"{"a":{"c":{}}}"#);
    assert_eq!(merged(&[r#"{"a":null}"#]), r#"{"a":null}"#);
    assert_eq!(merged(&[r#"{"a":{"x":1}}"#, r#"{"a":[null]}"#, "HTTP 200:{\"b\":2}"]), r#"{"a":[null],"b":2}"#);
    assert_eq!(merged(&["{}", "[]"]), "fn:not_json");
    assert_eq!(merged(&["{}", "x"]), "fn:not_json");
}

#[test]
fn text_is_changed_as_the_name_says() {
    assert_eq!(given(text::upper, &["straße é"]), "STRASSE É");
    assert_eq!(given(text::lower, &["ÀB"]), "àb");
    assert_eq!(given(text::trim, &[" \n a b\u{a0}"]), "a b");
    assert_eq!(given(text::sha256, &["abc"]), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(given(text::url_encode, &["a b/é~-._"]), "a%20b%2F%C3%A9~-._");
    assert_eq!(given(text::base64_encode, &["hello"]), "aGVsbG8=");
    for encoded in ["aGVsbG8=", "aGVsbG8", " aGVs\nbG8= "] {
        assert_eq!(given(text::base64_decode, &[encoded]), "hello");
    }
    let bytes = text::base64_decode(&arguments(&["_-8"])).unwrap();
    assert_eq!((bytes.bytes, bytes.media_type.as_str()), (vec![0xff, 0xef], "application/octet-stream"));
    for bad in ["a", "aGVsbG8===", "a*==", "aGVsbG9="] {
        assert_eq!(given(text::base64_decode, &[bad]), "fn:bad_base64", "{bad}");
    }
}

#[test]
fn a_template_takes_its_values_once() {
    assert_eq!(given(text::template, &["{{2}}-{{1}}-{{1}}", "{{2}}", "b"]), "b-{{2}}-{{2}}");
    assert_eq!(given(text::template, &["{{name}} {{ 1 }} {{{1}}} {{1", "x"]), "{{name}} {{ 1 }} {x} {{1");
    assert_eq!(given(text::template, &["{{2}}", "x"]), "fn:arguments");
    assert_eq!(given(text::template, &["{{0}}", "x"]), "fn:arguments");
    assert_eq!(given(text::template, &[&"{{1}}".repeat(1_000), &"x".repeat(100_000)]), "fn:too_large");
    assert_eq!(given(text::template, &[&"{{".repeat(500_000)]).len(), 1_000_000);
}

#[test]
fn a_match_has_its_groups_and_names() {
    assert_eq!(
        given(text::regex_match, &["[0-9]+", "a1b22"]),
        r#"{"matched":true,"groups":["1"],"named":{},"matches":["1","22"]}"#
    );
    assert_eq!(
        given(text::regex_match, &["(?P<k>\\w+)=(\\d+)?(x)?", "a=1"]),
        r#"{"matched":true,"groups":["a=1","a","1",null],"named":{"k":"a"},"matches":["a=1"]}"#
    );
    assert_eq!(given(text::regex_match, &["z", "a"]), r#"{"matched":false,"groups":[],"named":{},"matches":[]}"#);
    assert_eq!(given(text::regex_match, &["(", "a"]), "fn:bad_pattern");
    assert_eq!(given(text::regex_match, &["(a{1000}){1000}", "a"]), "fn:bad_pattern");
    let nested = format!("{}.*{}", "(".repeat(100), ")".repeat(100));
    assert_eq!(given(text::regex_match, &[&nested, &"x".repeat(100_000)]), "fn:too_large");
}
