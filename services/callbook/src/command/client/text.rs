//! Text for people: columns, labels, and nothing that steers a terminal.

use clap::builder::styling::{AnsiColor, Style};

use super::screen::Screen;

/// What stands out.
pub const BOLD: Style = Style::new().bold();
/// What stands back.
pub const DIM: Style = Style::new().dimmed();
/// What is well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What needs care.
pub const CARE: Style = AnsiColor::Yellow.on_default();
/// What is not well.
pub const BAD: Style = AnsiColor::Red.on_default();
/// The plain text.
pub const PLAIN: Style = Style::new();

/// Space between columns.
const GAP: usize = 2;
/// The fewest columns that a text is wrapped into.
const NARROWEST: usize = 24;

/// One cell of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A text of the server in a style, on one line.
    pub fn new(text: impl AsRef<str>, style: Style) -> Self {
        Cell { text: callbook_domain::contract::clean(text.as_ref()), style }
    }
}

/// Rows in columns as wide as their widest cell, long first cells apart. The last column takes what is left of the line
/// and is cut there; where too little is left it goes below.
pub fn table(rows: &[Vec<Cell>], screen: &Screen) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| width(&cell.text)).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..count).map(widest).collect();
    if let Some(first) = widths.first_mut().filter(|_| screen.width < usize::MAX) {
        *first = (*first).min(screen.width / 5 * 2);
    }
    rows.iter().map(|row| line(row, &widths, screen)).collect()
}

fn line(row: &[Cell], widths: &[usize], screen: &Screen) -> String {
    let (mut line, mut at) = (String::new(), 0);
    for (n, (cell, own)) in row.iter().zip(widths).enumerate() {
        let left = screen.width.saturating_sub(at);
        if n > 0 && n + 1 == row.len() && left < NARROWEST && left < width(&cell.text) {
            line = format!("{}\n{}", line.trim_end(), " ".repeat(2 * GAP));
            at = 2 * GAP;
        }
        let shown = shorten(&cell.text, screen.width.saturating_sub(at));
        let taken = width(&shown).max(*own) + GAP;
        line.push_str(&screen.paint.with(cell.style, &shown));
        line.push_str(&" ".repeat(taken - width(&shown)));
        at += taken;
    }
    format!("{}\n", line.trim_end())
}

/// Names and values below each other. Values go on under themselves; empty ones are left out.
#[derive(Debug, Default)]
pub struct Pairs(Vec<(String, String, Style)>);

impl Pairs {
    /// Adds a value.
    pub fn add(&mut self, name: &str, value: impl Into<String>) -> &mut Self {
        self.styled(name, value, PLAIN)
    }

    /// Adds a value in a style.
    pub fn styled(&mut self, name: &str, value: impl Into<String>, style: Style) -> &mut Self {
        let value = visible(&value.into());
        if !value.trim().is_empty() {
            self.0.push((name.to_owned(), value, style));
        }
        self
    }

    /// Adds a value where there is one.
    pub fn maybe(&mut self, name: &str, value: Option<impl Into<String>>) -> &mut Self {
        match value {
            Some(value) => self.add(name, value),
            None => self,
        }
    }

    /// All of them, aligned.
    pub fn lines(&self, screen: &Screen) -> String {
        let names = self.0.iter().map(|(name, ..)| width(name)).max().unwrap_or(0);
        let mut text = String::new();
        for (name, value, style) in &self.0 {
            let mut label = format!("{name:names$}");
            for line in wrap(value, screen.width.saturating_sub(names + 2 * GAP)) {
                let label = std::mem::replace(&mut label, " ".repeat(names));
                let line = format!("  {}  {}", screen.paint.with(DIM, &label), screen.paint.with(*style, &line));
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }
}

/// The text without what steers a terminal or turns its direction around. Line ends and tabs stay.
pub fn visible(text: &str) -> String {
    let hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || turns(c);
    text.chars().filter(|c| !hidden(*c)).collect()
}

/// Whether a character turns the direction of the text behind it.
pub fn turns(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// At most so many columns; what is cut is marked.
pub fn shorten(text: &str, columns: usize) -> String {
    if columns == 0 || width(text) <= columns {
        return text.chars().take(columns).collect();
    }
    let head: String = text.chars().take(columns.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}

/// The lines of a text, broken between words where they are too long.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(NARROWEST);
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut left = line;
        while width(left) > columns {
            let reach = left.char_indices().nth(columns).map_or(left.len(), |(at, _)| at);
            let cut = left[..reach].rfind(' ').filter(|at| !left[..*at].trim().is_empty()).unwrap_or(reach);
            lines.push(left[..cut].trim_end().to_owned());
            left = left[cut..].trim_start();
        }
        lines.push(left.to_owned());
    }
    lines
}

/// A word as a shell takes it.
pub fn quoted(text: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '=' | '+' | '@' | '%');
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// How a row's effect and risk look.
pub fn effect_cell(effect: Option<&str>, risk: Option<&str>) -> Cell {
    let effect = effect.unwrap_or("?");
    let high = risk == Some("high");
    let style = match effect {
        _ if high => BAD,
        "read" => PLAIN,
        "destructive" => BAD,
        _ => CARE,
    };
    Cell::new(if high { format!("{effect}!") } else { effect.to_owned() }, style)
}

/// How many of a thing there are.
pub fn count_of(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// A screen for tests: a terminal of so many columns, without colour.
#[cfg(test)]
pub fn screen_of(width: usize) -> Screen {
    use super::screen::{Form, Paint};
    Screen { form: Form::Text, is_terminal: true, paint: Paint(false), width }
}

#[cfg(test)]
mod tests {
    use super::super::screen::Paint;
    use super::*;

    fn row(cells: &[&str]) -> Vec<Cell> {
        cells.iter().map(|text| Cell::new(text, PLAIN)).collect()
    }

    #[test]
    fn columns_are_aligned_and_the_last_is_cut() {
        let rows =
            [row(&["NOW", "read", "Tells the time in any zone of the world"]), row(&["LONGER_KEY", "write", ""])];
        assert_eq!(
            table(&rows, &screen_of(48)),
            "NOW         read   Tells the time in any zone o…\nLONGER_KEY  write\n"
        );
        let program = screen_of(usize::MAX);
        assert_eq!(table(&rows[..1], &program), "NOW  read  Tells the time in any zone of the world\n");
        assert_eq!(table(&[], &screen_of(40)), "");
    }

    #[test]
    fn a_long_key_stays_whole_and_pushes_the_words_below() {
        let rows = [row(&["A_KEY_OF_TWENTY_FOUR_ABC", "read", "what it does"]), row(&["B", "write", "other"])];
        assert_eq!(
            table(&rows, &screen_of(42)),
            "A_KEY_OF_TWENTY_FOUR_ABC  read\n    what it does\nB                 write  other\n"
        );
    }

    #[test]
    fn colour_is_around_the_text_and_not_around_the_space() {
        let screen = Screen { paint: Paint(true), ..screen_of(80) };
        let rows = [vec![Cell::new("A", BOLD), Cell::new("b", PLAIN)], row(&["LONG", "c"])];
        assert_eq!(table(&rows, &screen), "\u{1b}[1mA\u{1b}[0m     b\nLONG  c\n");
    }

    #[test]
    fn values_go_on_under_themselves() {
        let mut pairs = Pairs::default();
        pairs
            .add("key", "NOW")
            .add("what", "one two three four five six seven")
            .add("gone", " ")
            .maybe("no", None::<&str>);
        assert_eq!(pairs.lines(&screen_of(32)), "  key   NOW\n  what  one two three four five\n        six seven\n");
    }

    #[test]
    fn nothing_of_the_server_steers_the_terminal() {
        assert_eq!(visible("a\u{1b}[31m\u{9b}2J\u{202e}b\r\n\tc\u{7}"), "a[31m2Jb\n\tc");
        assert_eq!(table(&[row(&["a\nb\u{1b}c"])], &screen_of(40)), "a bc\n");
    }

    #[test]
    fn long_words_are_cut_and_line_ends_stay() {
        assert_eq!(
            wrap("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b\n\nc", 24),
            ["aaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaa b", "", "c"]
        );
        assert_eq!(
            (shorten("abc", 3), shorten("abcd", 3), shorten("a", 0)),
            ("abc".into(), "ab…".into(), String::new())
        );
    }

    #[test]
    fn a_shell_takes_a_quoted_word_as_it_was() {
        assert_eq!(
            (quoted("NOW"), quoted("37.77|-1"), quoted("it's"), quoted("")),
            ("NOW".into(), "'37.77|-1'".into(), r"'it'\''s'".into(), "''".into())
        );
    }
}
