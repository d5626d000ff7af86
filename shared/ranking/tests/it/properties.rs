//! What holds for every book and every question.

use std::collections::BTreeMap;

use callbook_domain::key::Key;
use callbook_domain::row::{Effect, Risk, RowType};
use callbook_ranking::{Entry, Filters, Index, Question, Ranked, Recommendation};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const WORDS: &[&str] = &[
    "time", "times", "timer", "weather", "whether", "issue", "issues", "list", "delete", "send", "email", "mail",
    "the", "is", "it", "天気", "予報", "base64", "getUser", "user", "HTTP", "zürich",
];

fn text() -> impl Strategy<Value = String> {
    vec(select(WORDS), 0..6).prop_map(|words| words.join(" "))
}

fn key() -> impl Strategy<Value = Key> {
    let segment = || vec(select(&["GET", "send", "Time", "mail", "ISSUE", "it"][..]), 1..3);
    (segment(), option::of(segment())).prop_map(|(first, second)| {
        let second = second.map(|s| format!(".{}", s.join("_"))).unwrap_or_default();
        Key::parse(&(first.join("_") + &second)).expect("a key")
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    let words = (option::of(text()), text(), text(), vec((text(), text()), 0..3), text());
    let kinds = (select(RowType::ALL), select(Effect::ALL), select(Risk::ALL), 0..3, any::<bool>());
    (key(), words, kinds).prop_map(|(key, words, kinds)| {
        let (category, what, when_to_use, arguments, notes) = words;
        let (row_type, effect, risk, planner_rank, third_party) = kinds;
        Entry { key, category, row_type, effect, risk, planner_rank, what, when_to_use, arguments, notes, third_party }
    })
}

fn question() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => vec(select(WORDS), 1..6).prop_map(|words| words.join(" ")),
        2 => (key(), text()).prop_map(|(key, text)| format!("{text} {key}")),
        2 => "[a-z]{3,9}( [a-z]{3,9}){0,3}",
        1 => any::<String>(),
        1 => "\\PC{0,300}",
    ]
}

fn recommendations() -> impl Strategy<Value = Vec<Recommendation>> {
    let one = (text(), key(), any::<bool>());
    vec(one.prop_map(|(pattern, key, demote)| Recommendation { pattern, key, demote }), 0..4)
}

fn filters() -> impl Strategy<Value = Filters> {
    let namespace = option::weighted(0.2, select(&["GET", "send", "mail", "Time.mail", "none"][..]));
    let kinds = (
        option::weighted(0.2, select(RowType::ALL)),
        option::weighted(0.2, select(Effect::ALL)),
        option::weighted(0.2, select(Risk::ALL)),
    );
    (option::weighted(0.2, text()), namespace, kinds).prop_map(|(category, namespace, (row_type, effect, risk))| {
        Filters { category, row_type, effect, risk, namespace: namespace.map(str::to_owned) }
    })
}

fn ask(index: &Index, text: &str, filters: &Filters, offset: usize, limit: usize, abstain: bool) -> Ranked {
    let question = Question { text, filters: filters.clone(), offset, limit, abstain };
    index.ask(&question, &is_visible)
}

fn is_visible(key: &Key) -> bool {
    !key.as_str().ends_with("it")
}

fn passes(entry: &Entry, filters: &Filters) -> bool {
    filters.category.as_ref().is_none_or(|c| entry.category.as_ref() == Some(c))
        && filters.row_type.is_none_or(|t| entry.row_type == t)
        && filters.effect.is_none_or(|e| entry.effect == e)
        && filters.risk.is_none_or(|r| entry.risk == r)
        && filters.namespace.as_ref().is_none_or(|n| entry.key.is_under(n))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_allowed_ordered_and_pages_into_each_row_once(
        entries in vec(entry(), 0..30), recommended in recommendations(), filters in filters(),
        text in question(), abstain in any::<bool>(), page in 1_usize..7,
    ) {
        let rows: BTreeMap<Key, Entry> = entries.iter().map(|e| (e.key.clone(), e.clone())).collect();
        let mut index = Index::build(entries);
        index.set_recommended(recommended);
        let all = ask(&index, &text, &filters, 0, usize::MAX, abstain);
        prop_assert_eq!(all.total, all.hits.len());
        for hit in &all.hits {
            prop_assert!(is_visible(&hit.key) && passes(&rows[&hit.key], &filters));
            prop_assert!((0.0..=1.0).contains(&hit.score) && hit.score.is_finite() && !hit.why.is_empty());
        }
        prop_assert!(all.hits.is_sorted_by(|a, b| a.score >= b.score));
        let mut paged = Vec::new();
        for offset in (0..all.total + page).step_by(page) {
            let part = ask(&index, &text, &filters, offset, page, abstain);
            prop_assert_eq!(part.total, all.total);
            paged.extend(part.hits);
        }
        let mut keys: Vec<&Key> = paged.iter().map(|hit| &hit.key).collect();
        keys.sort();
        keys.dedup();
        prop_assert_eq!(keys.len(), all.total);
        prop_assert_eq!(paged, all.hits);
    }

    #[test]
    fn rows_written_one_by_one_answer_like_a_fresh_build(
        writes in vec((entry(), any::<bool>()), 0..40), texts in vec(question(), 1..6),
    ) {
        let mut index = Index::default();
        let mut rows = BTreeMap::new();
        for (entry, removed) in writes {
            // A clone held across the write makes it copy what it touches.
            let before = index.clone();
            if removed {
                prop_assert_eq!(index.remove(&entry.key), rows.remove(&entry.key).is_some());
            } else {
                index.upsert(&entry);
                rows.insert(entry.key.clone(), entry);
            }
            drop(before);
        }
        let fresh = Index::build(rows.into_values());
        prop_assert_eq!(index.len(), fresh.len());
        for text in texts {
            let filters = Filters::default();
            prop_assert_eq!(
                ask(&index, &text, &filters, 0, 50, false),
                ask(&fresh, &text, &filters, 0, 50, false)
            );
        }
    }

    #[test]
    fn any_text_is_safe_in_every_field(texts in vec(any::<String>(), 5), text in any::<String>()) {
        let [category, what, when_to_use, meaning, notes] = texts.try_into().expect("five");
        let entry = Entry {
            category: Some(category),
            when_to_use,
            arguments: vec![(what.clone(), meaning)],
            notes: notes.clone(),
            ..crate::row("GET", "", &what)
        };
        let mut index = Index::build([entry]);
        index.set_recommended(vec![Recommendation { pattern: notes, key: Key::parse("GET").unwrap(), demote: false }]);
        ask(&index, &text, &Filters::default(), 0, 50, true);
        ask(&index, &what, &Filters::default(), 0, 50, true);
    }
}
