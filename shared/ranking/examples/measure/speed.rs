//! Speed and memory over books of 1,000, 10,000 and 100,000 rows, their words drawn from the public sets.

use std::time::{Duration, Instant};

use callbook_domain::key::Key;
use callbook_ranking::{Entry, Index, Question};

use crate::random::Random;
use crate::sets::{Asked, Set};

pub fn measure(sets: &[Set]) {
    println!(
        "{:>7}{:>9}{:>10}{:>10}{:>10}{:>10}{:>12}{:>9}",
        "rows", "build", "ask p50", "ask p99", "write p50", "write p99", "shared p99", "B/row"
    );
    // what there is once, whatever the number of rows
    std::hint::black_box(Index::build(book(sets, 1)));
    for rows in [1_000, 10_000, 100_000] {
        let entries = book(sets, rows);
        let before = crate::ALLOCATOR.allocated();
        let start = Instant::now();
        let mut index = Index::build(entries.iter().cloned());
        let built = start.elapsed();
        let memory = (crate::ALLOCATOR.allocated() - before) / rows;
        let times = asks(&index, sets);
        let in_place = writes(&mut index, &entries, Index::upsert);
        let shared = writes(&mut index, &entries, write_to_clone);
        let ms = |d: Duration| d.as_secs_f64() * 1000.0;
        println!(
            "{rows:7}{:8.2}s{:8.3}ms{:8.3}ms{:8.3}ms{:8.3}ms{:10.3}ms{memory:9}",
            built.as_secs_f64(),
            ms(percentile(&times, 50)),
            ms(percentile(&times, 99)),
            ms(percentile(&in_place, 50)),
            ms(percentile(&in_place, 99)),
            ms(percentile(&shared, 99)),
        );
    }
}

/// Rows whose key, description and arguments come from three different rows of the sets.
pub fn book(sets: &[Set], rows: usize) -> Vec<Entry> {
    let pool: Vec<&Entry> = sets.iter().filter(|set| set.name != "nl2bash").flat_map(|set| &set.entries).collect();
    let mut random = Random(99);
    let row = |number| {
        let (name, text, arguments) =
            (pool[random.below(pool.len())], pool[random.below(pool.len())], pool[random.below(pool.len())]);
        let key: String = name.key.as_str().chars().take(100).collect();
        Entry {
            key: Key::parse(&format!("{}_{number}", key.trim_end_matches('.'))).expect("a key with a number is a key"),
            arguments: arguments.arguments.clone(),
            ..text.clone()
        }
    };
    (0..rows).map(row).collect()
}

/// The time of each question, the shortest of five passes over all: what is measured is the index, not what else the
/// machine does.
fn asks(index: &Index, sets: &[Set]) -> Vec<Duration> {
    let questions: Vec<&Asked> = sets.iter().flat_map(|set| set.asked.iter().step_by(set.asked.len() / 300)).collect();
    let mut times = vec![Duration::MAX; questions.len()];
    for _ in 0..5 {
        for (asked, time) in questions.iter().zip(&mut times) {
            let start = Instant::now();
            std::hint::black_box(index.ask(&Question::new(&asked.text), &|_| true));
            *time = start.elapsed().min(*time);
        }
    }
    times.sort_unstable();
    times
}

/// The times of 1,000 writes, each of another row, done by `write`.
fn writes(index: &mut Index, entries: &[Entry], write: fn(&mut Index, &Entry)) -> Vec<Duration> {
    let mut random = Random(7);
    let mut times: Vec<Duration> = (0..1000)
        .map(|_| {
            let mut entry = entries[random.below(entries.len())].clone();
            entry.what.push_str(" Changed today, see zorblax");
            let start = Instant::now();
            write(index, &entry);
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}

/// A write beside readers: to a clone, which then takes the index's place.
fn write_to_clone(index: &mut Index, entry: &Entry) {
    let mut next = index.clone();
    next.upsert(entry);
    *index = next;
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default()
}
