//! What is counted.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use callbook_domain::key::Key;
use callbook_ranking::Question;

use super::set::{Asked, Set};

/// How many rows of an answer are looked at: as many as `ask` gives.
const LOOKED_AT: usize = 12;

/// How well the questions of a set are answered. Shares are 0 to 1, over the questions that have a right answer where
/// nothing else is said.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The set.
    pub name: String,
    /// Rows.
    pub rows: usize,
    /// Questions that have a right answer.
    pub answerable: usize,
    /// Questions that have none.
    pub absent: usize,
    /// The first row is right.
    pub hit_1: f64,
    /// Share of the right rows that come first.
    pub recall_1: f64,
    /// Share of the right rows among the first 5.
    pub recall_5: f64,
    /// Share of the right rows among the first 12.
    pub recall_12: f64,
    /// Normalised discounted cumulative gain of the first 10.
    pub ndcg_10: f64,
    /// 1 / place of the first right row among 12.
    pub mrr: f64,
    /// The first row is wrong, and its key has half of its words, or more, in common with that of a right row.
    pub wrong_sibling: f64,
    /// `ndcg_10` where questions that nothing seems to fit get an empty answer.
    pub ndcg_10_abstaining: f64,
    /// Questions that have a right answer and got an empty one.
    pub lost: f64,
    /// Share of the questions without a right answer that got an empty one; nothing where there are no such questions.
    pub refused: Option<f64>,
    /// Half of the questions took no longer.
    pub p50: Duration,
    /// Nine of ten took no longer.
    pub p90: Duration,
    /// 99 of 100 took no longer.
    pub p99: Duration,
}

impl Figures {
    /// Asks every question of a set twice: without and with abstaining. What is timed is the second, as `ask` does it.
    pub fn of(set: &Set) -> Figures {
        let mut figures = Figures { name: set.name.clone(), rows: set.index.len(), ..Figures::default() };
        let (mut times, mut refused) = (Vec::with_capacity(set.asked.len()), 0_u32);
        for asked in &set.asked {
            let all = keys(set, asked, false);
            let start = Instant::now();
            let given = keys(set, asked, true);
            times.push(start.elapsed());
            if asked.rights > 0 {
                figures.count(asked, &all, &given);
            } else {
                figures.absent += 1;
                refused += u32::from(given.is_empty());
            }
        }
        figures.finish(refused);
        times.sort_unstable();
        [figures.p50, figures.p90, figures.p99] = [50, 90, 99].map(|percent| percentile(&times, percent));
        figures
    }

    /// The mean of each share over several sets, and the median latency's mean.
    pub fn mean(all: &[Figures]) -> Figures {
        let share = |of: fn(&Figures) -> f64| all.iter().map(of).sum::<f64>() / count(all.len());
        let time = |of: fn(&Figures) -> Duration| {
            all.iter().map(of).sum::<Duration>() / u32::try_from(all.len().max(1)).unwrap_or(u32::MAX)
        };
        let refused: Vec<f64> = all.iter().filter_map(|figures| figures.refused).collect();
        Figures {
            name: "mean".to_owned(),
            rows: all.iter().map(|figures| figures.rows).sum(),
            answerable: all.iter().map(|figures| figures.answerable).sum(),
            absent: all.iter().map(|figures| figures.absent).sum(),
            hit_1: share(|f| f.hit_1),
            recall_1: share(|f| f.recall_1),
            recall_5: share(|f| f.recall_5),
            recall_12: share(|f| f.recall_12),
            ndcg_10: share(|f| f.ndcg_10),
            mrr: share(|f| f.mrr),
            wrong_sibling: share(|f| f.wrong_sibling),
            ndcg_10_abstaining: share(|f| f.ndcg_10_abstaining),
            lost: share(|f| f.lost),
            refused: (!refused.is_empty()).then(|| refused.iter().sum::<f64>() / count(refused.len())),
            p50: time(|f| f.p50),
            p90: time(|f| f.p90),
            p99: time(|f| f.p99),
        }
    }

    fn count(&mut self, asked: &Asked, all: &[Key], given: &[Key]) {
        let recall = |n: usize| count(places(all, asked).take_while(|at| *at < n).count()) / count(asked.rights);
        let first = places(all, asked).next();
        self.answerable += 1;
        self.hit_1 += f64::from(u8::from(first == Some(0)));
        self.recall_1 += recall(1);
        self.recall_5 += recall(5);
        self.recall_12 += recall(12);
        self.ndcg_10 += ndcg_10(all, asked);
        self.mrr += first.map_or(0.0, |at| 1.0 / count(at + 1));
        let wrong = all.first().filter(|_| first != Some(0));
        let sibling = wrong.is_some_and(|wrong| asked.right.iter().any(|right| are_siblings(wrong, right)));
        self.wrong_sibling += f64::from(u8::from(sibling));
        self.ndcg_10_abstaining += ndcg_10(given, asked);
        self.lost += f64::from(u8::from(given.is_empty()));
    }

    /// Makes shares of the counts.
    fn finish(&mut self, refused: u32) {
        let questions = count(self.answerable.max(1));
        let sums = [
            &mut self.hit_1,
            &mut self.recall_1,
            &mut self.recall_5,
            &mut self.recall_12,
            &mut self.ndcg_10,
            &mut self.mrr,
            &mut self.wrong_sibling,
            &mut self.ndcg_10_abstaining,
            &mut self.lost,
        ];
        sums.into_iter().for_each(|sum| *sum /= questions);
        self.refused = (self.absent > 0).then(|| f64::from(refused) / count(self.absent));
    }
}

fn keys(set: &Set, asked: &Asked, abstain: bool) -> Vec<Key> {
    let question = Question { abstain, limit: LOOKED_AT, ..Question::new(&asked.text) };
    set.index.ask(&question, &|_| true).hits.into_iter().map(|hit| hit.key).collect()
}

/// Where the right rows stand, from 0.
fn places(keys: &[Key], asked: &Asked) -> impl Iterator<Item = usize> {
    keys.iter().enumerate().filter(|(_, key)| asked.right.contains(key)).map(|(at, _)| at)
}

fn ndcg_10(keys: &[Key], asked: &Asked) -> f64 {
    let gain = |at: usize| 1.0 / count(at + 2).log2();
    let ideal: f64 = (0..asked.rights.min(10)).map(gain).sum();
    places(keys, asked).take_while(|at| *at < 10).map(gain).sum::<f64>() / ideal
}

fn are_siblings(a: &Key, b: &Key) -> bool {
    let words = |key: &Key| -> HashSet<String> {
        let mut spaced = String::new();
        let mut before = ' ';
        for c in key.as_str().chars() {
            if before.is_ascii_lowercase() && c.is_ascii_uppercase() {
                spaced.push(' ');
            }
            spaced.push(c.to_ascii_lowercase());
            before = c;
        }
        spaced.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_owned).collect()
    };
    let (a, b) = (words(a), words(b));
    2 * a.intersection(&b).count() >= a.len().max(1)
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "a count of rows or questions")]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    fn counted(right: &[&str], all: &[&str], given: &[&str]) -> Figures {
        let keys = |keys: &[&str]| keys.iter().map(|k| key(k)).collect::<Vec<_>>();
        let asked = Asked { text: String::new(), right: keys(right), rights: right.len() };
        let mut figures = Figures::default();
        figures.count(&asked, &keys(all), &keys(given));
        figures.finish(0);
        figures
    }

    #[test]
    fn figures_are_those_of_the_books() {
        let figures = counted(&["A", "B"], &["X", "A", "Y", "Z", "W", "B"], &[]);
        let (gain, ideal) = (1.0 / 3_f64.log2() + 1.0 / 7_f64.log2(), 1.0 + 1.0 / 3_f64.log2());
        assert!((figures.ndcg_10 - gain / ideal).abs() < 1e-9);
        assert_eq!((figures.hit_1, figures.recall_1, figures.recall_5, figures.recall_12), (0.0, 0.0, 0.5, 1.0));
        assert_eq!((figures.mrr, figures.lost, figures.ndcg_10_abstaining), (0.5, 1.0, 0.0));
        let figures = counted(&["A"], &["A", "B"], &["A"]);
        assert_eq!((figures.hit_1, figures.ndcg_10, figures.lost, figures.refused), (1.0, 1.0, 0.0, None));
    }

    #[test]
    fn a_wrong_row_that_is_named_much_like_a_right_one_is_a_sibling() {
        assert!(counted(&["ISSUE_LIST"], &["ISSUE_CREATE"], &[]).wrong_sibling > 0.0);
        assert!(counted(&["getUserName"], &["getUserMail"], &[]).wrong_sibling > 0.0);
        assert_eq!(counted(&["ISSUE_LIST"], &["MAIL_SEND"], &[]).wrong_sibling, 0.0);
        assert_eq!(counted(&["ISSUE_LIST"], &["ISSUE_LIST", "ISSUE_CREATE"], &[]).wrong_sibling, 0.0);
    }
}
