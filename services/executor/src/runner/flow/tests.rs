//! Flows over rows that are functions of this file. What a flow means is said twice: by the walk, and by a small
//! interpreter that knows nothing of outputs, budgets and time. Random flows must mean the same to both.

mod model;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callbook_domain::arguments::{Argument, Bound};
use callbook_domain::flow::Flow;
use callbook_domain::key::Key;
use callbook_domain::outcome::{Failure, Output};
use callbook_domain::template::PublicVariables;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::halt::Halt;
use super::walk::{MAX_BYTES, Walk};

type Given = Result<Output, Halt>;

fn failed(code: &str) -> Given {
    Err(Halt::Failed(Failure { upstream_status: Some(418), ..Failure::new(code, "no").retryable() }))
}

/// The rows: each gives something of its arguments alone.
fn row(key: &Key, arguments: Vec<Argument>) -> Given {
    let texts: Vec<&str> = arguments.iter().map(Argument::as_text).collect();
    let exact: Vec<_> = arguments.iter().map(Argument::exact).collect();
    match key.as_str() {
        "SAY" => Ok(Output::text(texts.join("|"))),
        "UPPER" => Ok(Output::text(texts.concat().to_uppercase())),
        "LIST" => Ok(Output::json(format!("[{}]", exact.join(",")))),
        "COUNT" => Ok(Output::json(arguments.len().to_string())),
        "AS_JSON" => Ok(Output::json(texts.concat())),
        "NOTHING" => Ok(Output::empty()),
        "PICTURE" => Ok(Output { bytes: vec![0xff], media_type: "image/png".into(), truncated: false }),
        "HEAD" => Ok(Output { truncated: true, ..Output::text("the head") }),
        "LARGE" => Ok(Output::text("x".repeat(MAX_BYTES / 4))),
        "FAIL" => failed("test:failed"),
        "MOVED" => Err(Halt::Ended(Failure::new("row_moved", "it moved"))),
        other => failed(&format!("unknown_key:{other}")),
    }
}

fn own(texts: &[&str]) -> Bound {
    let positional = texts.iter().map(|text| Some(Argument::untyped(*text))).collect();
    Bound { positional, ..Bound::default() }
}

async fn walked(text: &str, own: &Bound) -> Result<Output, Failure> {
    let variables = PublicVariables::from([("REGION".to_owned(), "eu-1".to_owned())]);
    let flow = Flow::parse_with(text, &|name| variables.contains_key(name)).unwrap_or_else(|e| panic!("{text}: {e}"));
    let call_row =
        |key: &Key, arguments| -> BoxFuture<'static, Given> { std::future::ready(row(key, arguments)).boxed() };
    Walk::new(&flow, own, &variables, &call_row).run().await
}

/// What a flow with the arguments `a` and `b|c` gives: its output as text, or where it failed and by what.
async fn gives(text: &str) -> String {
    match walked(text, &own(&["a", "b|c"])).await {
        Ok(output) => output.as_text().unwrap_or("bytes").to_owned(),
        Err(failure) => format!("{} at {}", failure.code, failure.at.unwrap_or_default()),
    }
}

#[tokio::test]
async fn each_form_gives_what_it_says() {
    for (flow, given) in [
        ("SAY: $1 > SAY: x|$2|$PREV", "x|b|c|a"),
        ("COUNT: x|$2|$1", "3"),
        ("COUNT: $1+", "1"),
        ("COUNT:", "0"),
        ("SAY: $1+", "a|b|c"),
        ("SAY: in $REGION for $$5", "in eu-1 for $5"),
        ("SAY: $1 => A > UPPER: $PREV => B > SAY: $A$B$1", "aAa"),
        ("{ SAY: $1 | COUNT: [\"$1\",2] | NOTHING: } => ALL > SAY: $ALL", r#"["a",2,null]"#),
        ("{ SAY: x => X | UPPER: y => Y } > SAY: $Y$X$PREV", r#"Yx["x","Y"]"#),
        ("?: SAY: $1 > UPPER: $PREV | SAY: no", "A"),
        ("?: FAIL: > UPPER: ok | SAY: $PREV", "ERR:test:failed:no"),
        ("?: FAIL: => WHY > UPPER: ok | SAY: so > SAY: $WHY", "ERR:test:failed:no"),
        ("?: FAIL: > UPPER: ok > SAY: -$PREV-", "--"),
        (r#"LIST: 1|2 > JSON: $[1]"#, "\"2\""),
        (r#"AS_JSON: {"a":[1.10,9007199254740993]} > JSON: $.a[*]"#, "[1.10,9007199254740993]"),
        (r#"AS_JSON: {"a":1.10} > LIST: $PREV"#, r#"[{"a":1.10}]"#),
        (r#"AS_JSON: [1.10,"b"] > EACH: LIST: $PREV|$1"#, r#"[[1.10,"a"],["b","a"]]"#),
        ("AS_JSON: [] > EACH: FAIL:", "[]"),
        (
            "SAY: x => X > COUNT: y > MERGE: x=$X, n.o=$PREV, own=$1",
            r#"{"x":"x","n.o":0,"own":"a"}"#.replace(":0", ":1").leak(),
        ),
        ("PICTURE: > MERGE: p=$PREV > JSON: $.p.base64", "\"/w==\""),
        ("PICTURE:", "bytes"),
    ] {
        assert_eq!(gives(flow).await, given, "{flow}");
    }
}

#[tokio::test]
async fn a_step_that_fails_stops_the_flow_and_says_where() {
    for (flow, given) in [
        ("SAY: $1 > FAIL: $PREV > SAY: never", "test:failed at FAIL"),
        ("{ SAY: a | FAIL: | NOBODY: }", "test:failed at FAIL"),
        ("?: SAY: a > FAIL: b", "test:failed at FAIL"),
        ("?: MOVED: > SAY: yes | SAY: no", "row_moved at MOVED"),
        ("AS_JSON: [1,2] > EACH: FAIL: $PREV", "test:failed at FAIL[0]"),
        ("AS_JSON: [1,2] > EACH: NOBODY: $PREV", "unknown_key:NOBODY at NOBODY[0]"),
        ("SAY: [1] > EACH: SAY: $PREV", "flow:not_a_list at SAY"),
        ("SAY: x > JSON: $.a", "fn:not_json at JSON"),
        ("AS_JSON: {} > JSON: $.a", "fn:no_match at JSON"),
        ("PICTURE: > SAY: $PREV", "flow:not_text at SAY"),
        ("HEAD: > SAY: x$PREV", "flow:truncated at SAY"),
        ("SAY: $3|$1", "flow:bad_step at SAY"),
        ("SAY: x$3", "flow:bad_step at SAY"),
        ("SAY: $1|$3", "a"),
        ("MERGE: a=$3,b=$1", r#"{"b":"a"}"#),
    ] {
        assert_eq!(gives(flow).await, given, "{flow}");
    }
    let failure = walked("SAY: a > FAIL: of course", &Bound::default()).await.unwrap_err();
    assert_eq!(failure.message, "part 2, `FAIL: of course`: no");
    assert_eq!((failure.upstream_status, failure.retryable), (Some(418), true));
}

#[tokio::test]
async fn what_a_flow_may_grow_to_is_bounded() {
    let elements = |n: usize| format!("AS_JSON: {} > EACH: SAY: x", serde_json::json!(vec![0; n]));
    assert_eq!(gives(&elements(64)).await.len(), 64 * 4 + 1);
    assert_eq!(gives(&elements(65)).await, "budget_exhausted:calls at SAY");
    assert_eq!(gives("LARGE: > SAY: ok").await, "ok");
    // four times what was given once: in texts, in lists, in objects
    let over = "budget_exhausted:bytes";
    assert_eq!(gives("LARGE: > SAY: $PREV$PREV$PREV$PREV").await, format!("{over} at SAY"));
    assert_eq!(gives("LARGE: > SAY: $PREV|$PREV|$PREV|$PREV").await, format!("{over} at SAY"));
    assert_eq!(gives("{ LARGE: | LARGE: | LARGE: } > SAY: x").await, format!("{over} at "));
    assert_eq!(gives("LARGE: > MERGE: a=$PREV,b=$PREV,c=$PREV,d=$PREV").await, format!("{over} at MERGE"));
    assert_eq!(gives("AS_JSON: [1,2,3,4,5] > EACH: LARGE:").await, format!("{over} at LARGE[3]"));
    assert_eq!(gives("?: LARGE: > SAY: $PREV$PREV$PREV$PREV | SAY: x").await, format!("{over} at SAY"));
}

#[tokio::test]
async fn steps_of_a_block_and_elements_run_at_once_and_sixteen_at_most() {
    let counters: [Arc<AtomicUsize>; 3] = Default::default();
    let [begun, _, most] = counters.clone();
    let call_row = move |key: &Key, arguments: Vec<Argument>| -> BoxFuture<'static, Given> {
        let (given, [begun, open, most]) = (row(key, arguments), counters.clone());
        async move {
            begun.fetch_add(1, Ordering::SeqCst);
            most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            open.fetch_sub(1, Ordering::SeqCst);
            given
        }
        .boxed()
    };
    let (variables, bound) = (PublicVariables::new(), Bound::default());
    let elements = |row: &str| format!("AS_JSON: {} > EACH: {row}: x", serde_json::json!(vec![0; 40]));
    for (text, expected) in [
        (format!("{{ {} }}", ["SAY: x"; 16].join(" | ")), (true, 16, 16)),
        ("{ FAIL: | SAY: x | SAY: y }".to_owned(), (false, 3, 3)),
        (elements("SAY"), (true, 1 + 40, 16)),
        // once one has failed no other begins
        (elements("FAIL"), (false, 1 + 16, 16)),
    ] {
        begun.store(0, Ordering::SeqCst);
        most.store(0, Ordering::SeqCst);
        let flow = Flow::parse(&text).unwrap();
        let ended = Walk::new(&flow, &bound, &variables, &call_row).run().await;
        let counted = (ended.is_ok(), begun.load(Ordering::SeqCst), most.load(Ordering::SeqCst));
        assert_eq!(counted, expected, "{text}");
    }
}
