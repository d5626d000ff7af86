//! The small interpreter, the flows that it reads, and the comparison.

use callbook_domain::arguments::{Argument, Bound};
use proptest::prelude::*;
use serde_json::Value;

use super::{own, row, walked};
use crate::runner::flow::halt::Halt;

/// What a step gave: a JSON value, or text.
#[derive(Clone, Debug, PartialEq)]
enum Thing {
    Json(Value),
    Text(String),
}

impl Thing {
    fn text(&self) -> String {
        match self {
            Thing::Json(Value::String(text)) | Thing::Text(text) => text.clone(),
            Thing::Json(value) => value.to_string(),
        }
    }

    fn value(&self) -> Value {
        match self {
            Thing::Json(value) => value.clone(),
            Thing::Text(text) if text.is_empty() => Value::Null,
            Thing::Text(text) => text.as_str().into(),
        }
    }

    fn argument(&self) -> Argument {
        match self {
            Thing::Json(value) => Argument::json(value.to_string()).unwrap(),
            Thing::Text(text) => Argument::untyped(text),
        }
    }
}

#[derive(Clone, Debug)]
enum Slot {
    Own(usize),
    Prev,
    Bound(usize),
}

#[derive(Clone, Debug)]
enum Piece {
    Word(&'static str),
    Slot(Slot),
}

#[derive(Clone, Debug)]
enum Verb {
    Call(&'static str, Vec<Vec<Piece>>),
    Each(&'static str, Vec<Vec<Piece>>),
    Json(&'static str),
    Merge(Vec<Slot>),
}

#[derive(Clone, Debug)]
struct Step {
    verb: Verb,
    bind: Option<usize>,
}

#[derive(Clone, Debug)]
enum Part {
    Single(Step),
    Block(Vec<Step>, Option<usize>),
    Condition(Step, Step, Option<Step>),
}

/// Where a flow failed, and by what.
type Failed = (String, String);

#[derive(Clone, Default)]
struct State {
    prev: Option<Thing>,
    bound: [Option<Thing>; 3],
}

const OWN: [&str; 2] = ["own one", "{\"k\": 2}"];

impl State {
    fn slot(&self, slot: &Slot) -> Thing {
        match slot {
            Slot::Own(n) => Thing::Text(OWN[*n].to_owned()),
            Slot::Prev => self.prev.clone().unwrap(),
            Slot::Bound(n) => self.bound[*n].clone().unwrap(),
        }
    }

    fn argument(&self, pieces: &[Piece]) -> Argument {
        if let [Piece::Slot(slot)] = pieces {
            return self.slot(slot).argument();
        }
        let text = pieces.iter().map(|piece| match piece {
            Piece::Word(word) => (*word).to_owned(),
            Piece::Slot(slot) => self.slot(slot).text(),
        });
        Argument::untyped(text.collect::<String>())
    }

    fn call(&self, key: &str, arguments: &[Vec<Piece>]) -> Result<Thing, String> {
        let arguments = arguments.iter().map(|pieces| self.argument(pieces)).collect();
        match row(&key.parse_key(), arguments) {
            Ok(output) => Ok(match output.as_json() {
                Some(text) => Thing::Json(serde_json::from_str(text).unwrap()),
                None => Thing::Text(output.as_text().unwrap().to_owned()),
            }),
            Err(Halt::Failed(failure) | Halt::Ended(failure)) => Err(failure.code),
        }
    }

    fn step(&self, step: &Step) -> Result<Thing, Failed> {
        let at = |place: &'static str| move |code: String| (code, place.to_owned());
        match &step.verb {
            Verb::Call(key, arguments) => self.call(key, arguments).map_err(at(key)),
            Verb::Each(key, arguments) => {
                let Some(Thing::Json(Value::Array(items))) = &self.prev else {
                    return Err(("flow:not_a_list".into(), (*key).into()));
                };
                let each = |(n, item): (usize, &Value)| {
                    let state = State { prev: Some(Thing::Json(item.clone())), ..self.clone() };
                    state.call(key, arguments).map(|given| given.value()).map_err(|code| (code, format!("{key}[{n}]")))
                };
                let given: Result<Vec<Value>, Failed> = items.iter().enumerate().map(each).collect();
                given.map(|list| Thing::Json(list.into()))
            }
            Verb::Json(path) => self.json(path).map_err(at("JSON")),
            Verb::Merge(slots) => {
                let members = slots.iter().enumerate();
                Ok(Thing::Json(members.map(|(n, slot)| (format!("f{n}"), self.slot(slot).value())).collect()))
            }
        }
    }

    fn json(&self, path: &str) -> Result<Thing, String> {
        let document = match self.prev.clone().unwrap() {
            Thing::Json(value) => value,
            Thing::Text(text) => serde_json::from_str(&text).map_err(|_| "fn:not_json".to_owned())?,
        };
        let found = match path {
            "$[0]" => document.get(0).cloned(),
            "$.f0" => document.get("f0").cloned(),
            "$[*]" => Some(match &document {
                Value::Array(items) => items.clone().into(),
                Value::Object(members) => members.values().cloned().collect(),
                _ => Value::Array(Vec::new()),
            }),
            other => panic!("{other}"),
        };
        found.map(Thing::Json).ok_or_else(|| "fn:no_match".to_owned())
    }

    fn bind(&mut self, bind: Option<usize>, given: &Thing) {
        if let Some(n) = bind {
            self.bound[n] = Some(given.clone());
        }
    }

    fn part(&mut self, part: &Part) -> Result<Thing, Failed> {
        match part {
            Part::Single(step) => {
                let given = self.step(step)?;
                self.bind(step.bind, &given);
                Ok(given)
            }
            Part::Block(steps, bind) => {
                let given: Vec<Thing> = steps.iter().map(|step| self.step(step)).collect::<Result<_, _>>()?;
                steps.iter().zip(&given).for_each(|(step, given)| self.bind(step.bind, given));
                let list = Thing::Json(given.iter().map(Thing::value).collect());
                self.bind(*bind, &list);
                Ok(list)
            }
            Part::Condition(test, then, otherwise) => {
                let (given, branch) = match self.step(test) {
                    Ok(given) => (given, Some(then)),
                    Err((code, _)) if code == "row_moved" => return Err((code, "MOVED".into())),
                    Err((code, _)) => (Thing::Text(format!("ERR:{code}:no")), otherwise.as_ref()),
                };
                self.bind(test.bind, &given);
                let Some(branch) = branch else { return Ok(Thing::Text(String::new())) };
                self.prev = Some(given);
                let given = self.step(branch)?;
                self.bind(branch.bind, &given);
                Ok(given)
            }
        }
    }
}

trait ParseKey {
    fn parse_key(&self) -> callbook_domain::key::Key;
}

impl ParseKey for str {
    fn parse_key(&self) -> callbook_domain::key::Key {
        callbook_domain::key::Key::parse(self).unwrap()
    }
}

fn meaning(parts: &[Part]) -> Result<Thing, Failed> {
    let mut state = State::default();
    for part in parts {
        state.prev = Some(state.part(part)?);
    }
    Ok(state.prev.unwrap())
}

/// Makes each slot one that something fills at its place, and prints the flow.
struct Printer {
    has_prev: bool,
    bound: [bool; 3],
}

impl Printer {
    fn slot(&self, slot: &mut Slot) -> String {
        let is_filled = match slot {
            Slot::Own(_) => true,
            Slot::Prev => self.has_prev,
            Slot::Bound(n) => self.bound[*n],
        };
        if !is_filled {
            *slot = Slot::Own(0);
        }
        match slot {
            Slot::Own(n) => format!("${}", *n + 1),
            Slot::Prev => "$PREV".to_owned(),
            Slot::Bound(n) => format!("$N{n}"),
        }
    }

    fn arguments(&self, arguments: &mut [Vec<Piece>], as_list: bool) -> String {
        let texts = arguments.iter_mut().map(|pieces| {
            let text = pieces.iter_mut().map(|piece| match piece {
                Piece::Word(word) => (*word).to_owned(),
                Piece::Slot(slot) => self.slot(slot),
            });
            text.collect::<String>()
        });
        let texts: Vec<String> = texts.collect();
        if as_list { serde_json::json!(texts).to_string() } else { texts.join("|") }
    }

    fn step(&self, step: &mut Step, as_list: bool) -> String {
        if !self.has_prev && matches!(step.verb, Verb::Each(..) | Verb::Json(_)) {
            step.verb = Verb::Call("SAY", Vec::new());
        }
        let text = match &mut step.verb {
            Verb::Call(key, arguments) => format!("{key}: {}", self.arguments(arguments, as_list)),
            Verb::Each(key, arguments) => format!("EACH: {key}: {}", self.arguments(arguments, as_list)),
            Verb::Json(path) => format!("JSON: {path}"),
            Verb::Merge(slots) => {
                let fields: Vec<String> =
                    slots.iter_mut().enumerate().map(|(n, slot)| format!("f{n}={}", self.slot(slot))).collect();
                format!("MERGE: {}", fields.join(", "))
            }
        };
        match step.bind {
            Some(n) => format!("{text} => N{n}"),
            None => text,
        }
    }

    fn part(&mut self, part: &mut Part) -> String {
        match part {
            Part::Single(step) => {
                let text = self.step(step, false);
                self.bind(step.bind);
                text
            }
            Part::Block(steps, bind) => {
                let mut names = Vec::new();
                for name in steps.iter_mut().map(|step| &mut step.bind).chain([&mut *bind]) {
                    *name = name.filter(|n| !names.contains(n));
                    names.extend(*name);
                }
                let texts: Vec<String> = steps.iter_mut().map(|step| self.step(step, true)).collect();
                names.into_iter().for_each(|n| self.bind(Some(n)));
                let bind = bind.map(|n| format!(" => N{n}")).unwrap_or_default();
                format!("{{ {} }}{bind}", texts.join(" | "))
            }
            Part::Condition(test, then, otherwise) => {
                if !matches!(test.verb, Verb::Call(..)) {
                    test.verb = Verb::Call("FAIL", Vec::new());
                }
                let mut text = format!("?: {}", self.step(test, true));
                self.bind(test.bind);
                self.has_prev = true;
                // a name that only one branch binds is not sure to be bound
                let both = otherwise.as_ref().and_then(|step| step.bind).filter(|n| then.bind == Some(*n));
                then.bind = both;
                text += &format!(" > {}", self.step(then, true));
                if let Some(otherwise) = otherwise {
                    otherwise.bind = both;
                    text += &format!(" | {}", self.step(otherwise, true));
                }
                self.bind(both);
                text
            }
        }
    }

    fn bind(&mut self, bind: Option<usize>) {
        if let Some(n) = bind {
            self.bound[n] = true;
        }
    }
}

fn printed(parts: &mut [Part]) -> String {
    let mut printer = Printer { has_prev: false, bound: [false; 3] };
    let texts = parts.iter_mut().map(|part| {
        let text = printer.part(part);
        printer.has_prev = true;
        text
    });
    texts.collect::<Vec<_>>().join(" > ")
}

fn slot() -> impl Strategy<Value = Slot> {
    prop_oneof![(0..2usize).prop_map(Slot::Own), Just(Slot::Prev), (0..3usize).prop_map(Slot::Bound)]
}

fn arguments() -> impl Strategy<Value = Vec<Vec<Piece>>> {
    let word = prop::sample::select(vec!["-w", "-7", ". two words", "ä", "/true"]);
    let mixed = prop::collection::vec(prop_oneof![word.prop_map(Piece::Word), slot().prop_map(Piece::Slot)], 1..4);
    let lone = slot().prop_map(|slot| vec![Piece::Slot(slot)]);
    prop::collection::vec(prop_oneof![mixed, lone], 1..3)
}

fn step() -> impl Strategy<Value = Step> {
    let key = || prop::sample::select(vec!["SAY", "SAY", "UPPER", "LIST", "LIST", "COUNT", "NOTHING", "FAIL", "MOVED"]);
    let verb = prop_oneof![
        4 => (key(), arguments()).prop_map(|(key, arguments)| Verb::Call(key, arguments)),
        2 => (key(), arguments()).prop_map(|(key, arguments)| Verb::Each(key, arguments)),
        1 => prop::sample::select(vec!["$[0]", "$[*]", "$.f0"]).prop_map(Verb::Json),
        1 => prop::collection::vec(slot(), 1..3).prop_map(Verb::Merge),
    ];
    (verb, prop::option::of(0..3usize)).prop_map(|(verb, bind)| Step { verb, bind })
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        3 => step().prop_map(Part::Single),
        1 => (prop::collection::vec(step(), 1..4), prop::option::of(0..3usize)).prop_map(|(s, bind)| Part::Block(s, bind)),
        1 => (step(), step(), prop::option::of(step())).prop_map(|(a, b, c)| Part::Condition(a, b, c)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn a_random_flow_means_the_same_to_the_walk_and_to_the_small_interpreter(
        mut parts in prop::collection::vec(part(), 1..6),
    ) {
        let text = printed(&mut parts);
        let bound: Bound = own(&OWN);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let walked = runtime.block_on(walked(&text, &bound));
        let meaning = meaning(&parts);
        match (walked, meaning) {
            (Ok(output), Ok(Thing::Json(value))) => {
                let given: Option<Value> = output.as_json().map(|text| serde_json::from_str(text).unwrap());
                prop_assert_eq!(given, Some(value), "{}", text);
            }
            (Ok(output), Ok(Thing::Text(expected))) => {
                prop_assert_eq!((output.as_json(), output.as_text()), (None, Some(expected.as_str())), "{}", text);
            }
            (Err(failure), Err(expected)) => {
                prop_assert_eq!((failure.code, failure.at.unwrap_or_default()), expected, "{}", text);
            }
            (walked, meaning) => prop_assert!(false, "{text}: {walked:?} is not {meaning:?}"),
        }
    }
}
