//! `callbook ask`: the rows that answer a question, best first.

use clap::Args;
use serde::Deserialize;

use super::gateway::Gateway;
use super::page::given;
use super::screen::{Form, Screen};
use super::text::{BOLD, Cell, DIM, PLAIN, count_of, effect_cell, quoted, table, visible};
use super::{Ended, Verdict};

/// How many matches are shown where nothing is said.
const LIMIT: u32 = 12;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  callbook ask what time is it
  callbook ask weather at a place --limit 3 --effect read")]
pub struct Ask {
    /// What you want to do, in plain words
    #[arg(required = true, value_name = "QUESTION")]
    question: Vec<String>,
    /// Matches at most
    #[arg(long, value_name = "N", default_value_t = LIMIT, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Only rows of this category
    #[arg(long)]
    category: Option<String>,
    /// Only rows of this effect
    #[arg(long, value_parser = ["read", "write", "destructive"])]
    effect: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Answered {
    count: u64,
    matches: Vec<Match>,
    hint: Option<String>,
    #[serde(default)]
    stale: bool,
}

/// One row in short, as ask and the listings give it.
#[derive(Debug, Deserialize)]
pub struct Match {
    key: String,
    what: Option<String>,
    untrusted_text: Option<Untrusted>,
    #[serde(rename = "type")]
    row_type: Option<String>,
    effect: Option<String>,
    risk: Option<String>,
    #[serde(default)]
    example: String,
    #[serde(default)]
    why: Vec<String>,
}

/// Text that third parties wrote.
#[derive(Debug, Deserialize)]
pub struct Untrusted {
    what: Option<String>,
}

impl Ask {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let mut query = vec![("ask", self.question.join(" ")), ("limit", self.limit.to_string())];
        query.extend(given([("category", self.category), ("effect", self.effect)]));
        let answer = gateway.send(gateway.get(&["api", "dispatch"], &query)?).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let answered: Answered = answer.read()?;
        screen.text(&answered.lines(screen))?;
        for note in answered.notes() {
            screen.note(&visible(&note));
        }
        Ok(Verdict::Done)
    }
}

impl Answered {
    fn lines(&self, screen: &Screen) -> String {
        let rows: Vec<Vec<Cell>> = self.matches.iter().map(Match::cells).collect();
        let mut text = table(&rows, screen);
        if let Some(best) = self.matches.first() {
            let why = best.why.join(", ");
            let why = if why.is_empty() { why } else { format!("because: {why}\n") };
            let call = format!("callbook invoke {}{}", best.key, body_of(&best.example));
            text.push_str(&screen.paint.with(DIM, &visible(&format!("\n{why}try: {call}"))));
            text.push('\n');
        }
        text
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.matches.is_empty() {
            notes.push("nothing fits".to_owned());
            notes.extend(self.hint.clone());
        }
        let shown = self.matches.len() as u64;
        if shown > 0 && self.count > shown {
            notes.push(format!("{} fit; more with --limit", count_of(self.count, "row", "rows")));
        }
        if self.stale {
            notes.push("the database does not answer; this is what was last known".to_owned());
        }
        notes
    }
}

impl Match {
    /// Key, effect, type, and what it does.
    pub fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::new(&self.key, BOLD),
            effect_cell(self.effect.as_deref(), self.risk.as_deref()),
            Cell::new(self.row_type.as_deref().unwrap_or("?"), DIM),
            what_cell(self.what.as_deref(), self.untrusted_text.as_ref()),
        ]
    }
}

/// What a row does; words of third parties stand back.
pub fn what_cell(own: Option<&str>, untrusted: Option<&Untrusted>) -> Cell {
    match (own, untrusted.and_then(|text| text.what.as_deref())) {
        (None, Some(what)) => Cell::new(format!("third party: {what}"), DIM),
        (own, _) => Cell::new(own.unwrap_or_default(), PLAIN),
    }
}

fn body_of(example: &str) -> String {
    match example {
        "" => String::new(),
        body if body.starts_with('-') => format!(" -- {}", quoted(body)),
        body => format!(" {}", quoted(body)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::screen_of;
    use super::*;

    fn answered(text: &str) -> Answered {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn matches_are_a_table_and_the_best_is_a_command() {
        let answered = answered(
            r#"{"question":"q","count":2,"best":null,"matches":[
            {"key":"WEATHER_NOW","what":"The weather","when_to_use":"","type":"http","category":"web","effect":"read","risk":"low",
             "example":"37.77|-122.42","score":0.91,"why":["words in WHAT","key"]},
            {"key":"X","untrusted_text":{"what":"Ignore\nall"},"type":"fn","effect":"destructive","risk":"high","example":"","score":0.1,"why":[]}]}"#,
        );
        assert_eq!(
            answered.lines(&screen_of(70)),
            "WEATHER_NOW  read          http  The weather\n\
             X            destructive!  fn    third party: Ignore all\n\n\
             because: words in WHAT, key\ntry: callbook invoke WEATHER_NOW '37.77|-122.42'\n"
        );
        assert!(answered.notes().is_empty());
    }

    #[test]
    fn an_empty_answer_is_said_in_words() {
        let answered =
            answered(r#"{"question":"q","count":0,"best":null,"matches":[],"hint":"try other words","stale":true}"#);
        assert_eq!(answered.lines(&screen_of(70)), "");
        assert_eq!(answered.notes()[..2], ["nothing fits", "try other words"]);
        assert_eq!(answered.notes().len(), 3);
    }

    #[test]
    fn an_example_that_looks_like_a_flag_is_kept_from_the_flags() {
        assert_eq!((body_of(""), body_of("a"), body_of("-1|2")), (String::new(), " a".into(), " -- '-1|2'".into()));
    }
}
