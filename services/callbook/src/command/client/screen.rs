//! Where answers are written: the terminal of a person, or the input of a program.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use clap::builder::styling::Style;

use super::trouble::Trouble;

/// The most text of a row that is written on a terminal, in bytes.
const MOST_ON_TERMINAL: usize = 256 * 1024;
/// Columns where nobody says how many there are.
const COLUMNS: usize = 100;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people.
    Text,
    /// As the server sent it, byte for byte.
    Json,
    /// The bytes that a row gave, and nothing else.
    Raw,
}

/// Standard output and standard error.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// How answers are written.
    pub form: Form,
    /// Whether a person reads standard output.
    pub is_terminal: bool,
    /// How standard output is coloured.
    pub paint: Paint,
    /// Columns of a line; as many as it takes where a program reads.
    pub width: usize,
}

impl Screen {
    /// This process's.
    pub fn new(form: Form) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let filled = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let plain = filled("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let width = if is_terminal { columns().unwrap_or(COLUMNS).max(40) } else { usize::MAX };
        Screen { form, is_terminal, paint: Paint(is_terminal && !plain), width }
    }

    /// Writes text that is ready to be read.
    pub fn text(&self, text: &str) -> Result<(), Trouble> {
        write(text.as_bytes())
    }

    /// Writes JSON of the server as it is. A terminal gets a line end behind it, and escapes for what would steer it.
    pub fn json(&self, body: &[u8]) -> Result<(), Trouble> {
        if !self.is_terminal {
            return write(body);
        }
        let line_end = if body.ends_with(b"\n") { "" } else { "\n" };
        write(format!("{}{line_end}", escaped(&String::from_utf8_lossy(body))).as_bytes())
    }

    /// Writes what a row gave as it is; a terminal gets a line end behind it. Bytes that would take over a terminal are
    /// not written on one; `again` is how to get them into a file.
    pub fn raw(&self, bytes: &[u8], again: &str) -> Result<(), Trouble> {
        if self.is_terminal && is_binary(bytes) {
            let size = bytes.len();
            return Err(Trouble::Broken(format!(
                "{size} bytes that are not plain text; write them to a file: `{again}`"
            )));
        }
        self.json(bytes)
    }

    /// Writes text of a row: on a terminal without what could take it over, and not without end.
    pub fn rows_text(&self, text: &str, again: &str) -> Result<(), Trouble> {
        let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        if !self.is_terminal {
            return write(text.as_bytes()).and_then(|()| write(line_end.as_bytes()));
        }
        let shown = head(text, MOST_ON_TERMINAL);
        write(super::text::visible(shown).as_bytes())?;
        write(line_end.as_bytes())?;
        if shown.len() < text.len() {
            self.note(&format!("… {} more bytes; all of it: `{again}`", text.len() - shown.len()));
        }
        Ok(())
    }

    /// Says something beside the answer, on standard error. A closed one is no failure of the command.
    pub fn note(&self, line: &str) {
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
}

/// Bytes that are no text, or text that steers a terminal.
pub fn is_binary(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or(true, |text| text.contains(steers))
}

/// JSON with escapes for characters that steer a terminal; it means the same.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match steers(c) || super::text::turns(c) {
            true => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => text.push(c),
        }
    }
    text
}

fn steers(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t')
}

/// At most so many bytes of a text, whole characters.
fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

fn write(bytes: &[u8]) -> Result<(), Trouble> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Trouble::Closed,
        _ => Trouble::Broken(format!("standard output cannot be written ({error})")),
    })
}

/// Colours, where they are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Paint(pub bool);

impl Paint {
    /// The text in a style.
    pub fn with(self, style: Style, text: &str) -> String {
        if self.0 && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_steers_a_terminal_is_binary() {
        assert!(
            is_binary(b"\xff\xfe") && is_binary(b"a\0b") && is_binary(b"\x1b[2J") && is_binary("\u{9b}".as_bytes())
        );
        assert!(!is_binary("naïve\r\n\tx 東京".as_bytes()) && !is_binary(b""));
    }

    #[test]
    fn json_on_a_terminal_means_the_same_and_steers_nothing() {
        assert_eq!(escaped("{\"a\":\"\u{9b}2J\u{202e}é\"}\n"), "{\"a\":\"\\u009b2J\\u202eé\"}\n");
    }

    #[test]
    fn a_head_ends_with_a_whole_character() {
        assert_eq!((head("aé", 2), head("aé", 3), head("a", 9)), ("a", "aé", "a"));
    }

    #[test]
    fn without_colour_the_text_is_the_text() {
        let bold = Style::new().bold();
        assert_eq!(Paint(false).with(bold, "a"), "a");
        assert_eq!(Paint(true).with(bold, "a"), "\u{1b}[1ma\u{1b}[0m");
        assert_eq!(Paint(true).with(bold, ""), "");
    }
}
