//! Pipe text: arguments between `|`, where `\|` is a pipe.

/// Cuts text at its pipes into at most `limit` pieces; with a limit the last piece takes the rest.
///
/// A rest that is one JSON document is kept as it is written, `\|` included: inside JSON a pipe needs no mark.
pub(super) fn split(text: &str, limit: Option<usize>) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut from = 0;
    while let Some(at) = text[from..].find('|').map(|found| from + found) {
        from = at + 1;
        if text[..at].ends_with('\\') {
            continue;
        }
        if limit.is_some_and(|limit| pieces.len() + 1 >= limit) {
            break;
        }
        pieces.push(unmarked(&text[start..at]));
        start = from;
    }
    let last = &text[start..];
    let is_document = limit.is_some() && last.contains("\\|") && crate::json::check(last).is_ok();
    pieces.push(if is_document { last.to_owned() } else { unmarked(last) });
    pieces
}

fn unmarked(piece: &str) -> String {
    piece.replace("\\|", "|")
}

/// Arguments joined to the text that `$N+` stands for.
pub(super) fn join<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<_>>().join("|")
}
