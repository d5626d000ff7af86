//! Page tokens: opaque, signed, and of use for nothing but the listing that they were given for.

use callbook_domain::fault::{Fault, Reason, Result};
use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::stamp::frame;

/// Bytes of the scope's digest and of the MAC.
const DIGEST: usize = 16;
/// The longest token that is looked at, in bytes; ours are far shorter.
const LONGEST: usize = 1_024;

/// The tokens of one listing: one verb, and the scope in which a position means something.
pub(crate) struct Cursors<'a> {
    key: &'a [u8],
    verb: &'static str,
    scope: [u8; DIGEST],
}

impl<'a> Cursors<'a> {
    /// The tokens of a listing. `scope` holds all that must stay the same from page to page: what the listing is made
    /// from, its filters, and what the caller sees.
    pub(crate) fn new(key: &'a [u8], verb: &'static str, scope: &[&str]) -> Self {
        let mut digest = Sha256::new();
        for part in scope {
            frame(&mut digest, part);
        }
        let mut short = [0; DIGEST];
        short.copy_from_slice(&digest.finalize()[..DIGEST]);
        Cursors { key, verb, scope: short }
    }

    /// The token of a position.
    pub(crate) fn issue(&self, position: &str) -> String {
        let mac = self.mac(&self.scope, position).finalize().into_bytes();
        BASE64URL_NOPAD.encode(&[&self.scope, &mac[..DIGEST], position.as_bytes()].concat())
    }

    /// The position of a token; nothing for the empty token, which begins a listing.
    ///
    /// # Errors
    /// `cursor_invalid` for a token that is not ours or of another verb, `cursor_stale` for one of another scope.
    pub(crate) fn position(&self, token: &str) -> Result<Option<String>> {
        if token.is_empty() {
            return Ok(None);
        }
        let (scope, position) = self.open(token).ok_or_else(invalid)?;
        if scope == self.scope { Ok(Some(position)) } else { Err(stale()) }
    }

    /// As [`Cursors::position`], for listings that count their rows.
    pub(crate) fn offset(&self, token: &str) -> Result<usize> {
        match self.position(token)? {
            None => Ok(0),
            Some(position) => position.parse().map_err(|_| invalid()),
        }
    }

    /// The rows of a page that begins at `offset`, and the token of the page after it; empty where there is none.
    pub(crate) fn page<'r, T>(&self, rows: &'r [T], offset: usize, size: usize) -> (&'r [T], String) {
        let start = offset.min(rows.len());
        let end = start.saturating_add(size).min(rows.len());
        (&rows[start..end], self.next(end, rows.len()))
    }

    /// As [`Cursors::page`], for rows that are sorted by a name of their own: the page begins after the name of the last
    /// row before it, so writes between two pages neither repeat a row nor leave one out.
    ///
    /// # Errors
    /// As [`Cursors::position`].
    pub(crate) fn page_after<'r, T>(
        &self,
        rows: &'r [T],
        token: &str,
        size: usize,
        name: impl Fn(&T) -> &str,
    ) -> Result<(&'r [T], String)> {
        let after = self.position(token)?;
        let start = after.map_or(0, |after| rows.partition_point(|row| name(row) <= after.as_str()));
        let end = start.saturating_add(size).min(rows.len());
        let page = &rows[start..end];
        let next = match page.last() {
            Some(last) if end < rows.len() => self.issue(name(last)),
            Some(_) | None => String::new(),
        };
        Ok((page, next))
    }

    /// The token of the page that begins at `end`; empty where that is the end of all.
    pub(crate) fn next(&self, end: usize, total: usize) -> String {
        if end < total { self.issue(&end.to_string()) } else { String::new() }
    }

    fn open(&self, token: &str) -> Option<([u8; DIGEST], String)> {
        if token.len() > LONGEST {
            return None;
        }
        let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
        let (scope, rest) = bytes.split_first_chunk::<DIGEST>()?;
        let (mac, position) = rest.split_first_chunk::<DIGEST>()?;
        let position = std::str::from_utf8(position).ok()?;
        self.mac(scope, position).verify_truncated_left(mac).ok()?;
        Some((*scope, position.to_owned()))
    }

    fn mac(&self, scope: &[u8; DIGEST], position: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key).expect("HMAC takes a key of any length");
        for part in [b"callbook page token\0", self.verb.as_bytes(), b"\0", scope, position.as_bytes()] {
            mac.update(part);
        }
        mac
    }
}

/// The size of a page: `default` where none is asked for, never more than `most`.
pub(crate) fn size(asked: u32, default: u32, most: u32) -> usize {
    let size = if asked == 0 { default } else { asked.min(most) };
    usize::try_from(size).unwrap_or(usize::MAX)
}

fn invalid() -> Fault {
    Fault::new(Reason::CursorInvalid, "the page token is not one of ours for this listing")
        .fix("begin again without a cursor")
        .with("field", "cursor")
}

fn stale() -> Fault {
    Fault::new(Reason::CursorStale, "the catalogue or a filter has changed since the page token was given")
        .fix("begin again without a cursor")
        .with("field", "cursor")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"0123456789abcdef";

    fn reason(cursors: &Cursors<'_>, token: &str) -> Reason {
        cursors.position(token).unwrap_err().reason()
    }

    #[test]
    fn a_token_gives_its_position_back_under_the_same_scope() {
        let cursors = Cursors::new(KEY, "list", &["stamp", "", "apps"]);
        assert_eq!(cursors.position("").unwrap(), None);
        assert_eq!(cursors.offset("").unwrap(), 0);
        let token = cursors.issue("50");
        assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')), "{token}");
        let later = Cursors::new(KEY, "list", &["stamp", "", "apps"]);
        assert_eq!(later.offset(&token).unwrap(), 50);
    }

    #[test]
    fn a_token_of_another_scope_is_stale() {
        let token = Cursors::new(KEY, "list", &["a", "b"]).issue("1");
        for other in [&["a", "c"][..], &["ab", ""], &["", "ab"], &["a"], &["a", "b", ""]] {
            assert_eq!(reason(&Cursors::new(KEY, "list", other), &token), Reason::CursorStale, "{other:?}");
        }
    }

    #[test]
    fn a_forged_token_is_invalid() {
        let cursors = Cursors::new(KEY, "list", &["a"]);
        let token = cursors.issue("50");
        let mut longer = BASE64URL_NOPAD.decode(token.as_bytes()).unwrap();
        longer.push(b'0');
        let longer = BASE64URL_NOPAD.encode(&longer);
        let mut other = token.clone().into_bytes();
        other[0] = if other[0] == b'A' { b'B' } else { b'A' };
        let other = String::from_utf8(other).unwrap();
        let long = "A".repeat(5_000);
        for forged in [&longer, &other, &long, "x", "50", &token[1..], "\0", "é", &format!("{token}=")] {
            assert_eq!(reason(&cursors, forged), Reason::CursorInvalid, "{forged:?}");
        }
        assert_eq!(reason(&Cursors::new(b"another key 1234", "list", &["a"]), &token), Reason::CursorInvalid);
        assert_eq!(reason(&Cursors::new(KEY, "ask", &["a"]), &token), Reason::CursorInvalid);
    }

    #[test]
    fn pages_cover_every_row_once() {
        let cursors = Cursors::new(KEY, "list", &[]);
        let rows: Vec<usize> = (0..7).collect();
        let mut seen = Vec::new();
        let mut token = String::new();
        loop {
            let (page, next) = cursors.page(&rows, cursors.offset(&token).unwrap(), 3);
            seen.extend_from_slice(page);
            token = next;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(seen, rows);
        assert_eq!(cursors.page(&rows, 99, 3), (&[][..], String::new()));
    }

    #[test]
    fn a_page_by_name_goes_on_where_rows_come_and_go() {
        let cursors = Cursors::new(KEY, "map", &[]);
        let page = |rows: &[&'static str], token: &str| {
            let (page, next) = cursors.page_after(rows, token, 2, |name| name).unwrap();
            (page.to_vec(), next)
        };
        let (first, next) = page(&["", "b", "c", "d"], "");
        assert_eq!(first, ["", "b"]);
        let (second, next) = page(&["a", "bb", "c", "d"], &next);
        assert_eq!(second, ["bb", "c"]);
        assert_eq!(page(&["a"], &next), (Vec::new(), String::new()));
    }
}
