use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> Flow {
    let flow = Flow::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(Flow::parse(&flow.to_string()).as_ref(), Ok(&flow), "{flow}");
    flow
}

fn arguments(step: &Step) -> String {
    let template = |t: &ArgTemplate| format!("{:?}", t.pieces);
    match &step.action {
        Action::Call { arguments: StepArguments::Pipe(list), .. } => {
            list.iter().map(template).collect::<Vec<_>>().join(" ")
        }
        other => format!("{other:?}"),
    }
}

fn refused(text: &str) -> String {
    Flow::parse(text).expect_err(text).to_string()
}

fn literal(text: &str) -> ArgTemplate {
    ArgTemplate { pieces: vec![Piece::Literal(text.into())] }
}

#[test]
fn the_seeds_flow_is_read() {
    let flow = parsed("LAST_REPLY_OF: $1\n> SEND_BY_CHANNEL: blooio|$2|$PREV");
    assert_eq!(flow.steps_keys().iter().map(Key::as_str).collect::<Vec<_>>(), ["LAST_REPLY_OF", "SEND_BY_CHANNEL"]);
    assert_eq!(flow.slot_use(), SlotUse { highest: 2, rest_from: None, named: vec![] });
    let Part::Single(step) = &flow.parts[1] else { panic!("{flow:?}") };
    assert_eq!(arguments(step), r#"[Literal("blooio")] [Slot(Argument(2))] [Slot(Prev)]"#);
}

#[test]
fn the_forms_of_the_catalogue_are_read() {
    parsed("A: $1 > JSON_GET: $.id|$PREV");
    parsed("A: $1 => FIRST > KV_PUT: last_1|$FIRST");
    let flow = parsed("{ NOW: | TWILIO: $1 } => BOTH > SHA256: $BOTH");
    let Part::Block { steps, bind } = &flow.parts[0] else { panic!("{flow:?}") };
    assert_eq!((steps.len(), bind.as_ref().map(Name::as_str)), (2, Some("BOTH")));
    assert_eq!(arguments(&steps[0]), "");
    let flow = parsed("?: A: $1 > UPPER: ok | LOWER: FAILED > NEXT: $PREV");
    let Part::Condition { otherwise: Some(step), .. } = &flow.parts[0] else { panic!("{flow:?}") };
    assert_eq!((step.text.as_str(), flow.parts.len()), ("LOWER: FAILED", 2));
    parsed("?: A: > B: $PREV");
}

#[test]
fn separators_in_brackets_and_quotes_are_text() {
    let flow = parsed(r#"A: {"a":[1,"x\"|>",{"b":">"}]}|[a|b > c]|"q|>=> r"|a\|b|[c\|d]| > B:x"#);
    let Part::Single(step) = &flow.parts[0] else { panic!("{flow:?}") };
    let Action::Call { arguments: StepArguments::Pipe(list), .. } = &step.action else { panic!("{step:?}") };
    let wanted = [r#"{"a":[1,"x\"|>",{"b":">"}]}"#, "[a|b > c]", r#""q|>=> r""#, "a|b", r"[c\|d]"].map(literal);
    assert_eq!(list[..5], wanted);
    assert_eq!((list.len(), &list[5]), (6, &ArgTemplate::default()));
}

#[test]
fn a_list_gives_several_arguments_where_pipes_separate_steps() {
    let flow = parsed(r#"A: $1 > { B: ["a $1|>","$$x",{"n":1.10},9007199254740993] | C: one $2 } > D: ["a","$1"]"#);
    let Part::Block { steps, .. } = &flow.parts[1] else { panic!("{flow:?}") };
    let Action::Call { arguments: StepArguments::List(list), .. } = &steps[0].action else { panic!("{steps:?}") };
    let ListArgument::Text(first) = &list[0] else { panic!("{list:?}") };
    assert_eq!(first.pieces[1], Piece::Slot(Slot::Argument(1)));
    assert_eq!(list[1], ListArgument::Text(literal("$x")));
    assert_eq!(list[2], ListArgument::Json(r#"{"n":1.10}"#.into()));
    assert_eq!(list[3], ListArgument::Json("9007199254740993".into()));
    // Outside a block the same text is one argument of pipe text.
    let Part::Single(step) = &flow.parts[2] else { panic!("{flow:?}") };
    assert_eq!(arguments(step), r#"[Literal("[\"a\",\""), Slot(Argument(1)), Literal("\"]")]"#);
}

#[test]
fn dollars_are_slots_or_text_by_what_follows() {
    let flow = parsed("A: $1$2+ ${name} $$5.00 $.id $ $-|$10 => X_1 > B: $X_1+$PREV.");
    let Part::Single(step) = &flow.parts[0] else { panic!("{flow:?}") };
    let wanted = r#"[Slot(Argument(1)), Slot(Rest(2)), Literal(" "), Slot(Named("name")), Literal(" $5.00 $.id $ $-")] [Slot(Argument(10))]"#;
    assert_eq!(arguments(step), wanted);
    assert_eq!(flow.slot_use(), SlotUse { highest: 10, rest_from: Some(2), named: vec!["name".into()] });
    let variable = Flow::parse_with("A: $REGION", &|name| name == "REGION").unwrap();
    assert_eq!(arguments(variable.steps().next().unwrap()), r#"[Slot(Variable(Name("REGION")))]"#);
}

#[test]
fn the_verbs_are_read() {
    let flow =
        parsed("A: => X > JSON: $.a[?(@.b > 1 | 2)] => Y > EACH: B: $PREV|$1 > MERGE: a=$X, b.c=$Y,d=$PREV, e=$2+");
    let steps: Vec<&Action> = flow.steps().map(|step| &step.action).collect();
    assert_eq!(steps[1], &Action::Json("$.a[?(@.b > 1 | 2)]".into()));
    let Action::Each { key, arguments: StepArguments::Pipe(list) } = steps[2] else { panic!("{steps:?}") };
    assert_eq!((key.as_str(), list.len()), ("B", 2));
    let Action::Merge(fields) = steps[3] else { panic!("{steps:?}") };
    assert_eq!(fields[3], ("e".into(), Slot::Rest(2)));
    assert_eq!(flow.slot_use().highest, 2);
}

#[test]
fn what_the_grammar_lacks_is_refused_with_its_place() {
    for (text, wanted) in [
        ("  ", "the flow is empty (at byte 0)"),
        ("A: x > > B: y", "part 2: the part is empty (at byte 7)"),
        ("A: x >", "part 2: the part is empty (at byte 6)"),
        ("A: x > some words", "part 2: no `:` after the key in `some words` (at byte 7)"),
        ("9A: x", "part 1: `9A` is no key: it must begin with a letter or `_` (at byte 0)"),
        ("A: $PREV", "part 1: `$PREV` has no step before it (at byte 3)"),
        ("JSON: $.a", "part 1: `JSON` reads `$PREV`, and no step stands before it (at byte 6)"),
        ("EACH: A: 1", "part 1: `EACH` reads `$PREV`, and no step stands before it (at byte 0)"),
        ("A: > EACH: JSON: $.a", "part 2: `JSON` is a verb of flows and no row (at byte 11)"),
        ("A: > JSON: a.b", "part 2: the path `a.b` does not start with `$` (at byte 11)"),
        ("A: $X => X", "part 1: `$X` is bound by no earlier step; write `$$X` for the text itself (at byte 3)"),
        (
            "{ A: => P | B: $P }",
            "part 1: `$P` is bound by no earlier step; write `$$P` for the text itself (at byte 15)",
        ),
        ("{ A: => P | B: => P }", "part 1: the block binds `P` twice (at byte 12)"),
        ("{ A: | { B: } }", "part 1: a block cannot stand in a block or a condition (at byte 7)"),
        ("{ ?: A: | B: }", "part 1: a condition cannot stand in a block or a condition (at byte 2)"),
        ("{ A: > B: }", "part 1: `>` cannot stand in a block, whose steps all run at once (at byte 6)"),
        ("{ A: | }", "part 1: a step is empty (at byte 7)"),
        ("{ A: } x", "part 1: `x` after the block (at byte 7)"),
        (
            "{ A: ['a'] }",
            "part 1: the arguments begin like a JSON list and are none; write slots as `\"$1\"` (at byte 5)",
        ),
        ("?: A: x", "part 1: the condition has no `> step` after its test (at byte 2)"),
        ("?: A: a|b > C:", "part 1: here `|` separates steps; write several arguments as a JSON list (at byte 6)"),
        (
            "?: A: > B: => N | C: > D: $N",
            "part 2: `$N` is bound by no earlier step; write `$$N` for the text itself (at byte 26)",
        ),
        (
            "A: x => my-name",
            "part 1: `=>` must be followed by a name of letters, digits and `_`, not `my-name` (at byte 8)",
        ),
        ("A: x => B => C", "part 1: two `=>` in `A: x => B => C`; put text that holds one in `\"…\"` (at byte 13)"),
        ("A: 6\" tall", "`\"` is never closed (at byte 4)"),
        ("A: [a", "`[` is never closed (at byte 3)"),
        ("A: a]", "`]` closes nothing (at byte 4)"),
        ("A: $0", "part 1: `$0` is no argument, they are `$1` to `$999`; write `$$0` for the text itself (at byte 3)"),
        ("A: ${+a}", "part 1: `${+a}` names no argument (at byte 3)"),
        ("MERGE: a=1", "part 1: `1` is no slot such as `$1`, `$PREV` or `$NAME` (at byte 9)"),
        ("MERGE: a=$1,a=$2", "part 1: the field `a` is there twice (at byte 12)"),
        (
            "{ A: [[\"$1\"]] }",
            "part 1: a slot can only stand in a string that is itself an element of the list (at byte 8)",
        ),
    ] {
        assert_eq!(refused(text), wanted, "{text}");
    }
}

#[test]
fn bindings_of_both_branches_and_of_the_test_are_seen_later() {
    parsed("?: A: => T > B: $T => N | C: $T => N > D: $N|$T");
    parsed("{ A: => P | B: => Q } > C: $P|$Q|$PREV > A: => P > D: $P");
}

#[test]
fn the_bounds_are_kept() {
    let steps = |n: usize| vec!["A: x"; n].join(" > ");
    parsed(&steps(MAX_STEPS));
    assert!(refused(&steps(MAX_STEPS + 1)).contains("more than 64 steps"));
    let block = |n: usize| format!("{{ {} }}", vec!["A: x"; n].join(" | "));
    parsed(&block(MAX_FAN_OUT));
    assert!(refused(&block(MAX_FAN_OUT + 1)).contains("17 steps at once"));
    assert!(refused(&format!("A: {}", "x".repeat(MAX_FLOW))).contains("longer than"));
    assert!(refused(&format!("A: {}", "[".repeat(60_000))).contains("nest deeper than 64"));
    assert!(refused(&"{".repeat(60_000)).contains("nest deeper than 64"));
    parsed(&format!("A: {}{}", "[".repeat(64), "]".repeat(64)));
}

/// Texts that are nearly flows, so that the reader gets past its first look.
fn nearly() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "A",
        "B.c",
        ":",
        ":",
        ": ",
        ">",
        " > ",
        "|",
        " | ",
        "{ ",
        " }",
        "?: ",
        "=>",
        " => X",
        "$X",
        "$PREV",
        "$1",
        "$2+",
        "${n}",
        "$$",
        "$",
        "\\|",
        "\\",
        "\"",
        "\"q\"",
        "[",
        "]",
        "[\"a\",\"$1\"]",
        "{\"k\":1}",
        "JSON: $.a",
        "EACH: A: ",
        "MERGE: a=$1",
        ",",
        "é",
        "\n",
        "x y",
        "A: x",
        "\u{2028}",
    ]);
    prop::collection::vec(word, 0..24).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".*") {
        let _ = Flow::parse(&text);
    }

    #[test]
    fn a_printed_flow_reads_as_the_same_flow(text in nearly()) {
        match Flow::parse(&text) {
            Ok(flow) => prop_assert_eq!(Flow::parse(&flow.to_string()), Ok(flow)),
            Err(error) => prop_assert!(text.is_char_boundary(error.at) && error.at <= text.len(), "{}", error),
        }
    }

    #[test]
    fn well_formed_flows_read(parts in prop::collection::vec(part(), 1..8)) {
        let text = format!("START: $1 => X > {}", parts.join(" > "));
        let flow = Flow::parse(&text);
        prop_assert!(flow.is_ok(), "{}: {:?}", text, flow);
        let flow = flow.unwrap();
        prop_assert_eq!(Flow::parse(&flow.to_string()), Ok(flow));
    }
}

fn part() -> impl Strategy<Value = String> {
    let argument =
        "q[a-z ]{0,6}(\\$1|\\$2\\+|\\$X|\\$PREV|\\$\\$|\\[>\\]|\"=>\"|\\\\\\||\\{\"a\": \"\\|\"\\})?( [a-z.]{0,4})?";
    let step = ("[A-Z]{1,4}[.][a-z]{1,3}", argument, prop::option::of("[A-Z]{2,4}")).prop_map(|(key, text, bind)| {
        let bind = bind.map(|name| format!(" => N{name}")).unwrap_or_default();
        format!("{key}:{text}{bind}")
    });
    let plain = ("[A-Z]{1,4}", argument).prop_map(|(key, text)| format!("K{key}: {text}"));
    prop_oneof![
        step.clone(),
        prop::collection::vec(plain, 1..4).prop_map(|steps| format!("{{{}}}", steps.join("|"))),
        (step.clone(), step.clone(), prop::option::of(step)).prop_map(|(test, then, otherwise)| {
            format!("?:{test} > {then}{}", otherwise.map(|step| format!("|{step}")).unwrap_or_default())
        }),
    ]
}
