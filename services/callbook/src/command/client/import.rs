//! `callbook import`: many rows at once.

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use futures::TryStreamExt as _;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Body, Method, StatusCode};
use serde::Deserialize;
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

use super::gateway::Gateway;
use super::input::STDIN;
use super::page::given;
use super::screen::{Form, Screen};
use super::text::{BAD, GOOD, count_of, visible};
use super::trouble::Trouble;
use super::{Ended, Verdict};

/// How long a whole import may take.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// Bytes that are read at a time.
const PIECE: usize = 64 * 1024;
/// How many refused rows are told, and how many warnings.
const TOLD: usize = 20;
const WARNINGS: usize = 8;

#[derive(Debug, Args)]
#[command(after_help = "The file is NDJSON, one row a line, or one JSON list of rows.

Examples:
  callbook import rows.ndjson
  callbook import rows.ndjson --on-conflict replace
  generate | callbook import - --mode each --provenance third_party")]
pub struct Import {
    /// File with the rows; - is standard input
    file: String,
    /// atomic: all rows or none; each: those that can be written [default: atomic]
    #[arg(long, value_parser = ["atomic", "each"], hide_possible_values = true)]
    mode: Option<String>,
    /// A row whose key exists: refuse, replace or skip [default: refuse]
    #[arg(long, value_parser = ["refuse", "replace", "skip"], hide_possible_values = true)]
    on_conflict: Option<String>,
    /// Accept keys that read like other keys
    #[arg(long)]
    allow_lookalike: bool,
    /// Who wrote the rows that do not say so: owner, third_party or generated
    #[arg(long, value_parser = ["owner", "third_party", "generated"], hide_possible_values = true)]
    provenance: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Imported {
    ok: bool,
    created: u64,
    replaced: u64,
    unchanged: u64,
    refused: Vec<RefusedRow>,
    #[serde(default)]
    warnings: Vec<String>,
    revision: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct RefusedRow {
    line: u64,
    key: Option<String>,
    error: String,
    how_to_fix: Option<String>,
}

impl Import {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let (source, length) = open(&self.file).await?;
        let bar = bar(length);
        let moved = bar.clone();
        let pieces = ReaderStream::with_capacity(source, PIECE).inspect_ok(move |piece| {
            moved.inc(piece.len() as u64);
            if length == Some(moved.position()) {
                moved.set_style(waiting());
            }
        });
        let lookalike = self.allow_lookalike.then(|| "true".to_owned());
        let query = given([
            ("mode", self.mode),
            ("on_conflict", self.on_conflict),
            ("allow_lookalike", lookalike),
            ("provenance", self.provenance),
        ]);
        let request = gateway.request(Method::POST, &["api", "directory:import"])?.query(&query).timeout(PATIENCE);
        // without an announced length: a server that refuses it at once ends the connection while we still send, and its
        // reason is lost
        let request = request.header(CONTENT_TYPE, "application/x-ndjson").body(Body::wrap_stream(pieces));
        let answer = gateway.ask(request).await;
        bar.finish_and_clear();
        let answer = answer?;
        // a refused import says what was refused in the form of an import
        let imported = match answer.status {
            StatusCode::OK | StatusCode::UNPROCESSABLE_ENTITY => answer.read::<Imported>().ok(),
            _ => None,
        };
        let Some(imported) = imported else { return Err(gateway.refused(answer)) };
        let verdict = Verdict::of(imported.ok && imported.refused.is_empty());
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| verdict);
        }
        screen.text(&imported.summary(screen))?;
        imported.notes().iter().for_each(|note| screen.note(&visible(note)));
        Ok(verdict)
    }
}

impl Imported {
    fn summary(&self, screen: &Screen) -> String {
        let style = if self.refused.is_empty() { GOOD } else { BAD };
        let refused = screen.paint.with(style, &format!("{} refused", self.refused.len()));
        let counts = format!("{} created · {} replaced · {} unchanged", self.created, self.replaced, self.unchanged);
        let end = match self.revision {
            _ if !self.ok => " · nothing was written".to_owned(),
            Some(revision) => format!(" · revision {revision}"),
            None => String::new(),
        };
        format!("{counts} · {refused}{end}\n")
    }

    fn notes(&self) -> Vec<String> {
        let told = self.refused.iter().take(TOLD).map(|row| {
            let key = row.key.as_ref().map(|key| format!(" {key}")).unwrap_or_default();
            let fix = row.how_to_fix.as_ref().map(|fix| format!(" ({fix})")).unwrap_or_default();
            format!("line {}{key}: {}{fix}", row.line, row.error)
        });
        let mut notes: Vec<String> = told.collect();
        if let more @ 1.. = self.refused.len().saturating_sub(TOLD) {
            notes.push(format!("… and {}; all of them with -o json", count_of(more as u64, "more row", "more rows")));
        }
        if self.refused.iter().any(|row| row.error.starts_with("already_exists")) {
            notes.push(
                "rows that exist: --on-conflict skip leaves them, --on-conflict replace replaces them".to_owned(),
            );
        }
        notes.extend(self.warnings.iter().take(WARNINGS).map(|warning| format!("warning: {warning}")));
        if let more @ 1.. = self.warnings.len().saturating_sub(WARNINGS) {
            notes.push(format!("… and {}", count_of(more as u64, "more warning", "more warnings")));
        }
        notes
    }
}

/// The rows as they come, and how many bytes they are where that is known.
async fn open(file: &str) -> Result<(Box<dyn AsyncRead + Send + Sync + Unpin>, Option<u64>), Trouble> {
    if file == STDIN {
        return Ok((Box::new(tokio::io::stdin()), None));
    }
    let refused = |error: io::Error| Trouble::usage(format!("{file} cannot be read ({error})"));
    let opened = tokio::fs::File::open(Path::new(file)).await.map_err(refused)?;
    let about = opened.metadata().await.map_err(refused)?;
    if about.is_dir() {
        return Err(Trouble::usage(format!("{file} is a directory")));
    }
    Ok((Box::new(opened), about.is_file().then_some(about.len())))
}

/// How far the sending is; on a terminal only.
fn bar(length: Option<u64>) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
    bar.set_style(match length {
        Some(_) => style("sending  {wide_bar} {bytes}/{total_bytes}  {eta}"),
        None => style("{spinner} sending  {bytes}  {bytes_per_sec}"),
    });
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// While the rows are looked at and written.
fn waiting() -> ProgressStyle {
    style("{spinner} writing  {total_bytes}  {elapsed}")
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

#[cfg(test)]
mod tests {
    use super::super::text::screen_of;
    use super::*;

    #[test]
    fn a_refused_import_says_which_lines_and_that_nothing_changed() {
        let imported: Imported = serde_json::from_str(
            r#"{"ok":false,"created":0,"replaced":0,"unchanged":0,"refused":[
            {"line":3,"key":"K","error":"registry_hygiene_refused: bad_template","how_to_fix":"write it again"},
            {"line":4,"key":null,"error":"invalid_request"}],"warnings":["K: no_what"],"revision":null}"#,
        )
        .unwrap();
        assert_eq!(
            imported.summary(&screen_of(80)),
            "0 created · 0 replaced · 0 unchanged · 2 refused · nothing was written\n"
        );
        assert_eq!(
            imported.notes(),
            [
                "line 3 K: registry_hygiene_refused: bad_template (write it again)",
                "line 4: invalid_request",
                "warning: K: no_what"
            ]
        );
    }

    #[test]
    fn many_refusals_are_counted() {
        let row = || RefusedRow { line: 1, key: None, error: "e".into(), how_to_fix: None };
        let refused = (0..22).map(|_| row()).collect();
        let imported = Imported {
            ok: true,
            created: 1,
            replaced: 2,
            unchanged: 3,
            refused,
            warnings: Vec::new(),
            revision: Some(7),
        };
        assert_eq!(
            imported.summary(&screen_of(80)),
            "1 created · 2 replaced · 3 unchanged · 22 refused · revision 7\n"
        );
        assert_eq!(imported.notes().last().unwrap(), "… and 2 more rows; all of them with -o json");
    }

    #[test]
    fn every_look_of_the_bar_can_be_drawn() {
        for template in [
            "sending  {wide_bar} {bytes}/{total_bytes}  {eta}",
            "{spinner} sending  {bytes}  {bytes_per_sec}",
            "{spinner} writing  {total_bytes}  {elapsed}",
        ] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
