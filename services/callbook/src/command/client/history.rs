//! `callbook history`: the versions of a row.

use std::collections::HashSet;
use std::fmt::Write as _;

use callbook_domain::contract::clean;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::Ended;
use super::gateway::Gateway;
use super::page::{Listing, Page, Paging};
use super::screen::Screen;
use super::text::{BAD, BOLD, DIM, GOOD, shorten, visible};

/// The most versions of a page.
const MOST: u32 = 50;
/// How many lines of a long text are shown of each side.
const LINES: usize = 12;

#[derive(Debug, Args)]
#[command(after_help = "`callbook restore KEY --version N` writes a version again.")]
pub struct History {
    /// Key of the row, which may be deleted
    key: String,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Deserialize)]
struct Versions {
    versions: Vec<Version>,
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Version {
    version: i64,
    revision: i64,
    at: Option<String>,
    #[serde(default)]
    actor: String,
    action: Option<String>,
    #[serde(default)]
    diff: Vec<Change>,
    before: Option<Value>,
    after: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Change {
    column: String,
    before: Option<Value>,
    after: Option<Value>,
}

impl History {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let path = ["api", "directory", &self.key, "history"];
        let read = |body: &[u8]| {
            let found: Versions = serde_json::from_slice(body)?;
            let text = found.versions.iter().map(|version| version.lines(screen)).collect();
            Ok(Page { text, count: found.versions.len(), next_cursor: found.next_cursor })
        };
        let listing = Listing { path: &path, query: Vec::new(), most: MOST, nothing: "it has no history", read };
        self.paging.walk(gateway, screen, listing).await
    }
}

impl Version {
    fn lines(&self, screen: &Screen) -> String {
        let action = self.action.as_deref().unwrap_or("write");
        let head = format!("v{:<4} {action:<8}", self.version);
        let rest = format!("{}  revision {}  {}", self.at.as_deref().unwrap_or("?"), self.revision, clean(&self.actor));
        let mut text = format!("{}  {}\n", screen.paint.with(BOLD, &head), screen.paint.with(DIM, &rest));
        // a row that comes or goes differs in everything
        if self.before.is_some() && self.after.is_some() {
            self.diff.iter().for_each(|change| change.write(&mut text, screen));
        }
        text
    }
}

impl Change {
    fn write(&self, text: &mut String, screen: &Screen) {
        let (before, after) = (shown(self.before.as_ref()), shown(self.after.as_ref()));
        let _ = writeln!(text, "      {}", clean(&self.column));
        for (mark, own, other, style) in [("-", &before, &after, BAD), ("+", &after, &before, GOOD)] {
            let known: HashSet<&str> = other.lines().collect();
            let changed: Vec<&str> = own.lines().filter(|line| !known.contains(line)).collect();
            for line in changed.iter().take(LINES) {
                let line = shorten(&format!("{mark} {}", visible(line)), screen.width.saturating_sub(8));
                let _ = writeln!(text, "        {}", screen.paint.with(style, &line));
            }
            if changed.len() > LINES {
                let _ = writeln!(text, "        {mark} … {} more lines", changed.len() - LINES);
            }
        }
    }
}

/// Text as it is, other values as JSON, nothing as nothing.
fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::screen_of;
    use super::*;

    fn lines(text: &str) -> String {
        serde_json::from_str::<Version>(text).unwrap().lines(&screen_of(80))
    }

    #[test]
    fn a_version_shows_the_lines_that_differ() {
        let text = lines(
            r##"{"version":2,"revision":9,"at":"T","actor":"principal:team","action":"patch","before":{},"after":{},"diff":[
            {"column":"content","before":"# WHAT: a\n[\"$1\"]","after":"# WHAT: b\n[\"$1\"]"},
            {"column":"seq","before":null,"after":5},{"column":"enabled","before":true,"after":false}]}"##,
        );
        assert_eq!(
            text,
            "v2    patch     T  revision 9  principal:team\n      content\n        - # WHAT: a\n        + # WHAT: b\n      \
             seq\n        + 5\n      enabled\n        - true\n        + false\n"
        );
    }

    #[test]
    fn a_row_that_came_or_went_is_one_line() {
        let text = lines(
            r#"{"version":1,"revision":3,"at":"T","actor":"owner:terminal-key","action":"create","before":null,"after":{},
            "diff":[{"column":"key","before":null,"after":"K"}]}"#,
        );
        assert_eq!(text, "v1    create    T  revision 3  owner:terminal-key\n");
    }

    #[test]
    fn a_long_difference_is_cut() {
        let long: String = (0..40).map(|n| format!("{n}\\n")).collect();
        let text = lines(&format!(
            r#"{{"version":1,"revision":3,"actor":"","before":{{}},"after":{{}},"diff":[{{"column":"content","before":"","after":"{long}"}}]}}"#
        ));
        assert!(text.ends_with("        + … 28 more lines\n"), "{text}");
    }
}
