//! Long outputs, a part at a time: whole items of a list, else text that is never cut inside a character.

use serde_json::value::RawValue;

/// The most bytes of one part.
pub(super) const PART: usize = 32 * 1024;

/// A part of an output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// The part itself.
    pub(super) text: String,
    /// What it leaves out behind it. Nothing: it reaches the end.
    pub(super) rest: Option<Rest>,
}

/// What a part leaves out behind it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rest {
    /// Where the next part begins.
    pub(super) offset: usize,
    /// Where the last one ends.
    pub(super) total: usize,
    /// What is counted: `items` or `bytes`.
    pub(super) unit: &'static str,
}

/// The part of a text that begins at `offset`: an item of a JSON list, or a byte. Nothing where no part begins there.
pub(super) fn part(text: &str, is_json: bool, offset: usize) -> Option<Page> {
    if offset == 0 && text.len() <= PART {
        return Some(Page { text: text.to_owned(), rest: None });
    }
    match items(text, is_json) {
        Some(items) => of_items(&items, offset),
        None => of_text(text, offset),
    }
}

/// The items of a list, where each fits into a part.
fn items(text: &str, is_json: bool) -> Option<Vec<&RawValue>> {
    let items: Vec<&RawValue> = is_json.then(|| serde_json::from_str(text).ok()).flatten()?;
    items.iter().all(|item| item.get().len() <= PART / 2).then_some(items)
}

fn of_items(items: &[&RawValue], offset: usize) -> Option<Page> {
    let mut text = String::from("[");
    let mut next = offset;
    for item in items.get(offset..)? {
        if text.len() + item.get().len() + 2 > PART {
            break;
        }
        if next > offset {
            text.push(',');
        }
        text.push_str(item.get());
        next += 1;
    }
    text.push(']');
    let rest = (next < items.len()).then_some(Rest { offset: next, total: items.len(), unit: "items" });
    Some(Page { text, rest })
}

fn of_text(text: &str, offset: usize) -> Option<Page> {
    let rest = text.get(offset..)?;
    if rest.len() <= PART {
        return Some(Page { text: rest.to_owned(), rest: None });
    }
    let most = (0..=PART).rev().find(|end| rest.is_char_boundary(*end)).unwrap_or(PART);
    // A line that is whole reads better than one that is not.
    let end = rest[most / 2..most].rfind('\n').map_or(most, |at| most / 2 + at + 1);
    let left = Rest { offset: offset + end, total: text.len(), unit: "bytes" };
    Some(Page { text: rest[..end].to_owned(), rest: Some(left) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, is_json: bool) -> Vec<String> {
        let mut parts = Vec::new();
        let mut offset = 0;
        while let Some(page) = part(text, is_json, offset) {
            parts.push(page.text);
            let Some(rest) = page.rest else { break };
            assert!(rest.offset > offset && rest.offset < rest.total);
            offset = rest.offset;
        }
        parts
    }

    #[test]
    fn a_short_output_is_one_part() {
        assert_eq!(all("[1, 2]", true), ["[1, 2]"]);
        assert_eq!(part("abc", false, 4), None);
    }

    #[test]
    fn a_list_is_cut_between_its_items() {
        let items: Vec<String> = (0..10_000).map(|n| format!("{{\"n\":{n}.10}}")).collect();
        let parts = all(&format!("[{}]", items.join(",")), true);
        assert!(parts.len() > 3 && parts.iter().all(|part| part.len() <= PART));
        let joined: Vec<&str> = parts.iter().map(|part| part.trim_matches(['[', ']'])).collect();
        assert_eq!(joined.join(","), items.join(","));
    }

    #[test]
    fn text_is_cut_between_lines_and_never_inside_a_character() {
        let lines = "é".repeat(1_000) + "\n";
        let parts = all(&lines.repeat(60), false);
        assert!(parts.len() > 3 && parts.iter().all(|part| part.ends_with('\n')));
        assert_eq!(parts.concat(), lines.repeat(60));
        let one = "é".repeat(PART);
        assert_eq!(all(&format!("x{one}"), false).concat(), format!("x{one}"));
        let long = format!("[\"{}\"]", "a".repeat(3 * PART));
        assert_eq!(all(&long, true).concat(), long, "an item that fits into no part");
    }
}
