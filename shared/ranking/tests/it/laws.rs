//! What holds for every book and every question, and books and questions of every kind to try it on.

use std::collections::BTreeMap;

use callbook_domain::key::Key;
use callbook_domain::row::{Effect, Risk, RowType};
use callbook_ranking::{Entry, Filters, Index, Question, Ranked, Recommendation};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseError;

const WORDS: &[&str] = &[
    "time", "times", "timer", "weather", "whether", "issue", "issues", "list", "delete", "send", "email", "mail",
    "the", "is", "it", "天気", "予報", "base64", "getUser", "user", "HTTP", "zürich",
];

pub fn text() -> impl Strategy<Value = String> {
    vec(select(WORDS), 0..6).prop_map(|words| words.join(" "))
}

pub fn key() -> impl Strategy<Value = Key> {
    let segment = || vec(select(&["GET", "send", "Time", "mail", "ISSUE", "it"][..]), 1..3);
    (segment(), option::of(segment())).prop_map(|(first, second)| {
        let second = second.map(|s| format!(".{}", s.join("_"))).unwrap_or_default();
        Key::parse(&(first.join("_") + &second)).expect("a key")
    })
}

/// Text of any characters, those too that nobody sees.
pub fn wild() -> impl Strategy<Value = String> {
    let marks =
        select(&["\0", "\"", "'", "`", "(", "*/", "\u{202e}", "\u{301}", "\u{feff}", "İ", "ß", "ﬁ", "/", "@"][..]);
    let piece = prop_oneof![
        vec(any::<char>(), 0..12).prop_map(String::from_iter),
        select(WORDS).prop_map(str::to_owned),
        (select(WORDS), any::<prop::sample::Index>(), any::<char>())
            .prop_map(|(word, at, other)| misspelt(word, at, other)),
        (select(WORDS), 1_usize..400).prop_map(|(word, times)| word.repeat(times)),
        marks.prop_map(str::to_owned),
    ];
    (vec(piece, 0..24), select(&["", " ", "_", ".", "\n"][..])).prop_map(|(pieces, between)| pieces.join(between))
}

fn misspelt(word: &str, at: prop::sample::Index, other: char) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let at = at.index(letters.len());
    letters[at] = other;
    letters.into_iter().collect()
}

/// Any entry, its texts made by `words`.
pub fn entry<S: Strategy<Value = String>>(words: fn() -> S) -> impl Strategy<Value = Entry> {
    let texts = (option::of(words()), words(), words(), vec((words(), words()), 0..3), words());
    let kinds = (select(RowType::ALL), select(Effect::ALL), select(Risk::ALL), 0..3, any::<bool>());
    (key(), texts, kinds).prop_map(|(key, texts, kinds)| {
        let (category, what, when_to_use, arguments, notes) = texts;
        let (row_type, effect, risk, planner_rank, third_party) = kinds;
        Entry { key, category, row_type, effect, risk, planner_rank, what, when_to_use, arguments, notes, third_party }
    })
}

pub fn question() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => vec(select(WORDS), 1..6).prop_map(|words| words.join(" ")),
        2 => (key(), text()).prop_map(|(key, text)| format!("{text} {key}")),
        2 => "[a-z]{3,9}( [a-z]{3,9}){0,3}",
        2 => wild(),
    ]
}

pub fn recommendations() -> impl Strategy<Value = Vec<Recommendation>> {
    let one = (prop_oneof![text(), wild()], key(), any::<bool>());
    vec(one.prop_map(|(pattern, key, demote)| Recommendation { pattern, key, demote }), 0..4)
}

pub fn filters() -> impl Strategy<Value = Filters> {
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

/// Every hit may answer, hits stand in order, and the pages hold each of them once.
pub fn an_answer_is_sound(
    index: &Index,
    rows: &BTreeMap<Key, Entry>,
    text: &str,
    filters: &Filters,
    (abstain, page): (bool, usize),
) -> Result<(), TestCaseError> {
    let all = ask(index, text, filters, (0, usize::MAX), abstain);
    prop_assert_eq!(all.total, all.hits.len());
    for hit in &all.hits {
        prop_assert!(is_visible(&hit.key) && passes(&rows[&hit.key], filters));
        prop_assert!((0.0..=1.0).contains(&hit.score) && hit.score.is_finite() && !hit.why.is_empty());
    }
    prop_assert!(all.hits.is_sorted_by(|a, b| a.score >= b.score));
    let mut paged = Vec::new();
    for offset in (0..all.total + page).step_by(page) {
        let part = ask(index, text, filters, (offset, page), abstain);
        prop_assert_eq!(part.total, all.total);
        paged.extend(part.hits);
    }
    let mut keys: Vec<&Key> = paged.iter().map(|hit| &hit.key).collect();
    keys.sort();
    keys.dedup();
    prop_assert_eq!(keys.len(), all.total);
    prop_assert_eq!(paged, all.hits);
    Ok(())
}

/// An index after these writes, one by one, a clone held across each so that it copies what it touches; and the rows
/// that are left. A write is an entry, and whether it is taken out instead of put in.
pub fn written(writes: Vec<(Entry, bool)>) -> Result<(Index, BTreeMap<Key, Entry>), TestCaseError> {
    let (mut index, mut rows) = (Index::default(), BTreeMap::new());
    for (entry, removed) in writes {
        let before = index.clone();
        if removed {
            prop_assert_eq!(index.remove(&entry.key), rows.remove(&entry.key).is_some());
        } else {
            index.upsert(&entry);
            rows.insert(entry.key.clone(), entry);
        }
        drop(before);
    }
    Ok((index, rows))
}

/// Two indices give one answer.
pub fn answers_are_equal(one: &Index, other: &Index, text: &str) -> Result<(), TestCaseError> {
    let answer = |index| ask(index, text, &Filters::default(), (0, 50), false);
    prop_assert_eq!(answer(one), answer(other));
    Ok(())
}

fn ask(index: &Index, text: &str, filters: &Filters, (offset, limit): (usize, usize), abstain: bool) -> Ranked {
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
