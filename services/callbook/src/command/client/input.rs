//! What a command takes from files and from standard input.

use std::io::Read as _;

use super::trouble::Trouble;

/// The word for standard input.
pub const STDIN: &str = "-";

/// The bytes of a file, or of standard input.
pub fn bytes(file: &str) -> Result<Vec<u8>, Trouble> {
    if file != STDIN {
        return std::fs::read(file).map_err(|error| Trouble::usage(format!("{file} cannot be read ({error})")));
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(|error| Trouble::usage(format!("standard input cannot be read ({error})")))
}

/// The text of a file, or of standard input.
pub fn text(file: &str) -> Result<String, Trouble> {
    let name = if file == STDIN { "standard input" } else { file };
    String::from_utf8(bytes(file)?)
        .map_err(|error| Trouble::usage(format!("{name} is not UTF-8 at byte {}", error.utf8_error().valid_up_to())))
}

/// Arguments as they were typed; `-` reads standard input, whose last line end is not part of them.
pub fn argument(typed: String) -> Result<String, Trouble> {
    if typed != STDIN {
        return Ok(typed);
    }
    text(STDIN).map(without_line_end)
}

fn without_line_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_end_is_not_part_of_an_argument() {
        let of = |text: &str| without_line_end(text.into());
        assert_eq!(
            (of("a|b\n"), of("a\r\n"), of("a\n\n"), of("a"), of("")),
            ("a|b".into(), "a".into(), "a\n".into(), "a".into(), String::new())
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_a_mistake_of_the_command_line() {
        let trouble = text("/nowhere/rows").unwrap_err();
        assert_eq!(trouble.code(), 2);
        assert!(trouble.lines()[0].contains("/nowhere/rows cannot be read"));
    }
}
