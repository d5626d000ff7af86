//! A question is answered.

use std::collections::HashSet;

use callbook_domain::key::Key;

use crate::apart;
use crate::index::Index;
use crate::mention::{Mention, Spelling};
use crate::question::{Hit, Question, Ranked};
use crate::reading::Reading;
use crate::row::Row;
use crate::score::{self, DECIDING, Scale};
use crate::shortlist::{Candidate, by_rank};

/// How many matched words a hit names.
const WHY: usize = 8;

/// The answer as far as it has come.
#[derive(Default)]
struct Answer<'i> {
    placed: Vec<Placed<'i>>,
    seen: HashSet<u32>,
}

/// A slot and its row.
type Found<'i> = (u32, &'i Row);

/// A row at its place in the answer.
struct Placed<'i> {
    row: &'i Row,
    score: f64,
    why: Option<&'static str>,
}

impl Index {
    /// The rows that fit a question, best first: rows whose key it writes out; rows that the operator recommends for
    /// it; rows whose key it says in words; rows that fit by their words; rows that the operator demotes for it. Keys
    /// come in the order of the question, recommended rows by the exactness of the pattern, and all else by score,
    /// planner rank and key. `visible` says which rows this caller may see; it is asked for likely rows only.
    pub fn ask(&self, question: &Question<'_>, visible: &dyn Fn(&Key) -> bool) -> Ranked {
        let reading = Reading::of(question.text, self);
        let may_answer = |row: &Row| row.passes(&question.filters) && visible(&row.key);
        let mut fitting = self.candidates(&reading, &may_answer);
        let scale = Scale::of(fitting.iter().map(|c| c.overlap), reading.asked.len(), reading.rarest);
        fitting.retain(|c| c.overlap.fits(&scale));
        fitting.iter_mut().for_each(|c| c.place(&scale));
        fitting.sort_unstable_by(Candidate::compare);
        let (written, spoken) = self.named(question.text, &reading, scale.best_weight(), &may_answer);
        let (recommended, demoted) = self.standing(&reading, &may_answer);

        let certainty = fitting.iter().take(DECIDING).map(|c| c.overlap.certainty(&scale)).fold(0.0, f64::max);
        if question.abstain && certainty < 0.5 {
            fitting.clear();
        }
        let mut answer = Answer::default();
        answer.put(written, "exact key");
        answer.put(recommended, "recommended");
        let (last, spoken) = spoken.into_iter().partition(|(slot, _)| demoted.contains(slot));
        answer.put(spoken, "exact key");
        answer.fit(&fitting, certainty, last, &demoted);
        let total = answer.placed.len();
        let from = question.offset.min(total);
        let page = from..from.saturating_add(question.limit).min(total);
        let rows: Vec<&Row> = answer.placed.iter().map(|placed| placed.row).collect();
        let apart = apart::differences(&rows, page.clone(), &self.vocabulary);
        let hits = answer.placed[page].iter().zip(apart).map(|(placed, apart)| hit(placed, &reading, apart));
        Ranked { total, hits: hits.collect() }
    }

    /// The rows whose key the question writes out, and those whose key it says in words, which must also fit.
    fn named<'i>(
        &'i self,
        text: &str,
        reading: &Reading,
        best: f32,
        may_answer: &dyn Fn(&Row) -> bool,
    ) -> (Vec<Found<'i>>, Vec<Found<'i>>) {
        let accept = |mention: Mention| {
            let Some(row) = self.row(mention.slot).filter(|row| may_answer(row)) else { return false };
            let bar = match mention.spelling {
                Spelling::Written | Spelling::Whole | Spelling::Words(3..) => return true,
                Spelling::Words(2) => score::NAMED_BY_WORDS,
                Spelling::Words(_) => score::NAMED_BY_ONE_WORD,
            };
            reading.overlap(row, self).weight >= bar * best
        };
        let key = |slot| self.row(slot).map(|row| &row.key);
        let mentions = self.mentions.find(text, &reading.tokens, key, accept);
        let (written, spoken): (Vec<Mention>, Vec<Mention>) =
            mentions.into_iter().partition(|mention| mention.spelling == Spelling::Written);
        let found = |mention: Mention| Some((mention.slot, self.row(mention.slot)?));
        (written.into_iter().filter_map(found).collect(), spoken.into_iter().filter_map(found).collect())
    }

    /// The rows that are recommended for the question, the most exact pattern first, and the slots demoted for it.
    fn standing<'i>(&'i self, reading: &Reading, may_answer: &dyn Fn(&Row) -> bool) -> (Vec<Found<'i>>, HashSet<u32>) {
        if self.recommended.is_empty() {
            return Default::default();
        }
        let stems = reading.stems(self);
        let (mut recommended, mut demoted) = (Vec::new(), HashSet::new());
        for standing in self.recommended.iter().filter(|s| s.applies(&stems)) {
            let Some(slot) = self.slot(&standing.key) else { continue };
            let Some(row) = self.row(slot).filter(|row| may_answer(row)) else { continue };
            if standing.demote {
                demoted.insert(slot);
            } else {
                recommended.push((standing.exactness(), slot, row));
            }
        }
        recommended.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| by_rank(a.2, b.2)));
        (recommended.into_iter().map(|(_, slot, row)| (slot, row)).collect(), demoted)
    }
}

impl<'i> Answer<'i> {
    /// Puts these rows next, each row once.
    fn put(&mut self, rows: Vec<Found<'i>>, why: &'static str) {
        for (_, row) in rows.into_iter().filter(|(slot, _)| self.seen.insert(*slot)) {
            self.placed.push(Placed { row, score: 1.0, why: Some(why) });
        }
    }

    /// Puts the rows that fit by their words next, and the demoted ones after all others.
    fn fit(&mut self, fitting: &[Candidate<'i>], certainty: f64, named: Vec<Found<'i>>, demoted: &HashSet<u32>) {
        let top = fitting.first().map_or(1.0, |c| c.order);
        let mut last: Vec<_> = named.into_iter().map(|(slot, row)| (slot, row, certainty)).collect();
        let mut others = Vec::new();
        for candidate in fitting.iter().filter(|c| !self.seen.contains(&c.slot)) {
            let side = if demoted.contains(&candidate.slot) { &mut last } else { &mut others };
            side.push((candidate.slot, candidate.row, certainty * (candidate.order / top).min(1.0)));
        }
        for (rows, why) in [(others, None), (last, Some("demoted"))] {
            for (slot, row, score) in rows {
                let before = self.placed.last().map_or(1.0, |placed| placed.score);
                if self.seen.insert(slot) {
                    self.placed.push(Placed { row, score: score.min(before), why });
                }
            }
        }
    }
}

fn hit(placed: &Placed<'_>, reading: &Reading, apart: Option<String>) -> Hit {
    let words = placed.row.words.iter().filter_map(|held| Some((reading.asks_for(*held)?, held.strongest())));
    let mut words: Vec<_> = words.collect();
    words.sort_by(|(a, _), (b, _)| b.telling.total_cmp(&a.telling));
    let mut why: Vec<String> = placed.why.map(str::to_owned).into_iter().collect();
    for (asked, field) in words.into_iter().take(WHY) {
        if let Some(word) = &asked.taken_for {
            why.push(format!("typo: {}→{word}", asked.word));
        }
        why.push(format!("{}: {}", field.name(), asked.taken_for.as_deref().unwrap_or(&asked.word)));
    }
    if score::is_near(placed.row.nearness(reading.meaning.as_ref())) {
        why.push("meaning".to_owned());
    }
    why.extend(apart);
    Hit { key: placed.row.key.clone(), score: placed.score, why }
}
