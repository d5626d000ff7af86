//! Questions that nothing answers, and those that are lost to that.

use crate::sets::Set;

const ABSENT: &str = include_str!("absent.txt");

/// How many absent questions get an empty answer, and how many answerable ones.
pub fn measure(sets: &[Set], file: Option<String>) {
    let other = file.map(|path| std::fs::read_to_string(path).expect("a file of questions"));
    let absent = other.as_deref().unwrap_or(ABSENT);
    let (mut refused_mean, mut lost_mean) = (0.0, 0.0);
    println!("{:11}{:>9}{:>7}    share of empty answers, %", "abstention", "absent", "lost");
    for set in sets {
        let is_empty = |text: &str| set.ask(text, true, 1).total == 0;
        let refused = absent.lines().filter(|text| is_empty(text)).count() as f64 / absent.lines().count() as f64;
        let lost = set.asked.iter().filter(|asked| is_empty(&asked.text)).count() as f64 / set.asked.len() as f64;
        println!("{:11}{:9.1}{:7.1}", set.name, 100.0 * refused, 100.0 * lost);
        refused_mean += 100.0 * refused / sets.len() as f64;
        lost_mean += 100.0 * lost / sets.len() as f64;
    }
    println!("{:11}{refused_mean:9.1}{lost_mean:7.1}", "mean");
}
