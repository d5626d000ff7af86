//! Answers to the wire.

use callbook_domain::describe::MAX_DESCRIPTION;
use callbook_domain::key::Key;
use callbook_domain::row::{Effect, Risk, RowType};
use callbook_store::snapshot::Entry;
use callbook_wire::directory::v1 as directory;
use callbook_wire::resolver::v1::describe_response::Answer as AnswerKind;
use callbook_wire::resolver::v1::get_map_response::View;
use callbook_wire::resolver::v1::{self as wire, AskResponse};

use crate::ask::Answered;
use crate::catalogue::{Counts, category};
use crate::describe::{Answer, too_large_hint};
use crate::map::{Map, PREDICATES};
use crate::run_now::run_now;
use crate::summary::{Summary, docs, is_untrusted};

/// All of an answer but whether it is stale.
pub(super) fn answered(answered: Answered) -> AskResponse {
    let matches: Vec<wire::Match> = answered
        .matches
        .into_iter()
        .map(|(entry, hit)| {
            let short = summary(&entry);
            let run_now = run_now(&entry, &short.example);
            wire::Match { score: hit.score, why: hit.why, run_now, ..short }
        })
        .collect();
    let contract = answered.contract.map(String::into_bytes);
    let best = contract.map(|json| wire::BestMatch { summary: matches.first().cloned(), contract_json: json.into() });
    AskResponse {
        question: answered.question,
        count: count(answered.count),
        best,
        matches,
        hint: answered.hint.map(str::to_owned),
        stale: false,
        next_page_token: answered.next,
    }
}

/// A row in short, without a score.
pub(super) fn summary(entry: &Entry) -> wire::Match {
    let Summary { what, when_to_use, example, is_untrusted } = Summary::of(entry);
    wire::Match {
        key: entry.key().to_string(),
        what,
        when_to_use,
        r#type: row_type(entry.row.definition.row_type),
        category: category(entry).to_owned(),
        effect: effect(entry.row.effect),
        risk: risk(entry.row.risk),
        example,
        score: 0.0,
        why: Vec::new(),
        run_now: None,
        untrusted_text: is_untrusted,
    }
}

/// A description, or why there is none.
pub(super) fn description(answer: Answer) -> AnswerKind {
    match answer {
        Answer::Description(found) => AnswerKind::Description(wire::Description {
            typescript: found.typescript,
            input_schema: found.input_schema.map(|schema| schema.to_string().into_bytes().into()),
            keys: found.keys.iter().map(Key::to_string).collect(),
            untrusted_text: found.is_untrusted,
        }),
        // It is refused as soon as it is too long, so this is the least that it would take.
        Answer::TooLarge { rows } => AnswerKind::TooLarge(wire::TooLarge {
            size_bytes: count(MAX_DESCRIPTION + 1),
            max_bytes: count(MAX_DESCRIPTION),
            rows: count(rows),
            hint: too_large_hint(rows),
        }),
    }
}

/// The map.
pub(super) fn map(map: Map) -> View {
    match map {
        Map::Book(catalogue) => {
            let Counts { rows, enabled, registry, planner } = catalogue.counts;
            let shelves = catalogue.shelves.iter();
            View::Book(wire::BookMap {
                counts: Some(wire::MapCounts { rows, enabled, registry, planner }),
                predicates: PREDICATES.map(|(name, words)| (name.to_owned(), words.to_owned())).into(),
                shelves: shelves.map(|(name, count)| wire::Shelf { category: name.clone(), count: *count }).collect(),
            })
        }
        Map::Shelf(shelf) => View::Shelf(wire::ShelfPage {
            shelf: shelf.name,
            count: count(shelf.count),
            rows: shelf.rows.iter().map(|entry| shelf_row(entry)).collect(),
            next_page_token: shelf.next,
        }),
    }
}

fn shelf_row(entry: &Entry) -> wire::ShelfRow {
    let wire::Match { key, what, r#type, effect, risk, untrusted_text, .. } = summary(entry);
    wire::ShelfRow { key, what, r#type, effect, risk, untrusted_text }
}

/// A row as the registry shows it.
pub(super) fn object(entry: &Entry) -> wire::RegistryObject {
    let wire::Match { key, what, when_to_use, r#type, category, effect, risk, untrusted_text, .. } = summary(entry);
    wire::RegistryObject {
        key,
        r#type,
        category,
        what,
        when_to_use,
        effect,
        risk,
        pool: entry.row.definition.pool().to_owned(),
        contract_hash: entry.row.contract_hash.clone(),
        text_hash: entry.row.text_hash.clone(),
        revision: entry.row.revision,
        untrusted_text,
    }
}

/// A row that a search found.
pub(super) fn found(entry: &Entry) -> wire::FoundRow {
    let definition = &entry.row.definition;
    wire::FoundRow {
        key: entry.key().to_string(),
        r#type: row_type(definition.row_type),
        category: category(entry).to_owned(),
        target: definition.target.clone(),
        planner_rank: definition.planner_rank,
        docs: docs(entry),
        untrusted_text: is_untrusted(entry),
    }
}

/// A number of rows.
pub(super) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn row_type(row_type: RowType) -> i32 {
    let wire = match row_type {
        RowType::Fn => directory::RowType::Fn,
        RowType::Http => directory::RowType::Http,
        RowType::Agent => directory::RowType::Agent,
        RowType::Flow => directory::RowType::Flow,
    };
    wire.into()
}

fn effect(effect: Effect) -> i32 {
    let wire = match effect {
        Effect::Read => directory::Effect::Read,
        Effect::Write => directory::Effect::Write,
        Effect::Destructive => directory::Effect::Destructive,
    };
    wire.into()
}

fn risk(risk: Risk) -> i32 {
    let wire = match risk {
        Risk::Low => directory::Risk::Low,
        Risk::High => directory::Risk::High,
    };
    wire.into()
}
