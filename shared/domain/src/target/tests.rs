use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::arguments::{Argument, Sent, Signature, argument_names};
use crate::schema::Schema;
use crate::template::ListTemplate;

fn plan(target: &str, template: &str, names: &str) -> Result<HttpPlan, BadTemplate> {
    let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
    HttpPlan::compile(target, template, &names, &PublicVariables::new())
}

/// Binds pipe text to the plan without a schema and fills it.
fn call(plan: &HttpPlan, names: &str, body: &str) -> String {
    let names = names.split_whitespace().map(str::to_owned).collect();
    let signature = Signature { names, uses: plan.slot_use(), schema: None };
    let sent = Sent::new(Some(body.to_owned()), None).unwrap();
    match signature.bind(&sent).and_then(|bound| plan.fill(&bound)) {
        Ok(request) => {
            let body = request.body.map(|body| String::from_utf8(body).unwrap()).unwrap_or_default();
            format!("{} {} {} {body}", request.method, request.url, request.media_type.unwrap_or_default())
                .trim()
                .to_owned()
        }
        Err(fault) => fault.error_text(),
    }
}

#[test]
fn a_target_is_a_method_and_a_url() {
    let get = plan("https://a.example/x/$1?b=$2", "", "a b").unwrap();
    assert_eq!(call(&get, "a b", "1|2"), "GET https://a.example/x/1?b=2");
    assert_eq!((get.effect(), get.origins()), (Effect::Read, vec!["https://a.example".to_owned()]));
    let put = plan("PUT  https://a.example/$1 ", "$2+", "id json").unwrap();
    assert_eq!(call(&put, "id json", r#"7|{"a":"x|y"}"#), r#"PUT https://a.example/7 application/json {"a":"x|y"}"#);
    assert_eq!(put.effect(), Effect::Write);
    assert_eq!(put.slot_use(), SlotUse { highest: 2, rest_from: Some(2), ..SlotUse::default() });
    assert_eq!(plan("DELETE https://a.example/", "", "").unwrap().effect(), Effect::Destructive);
    for (target, place) in [
        ("", "target"),
        ("FETCH https://a.example/", "method"),
        ("get https://a.example/", "method"),
        ("$1 https://a.example/", "method"),
        ("GET $1", "scheme"),
        ("GET", "scheme"),
        ("/x", "scheme"),
        ("GET https://a.example/ x", "URL"),
        ("https://a.example/ x", "URL"),
        ("TRACE https://a.example/", "method"),
    ] {
        assert_eq!(plan(target, "", "").unwrap_err().place, place, "{target}");
    }
    assert_eq!(plan("POST https://a.example/", "hi", "").unwrap_err().place, "body");
}

#[test]
fn the_first_argument_picks_an_operation_of_a_map() {
    let map = r#"target_map:{"list":"GET https://a.example/items","get":{"url":"https://a.example/items/$1"},
        "add":{"method":"POST","url":"https://b.example/items"},
        "edit":{"method":"PATCH","url":"https://a.example/items/$1","body":{"name":"$2","tags":"${tag}"}},
        "drop":{"method":"DELETE","url":"https://a.example/items/$1+"}}"#;
    let names = "op id name tag";
    let map = plan(map, r#"{"new":"$1"}"#, names).unwrap();
    assert_eq!(map.operations(), ["list", "get", "add", "edit", "drop"]);
    assert_eq!(map.origins(), ["https://a.example", "https://b.example"]);
    assert_eq!(map.effect(), Effect::Destructive);
    for (body, request) in [
        ("list", "GET https://a.example/items"),
        ("get|7", "GET https://a.example/items/7"),
        ("add|x", r#"POST https://b.example/items application/json {"new":"x"}"#),
        ("edit|7|n|t", r#"PATCH https://a.example/items/7 application/json {"name":"n","tags":"t"}"#),
        ("drop|a/b", "DELETE https://a.example/items/a/b"),
        ("get", "missing_argument:$2"),
        ("edit|7|n", "missing_argument:tag"),
        ("list|7", "extra_arguments:expected 1, got 2"),
        ("get|7|8", "extra_arguments:expected 2, got 3"),
        ("nope", "argument_refused:$1:unknown_operation"),
        ("", "missing_argument:$1"),
    ] {
        assert_eq!(call(&map, names, body), request, "{body}");
    }
    let fault = map.fill(&Bound { positional: vec![Some(Argument::untyped("nope"))], ..Bound::default() }).unwrap_err();
    assert!(fault.how_to_fix().unwrap().ends_with("list, get, add, edit, drop"));
}

#[test]
fn a_map_says_what_is_wrong_with_which_operation() {
    for (map, place) in [
        ("", "target_map"),
        ("{}", "target_map"),
        ("[]", "target_map"),
        (r#"{"a":"GET https://a.example/","a":"GET https://b.example/"}"#, "target_map"),
        (r#"{"":"GET https://a.example/"}"#, "target_map"),
        (r#"{"a|b":"GET https://a.example/"}"#, "target_map"),
        (r#"{"a":1}"#, "operation of `a`"),
        (r#"{"a":{"method":"GET"}}"#, "operation of `a`"),
        (r#"{"a":{"url":"https://a.example/","header":1}}"#, "operation of `a`"),
        (r#"{"a":{"url":"https://a.example/","method":"$1"}}"#, "method of `a`"),
        (r#"{"a":"GET https://$1/"}"#, "host of `a`"),
        (r#"{"a":"GET https://a.example/$2"}"#, "path of `a`"),
        (r#"{"a":{"url":"https://a.example/","body":"x"}}"#, "body of `a`"),
    ] {
        assert_eq!(plan(&format!("target_map:{map}"), "", "op id").unwrap_err().place, place, "{map}");
    }
}

struct Row(Value);

impl Row {
    fn text(&self, column: &str) -> &str {
        self.0[column].as_str().unwrap_or_default()
    }

    fn template(&self) -> String {
        self.text("content").lines().skip_while(|line| line.starts_with('#')).collect::<Vec<_>>().join("\n")
    }

    fn labels(&self) -> Vec<String> {
        let line = self.text("content").lines().find_map(|line| line.strip_prefix("# ARGS: ")).unwrap_or("none");
        let labels = line.split('|').map(|label| label.split('=').next_back().unwrap_or_default().trim().to_owned());
        if line == "none" { Vec::new() } else { labels.collect() }
    }

    fn examples(&self) -> Vec<Sent> {
        let written = self.0["examples"].as_array().into_iter().flatten();
        let mut examples: Vec<Sent> = written
            .map(|example| match example {
                Value::String(text) => Sent::new(Some(text.clone()), None).unwrap(),
                other => Sent::new(None, Some(serde_json::from_str(&other.to_string()).unwrap())).unwrap(),
            })
            .collect();
        let ex = self.text("content").lines().find_map(|line| line.strip_prefix("# EX: ")).unwrap_or_default();
        let (open, close) = (format!("[{}]", self.text("key")), format!("[/{}]", self.text("key")));
        let body = ex.strip_prefix(&open).and_then(|ex| ex.strip_suffix(&close)).unwrap_or(ex);
        examples.push(Sent::new(Some(body.to_owned()), None).unwrap());
        examples
    }
}

type Fill = Box<dyn Fn(&Bound) -> Result<()>>;

#[test]
fn every_row_of_the_catalogue_compiles_and_its_examples_bind_and_fill() {
    let shared = std::env::var_os("CALLBOOK_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let Ok(rows) = std::fs::read_to_string(shared.join("catalogue/rows.ndjson")) else {
        let line = format!("\nskipped: no catalogue in {}\n", shared.display());
        let _ = std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes());
        return;
    };
    let (mut compiled, mut filled) = (0, 0);
    for line in rows.lines() {
        let row = Row(serde_json::from_str(line).unwrap());
        let key = row.text("key").to_owned();
        let schema = row.0.get("input_schema").map(|s| Arc::new(Schema::parse(&s.to_string()).unwrap()));
        let names = argument_names(schema.as_deref(), &row.labels());
        let variables = PublicVariables::new();
        crate::auth::Auth::parse(row.text("auth")).unwrap_or_else(|bad| panic!("{key}: {bad}"));
        let (uses, fill): (SlotUse, Fill) = match row.text("type") {
            "http" => {
                let plan = HttpPlan::compile(row.text("target"), &row.template(), &names, &variables);
                let plan = plan.unwrap_or_else(|bad| panic!("{key}: {bad}"));
                (plan.slot_use(), Box::new(move |bound| plan.fill(bound).map(drop)))
            }
            "fn" if row.text("target") != "prompt_block" => {
                let list = ListTemplate::compile(&row.template(), &names, &variables);
                let list = list.unwrap_or_else(|bad| panic!("{key}: {bad}"));
                (list.slot_use(), Box::new(move |bound| list.fill(bound).map(drop)))
            }
            _ => continue,
        };
        compiled += 1;
        let signature = Signature { names, uses, schema };
        for sent in row.examples() {
            let bound = signature.bind(&sent).unwrap_or_else(|fault| panic!("{key}: {fault}: {sent:?}"));
            fill(&bound).unwrap_or_else(|fault| panic!("{key}: {fault}: {sent:?}"));
            filled += 1;
        }
    }
    assert!(compiled > 700 && filled >= compiled, "{compiled} rows, {filled} examples");
}
