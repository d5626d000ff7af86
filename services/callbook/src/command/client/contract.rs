//! `callbook contract`: what a row takes, gives and may do.

use clap::Args;

use super::gateway::Gateway;
use super::screen::{Form, Screen};
use super::text::{BOLD, visible};
use super::{Ended, Verdict};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  callbook contract NOW
  callbook contract NOW --format typescript")]
pub struct Contract {
    /// Key of the row
    key: String,
    /// json, markdown or typescript [default: markdown on a terminal, else json]
    #[arg(long, value_parser = ["json", "markdown", "typescript"], hide_possible_values = true)]
    format: Option<String>,
}

impl Contract {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let is_for_people = screen.is_terminal && screen.form == Form::Text;
        let format = self.format.unwrap_or_else(|| if is_for_people { "markdown" } else { "json" }.to_owned());
        let query = [("key", self.key), ("format", format.clone())];
        let answer = gateway.send(gateway.get(&["api", "dispatch"], &query)?).await?;
        match String::from_utf8(answer.body) {
            Ok(text) if is_for_people && format == "markdown" => screen.text(&headed(&text, screen))?,
            Ok(text) if is_for_people => screen.rows_text(&text, "callbook contract KEY > file")?,
            Ok(text) => screen.json(text.as_bytes())?,
            Err(other) => screen.raw(other.as_bytes(), "callbook contract KEY > file")?,
        }
        Ok(Verdict::Done)
    }
}

/// Markdown with its headings set off.
fn headed(markdown: &str, screen: &Screen) -> String {
    let line = |line: &str| {
        let style = if line.starts_with('#') { BOLD } else { super::text::PLAIN };
        format!("{}\n", screen.paint.with(style, line))
    };
    visible(markdown).lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::screen::Paint;
    use super::super::text::screen_of;
    use super::*;

    #[test]
    fn headings_stand_out_and_nothing_steers_the_terminal() {
        let screen = Screen { paint: Paint(true), ..screen_of(80) };
        assert_eq!(headed("# NOW\n\u{1b}[2Jtext", &screen), "\u{1b}[1m# NOW\u{1b}[0m\n[2Jtext\n");
    }
}
