//! The figures for a person and for a program.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::figures::Figures;

/// One line a set, shares in percent; the mean below where there are several.
pub fn text(measured: &[Figures]) -> String {
    let means: Vec<Figures> = mean(measured).into_iter().collect();
    let lines = || measured.iter().chain(&means);
    let width = lines().map(|figures| figures.name.chars().count()).chain([3]).max().unwrap_or(3);
    let mut table = format!(
        "{:width$}{:>8}{:>8}{:>7}{:>7}{:>7}{:>7}{:>9}{:>7}{:>9}{:>10}{:>7}{:>9}{:>9}{:>9}{:>9}\n",
        "set",
        "rows",
        "asked",
        "hit@1",
        "R@1",
        "R@5",
        "R@12",
        "nDCG@10",
        "MRR",
        "sibling",
        "abstain:",
        "lost",
        "refused",
        "p50 ms",
        "p90 ms",
        "p99 ms",
    );
    for figures in lines() {
        let percent = |share: f64| 100.0 * share;
        let refused = figures.refused.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", percent(share)));
        // a String takes everything
        let _ = writeln!(
            table,
            "{:width$}{:8}{:8}{:7.1}{:7.1}{:7.1}{:7.1}{:9.2}{:7.1}{:9.1}{:10.2}{:7.1}{refused:>9}{:9.3}{:9.3}{:9.3}",
            figures.name,
            figures.rows,
            figures.answerable + figures.absent,
            percent(figures.hit_1),
            percent(figures.recall_1),
            percent(figures.recall_5),
            percent(figures.recall_12),
            percent(figures.ndcg_10),
            percent(figures.mrr),
            percent(figures.wrong_sibling),
            percent(figures.ndcg_10_abstaining),
            percent(figures.lost),
            ms(figures.p50),
            ms(figures.p90),
            ms(figures.p99),
        );
    }
    table
}

/// `{"sets":[…],"mean":…}`, shares from 0 to 1, times in milliseconds; no mean of one set.
pub fn json(measured: &[Figures]) -> String {
    let sets: Vec<Value> = measured.iter().map(object).collect();
    format!("{:#}\n", json!({"sets": sets, "mean": mean(measured).as_ref().map(object)}))
}

fn mean(measured: &[Figures]) -> Option<Figures> {
    (measured.len() > 1).then(|| Figures::mean(measured))
}

fn object(figures: &Figures) -> Value {
    json!({
        "set": figures.name,
        "rows": figures.rows,
        "answerable": figures.answerable,
        "absent": figures.absent,
        "hit_1": figures.hit_1,
        "recall_1": figures.recall_1,
        "recall_5": figures.recall_5,
        "recall_12": figures.recall_12,
        "ndcg_10": figures.ndcg_10,
        "mrr": figures.mrr,
        "wrong_sibling": figures.wrong_sibling,
        "abstaining": {
            "ndcg_10": figures.ndcg_10_abstaining,
            "lost": figures.lost,
            "refused": figures.refused,
        },
        "latency_ms": {"p50": ms(figures.p50), "p90": ms(figures.p90), "p99": ms(figures.p99)},
    })
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_sets_have_a_mean_and_one_has_none() {
        let one = Figures { name: "one".to_owned(), ndcg_10: 0.5, answerable: 2, ..Figures::default() };
        let two = Figures { name: "two".to_owned(), ndcg_10: 1.0, refused: Some(0.25), ..one.clone() };
        let table = text(&[one.clone(), two.clone()]);
        assert_eq!(table.lines().count(), 4);
        assert!(table.lines().nth(3).unwrap().contains("75.00"), "{table}");
        assert_eq!(text(std::slice::from_ref(&one)).lines().count(), 2);
        let told: Value = serde_json::from_str(&json(&[one, two])).unwrap();
        assert_eq!((&told["mean"]["ndcg_10"], &told["sets"][0]["abstaining"]["refused"]), (&json!(0.75), &Value::Null));
        assert_eq!(told["mean"]["abstaining"]["refused"], json!(0.25));
    }
}
