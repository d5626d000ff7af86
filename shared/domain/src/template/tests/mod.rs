//! Templates through their front doors: what they refuse when they are written, and what they make of arguments.

mod body;
mod url;

use super::*;
use crate::arguments::{Argument, Bound};

fn variables() -> PublicVariables {
    [("REGION".to_owned(), "eu-1".to_owned()), ("LIMIT".to_owned(), "50".to_owned())].into()
}

fn names(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

/// Arguments by position, as pipe text gives them.
fn texts(texts: &[&str]) -> Bound {
    let positional = texts.iter().map(|text| Some(Argument::untyped(*text))).collect();
    Bound { positional, ..Bound::default() }
}

/// Typed arguments by name and position; `-` stands for one that was not given.
fn typed(pairs: &[(&str, &str)]) -> Bound {
    let read = |text: &str| (text != "-").then(|| Argument::json(text).unwrap());
    Bound {
        positional: pairs.iter().map(|(_, text)| read(text)).collect(),
        named: pairs.iter().filter_map(|(name, text)| Some(((*name).to_owned(), read(text)?))).collect(),
        checked: true,
        ..Bound::default()
    }
}

#[test]
fn a_header_value_is_visible_ascii() {
    assert_eq!(header_value("Bearer a b~"), Ok(()));
    for (bad, rule) in
        [("a\r\nb", "control_character"), ("a\0", "control_character"), ("\t", "control_character"), ("é", "not_ascii")]
    {
        assert_eq!(header_value(bad), Err(rule));
    }
    assert_eq!(header_value(&"a".repeat(4097)), Err("too_long"));
    assert_eq!(header_value(&"a".repeat(4096)), Ok(()));
}

#[test]
fn a_slot_that_nothing_can_fill_is_refused_with_what_to_write() {
    let (variables, two) = (variables(), names("a b"));
    let (open, closed) = (Scope::new(&[], &variables), Scope::new(&two, &variables));
    let fix = |scope: &Scope<'_>, text: &str| scope.pieces(text, "here").unwrap_err().fix.unwrap();
    assert!(fix(&closed, "costs $5.00").contains("write `$$5.00`"));
    assert!(fix(&open, "costs $5.00").contains("write `$$5.00`"));
    assert!(fix(&closed, "$3").contains("`$$3`"));
    assert!(fix(&open, "$0").contains("`$$0`"));
    assert!(fix(&open, "$99999999999999999999").contains("$$"));
    assert!(fix(&closed, "$SECRET").contains("never a secret"));
    assert!(fix(&closed, "$PREV").contains("`$$PREV`"));
    assert!(fix(&closed, "${c}").contains("a, b"));
    assert!(fix(&open, "${a}").contains("ARGS"));
    assert!(fix(&open, "${a").contains("$${"));
    assert!(fix(&open, "${}").contains("ARGS"));
}

#[test]
fn what_begins_no_slot_is_text() {
    let variables = variables();
    let names = names("a x.y");
    let scope = Scope::new(&names, &variables);
    let shape = |text: &str| {
        let pieces = scope.pieces(text, "here").unwrap();
        pieces
            .iter()
            .map(|piece| match piece {
                Piece::Literal(text) => text.clone(),
                Piece::Slot(slot) => format!("<{}{}>", slot.label(), if slot.spans() { "+" } else { "" }),
            })
            .collect::<String>()
    };
    assert_eq!(shape("$.id $$5.00 $$A $- $$$1 $"), "$.id $5.00 $A $- $<$1> $");
    assert_eq!(shape("$1+$2+ ${a}${+x.y}$REGION$LIMIT"), "<$1+><$2+> <a><x.y+><$REGION><$LIMIT>");
}

#[test]
fn a_list_gives_a_functions_arguments() {
    let list = |text: &str| ListTemplate::compile(text, &names("a b c"), &variables());
    let fill = |text: &str, bound: &Bound| {
        let arguments = list(text).unwrap().fill(bound).map_err(|fault| fault.error_text())?;
        Ok::<_, String>(arguments.iter().map(|argument| argument.exact().into_owned()).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(fill(r#"["GET","$1+"]"#, &texts(&["a", "b"])).unwrap(), r#""GET" "a|b""#);
    assert_eq!(fill(r#"[$1,{"k":$2,"s":"<$2>"}]"#, &texts(&["a", "12"])).unwrap(), r#""a" {"k":12,"s":"<12>"}"#);
    assert_eq!(fill("", &texts(&[])).unwrap(), "");
    assert_eq!(fill("", &texts(&["x"])).unwrap(), r#""x""#);
    assert_eq!(fill(r#"["$1","$2",${c}]"#, &typed(&[("a", "1"), ("b", "-"), ("c", "-")])).unwrap(), r#""1""#);
    assert_eq!(
        fill(r#"["$1","$2","$3"]"#, &typed(&[("a", "1"), ("b", "-"), ("c", "2")])).unwrap_err(),
        "missing_argument:$2"
    );
    assert_eq!(list(r#"{"a":"$1"}"#).unwrap_err().why, "the template is not a list");
    assert!(list("[1,").unwrap_err().fix.unwrap().contains("JSON list"));
    let uses = list(r#"["$2","$1+","${c}"]"#).unwrap().slot_use();
    assert_eq!((uses.highest, uses.rest_from, uses.named.len(), uses.optional), (2, Some(1), 1, false));
    assert!(list("").unwrap().slot_use().optional);
}
