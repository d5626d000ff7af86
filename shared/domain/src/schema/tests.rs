use super::*;

fn schema(text: &str) -> Schema {
    Schema::parse(text).unwrap()
}

fn refused(schema_text: &str, value: &str) -> (String, String) {
    let fault = schema(schema_text).check(&json::value(value).unwrap()).unwrap_err();
    (fault.error_text(), fault.message().to_owned())
}

#[test]
fn a_refusal_names_the_place_the_keyword_and_what_was_expected() {
    let s = r#"{"type":"object","properties":{"age":{"type":"integer","minimum":0},"unit":{"enum":["c","f"]}},
                "required":["age"],"additionalProperties":false}"#;
    for (value, error, message) in [
        (r#"{"age":"x"}"#, "args_invalid:/age:type", "`/age` must be of type integer"),
        (r#"{"age":-1}"#, "args_invalid:/age:minimum", "`/age` must be at least 0"),
        (r#"{}"#, "args_invalid::required", "the argument set lacks the property `age`"),
        (
            r#"{"age":1,"b":2}"#,
            "args_invalid::additionalProperties",
            "the argument set has the property `b` that the row does not take",
        ),
        (r#"{"age":1,"unit":"secret"}"#, "args_invalid:/unit:enum", r#"`/unit` must be one of ["c","f"]"#),
        (r#"[]"#, "args_invalid::type", "the argument set must be of type object"),
    ] {
        assert_eq!(refused(s, value), (error.to_owned(), message.to_owned()), "{value}");
    }
    let fault = schema(s).check(&json::value(r#"{"age":true}"#).unwrap()).unwrap_err();
    assert_eq!(fault.metadata()[0], ("pointer", "/age".to_owned()));
    assert_eq!(fault.metadata()[1], ("keyword", "type".to_owned()));
    assert_eq!(fault.metadata()[2], ("expected", "of type integer".to_owned()));
}

#[test]
fn numbers_are_compared_exactly() {
    let s = schema(r#"{"properties":{"n":{"type":"integer","maximum":9007199254740992}}}"#);
    assert!(s.check(&json::value(r#"{"n":9007199254740992}"#).unwrap()).is_ok());
    assert!(s.check(&json::value(r#"{"n":9007199254740993}"#).unwrap()).is_err());
    for n in ["1e400", "-0", "1.0", "1e-99999999999"] {
        let _ = s.check(&json::value(&format!(r#"{{"n":{n}}}"#)).unwrap());
    }
}

#[test]
fn what_is_no_schema_or_reaches_outside_is_refused() {
    let large = format!(r#"{{"description":"{}"}}"#, "x".repeat(MAX_BYTES));
    let deep = format!(r#"{}1{}"#, r#"{"not":"#.repeat(65), "}".repeat(65));
    for (text, why) in [
        ("{", "cannot be read"),
        ("[]", "not valid"),
        (r#"{"type":"obj"}"#, "not valid at `/type`"),
        (r#"{"items":[{}]}"#, "not valid at `/items`"),
        (r#"{"pattern":"("}"#, "not valid"),
        (r#"{"pattern":"((a{0,1000}){0,1000}){0,1000}"}"#, "not valid"),
        (r#"{"$ref":"https://example.com/s"}"#, "outside"),
        (r#"{"properties":{"a":{"$ref":"file:///etc/passwd"}}}"#, "outside"),
        (r#"{"properties":{"default":{"$ref":"other.json"}}}"#, "outside"),
        (r#"{"allOf":[{"$ref":"https://json-schema.org/draft/2020-12/schema"}]}"#, "outside"),
        (r#"{"$dynamicRef":"x#a"}"#, "outside"),
        (r##"{"$ref":"#/$defs/none"}"##, "not valid"),
        (r#"{"$schema":"http://json-schema.org/draft-07/schema#"}"#, "`$schema` is"),
        (r#"{"$defs":{"a":{"$id":"b"}}}"#, "`$id`"),
        (r#"{"x-arg-order":["a","a"]}"#, "twice"),
        (r#"{"x-arg-order":[1]}"#, "list of property names"),
        (r#"{"x-arg-order":["b"],"properties":{"a":{}},"additionalProperties":false}"#, "no property"),
        (r#"{"type":"object","type":"string"}"#, "twice"),
        (&large, "bytes"),
        (&deep, "nested too deeply"),
    ] {
        let refusal = Schema::parse(text).unwrap_err();
        assert!(refusal.contains(why), "{text:.80}: {refusal}");
    }
    for good in [
        "true",
        "{}",
        r##"{"$ref":"#"}"##,
        r##"{"properties":{"child":{"$ref":"#"}}}"##,
        r#"{"const":{"$ref":"https://example.com"},"properties":{"$ref":{"type":"string"},"$id":{"type":"string"}}}"#,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/a"}"#,
    ] {
        assert!(Schema::parse(good).is_ok(), "{good}: {:?}", Schema::parse(good).err());
    }
}

#[test]
fn no_check_takes_exponential_time() {
    let links: String = (0..60)
        .map(|i| format!(r##""a{i}":{{"allOf":[{{"$ref":"#/$defs/a{n}"}},{{"$ref":"#/$defs/a{n}"}}]}},"##, n = i + 1))
        .collect();
    let wide = format!(r##"{{"$ref":"#/$defs/a0","$defs":{{{links}"a60":{{}}}}}}"##);
    assert_eq!(refused(&wide, "{}").0, "args_invalid::$ref");
    let twice = r##"{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}"##;
    let nested = |n: usize| format!("{}1{}", r#"{"a":"#.repeat(n), "}".repeat(n));
    assert_eq!(refused(twice, &nested(60)).0, "args_invalid::$ref");
    assert!(schema(twice).check(&json::value(&nested(10)).unwrap()).is_ok());
    let tree = r##"{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}}}"##;
    let deep = format!("{}1{}", r#"{"left":"#.repeat(100), "}".repeat(100));
    assert!(schema(tree).check(&json::value(&deep).unwrap()).is_ok());
    let chain: String = (0..1500).map(|i| format!(r##""a{i}":{{"$ref":"#/$defs/a{}"}},"##, i + 1)).collect();
    let long =
        format!(r##"{{"$ref":"#/$defs/a0","$defs":{{{chain}"a1500":{{"properties":{{"a":{{"$ref":"#"}}}}}}}}}}"##);
    assert_eq!(refused(&long, &nested(100)).0, "args_invalid::$ref");
    let numbers = r##"{"items":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"integer"}}}"##;
    let many = format!("[{}]", vec!["1"; 300_000].join(","));
    assert!(schema(numbers).check(&json::value(&many).unwrap()).is_ok());
    let patterns: String = (0..129).map(|i| format!(r#","p{i}":{{"pattern":"a{i}"}}"#)).collect();
    assert!(Schema::parse(&format!(r#"{{"properties":{{"x":{{}}{patterns}}}}}"#)).unwrap_err().contains("patterns"));
    let bomb = r#"{"properties":{"a":{"pattern":"^(?=a)(a|aa)+\\1$"}}}"#;
    assert_eq!(refused(bomb, &format!(r#"{{"a":"{}!"}}"#, "a".repeat(60))).0, "args_invalid:/a:pattern");
}

#[test]
fn properties_are_found_through_references_and_combinations() {
    let s = schema(
        r##"{"properties":{"z":{"$ref":"#/$defs/count"},"a":{"type":["string","null"]}},
            "allOf":[{"$ref":"#/$defs/more"}],"required":["z"],"x-arg-order":["a","z"],
            "$defs":{"count":{"type":"integer"},"more":{"$anchor":"m","properties":{"m":{"enum":["x",1]},"o":{"anyOf":[{"type":"object"},{"type":"null"}]}}}}}"##,
    );
    assert_eq!(s.properties(), ["z", "a", "m", "o"]);
    assert_eq!(s.arg_order().unwrap(), ["a", "z"]);
    assert_eq!(s.property_type("z"), [PropertyType::Integer]);
    assert_eq!(s.property_type("a"), [PropertyType::String, PropertyType::Null]);
    assert_eq!(s.property_type("m"), [PropertyType::String, PropertyType::Number]);
    assert_eq!(s.property_type("o"), [PropertyType::Null, PropertyType::Object]);
    assert!(s.is_required("z") && !s.is_required("a") && s.allows_additional());
    assert!(s.knows("m") && !s.knows("unheard"));
}

#[test]
fn a_list_style_is_that_of_openapi() {
    let s = schema(
        r#"{"properties":{"a":{},"b":{"x-style":"pipeDelimited"},"c":{"style":"form","explode":false},
            "d":{"style":"spaceDelimited","explode":false},"e":{"style":"spaceDelimited","explode":true}}}"#,
    );
    let styles: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(|name| s.list_style(name)).into();
    use ListStyle::*;
    assert_eq!(styles, [Repeated, Pipes, Commas, Spaces, Repeated, Repeated]);
}
