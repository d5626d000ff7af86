//! The spellings under which a secret can turn up in a text: patterns for those that depend on the secret (base64, hex),
//! and views of the text for those that any character may take (percent, backslash). Views work whatever an encoder
//! chose to escape, in upper or lower case, and also when one escape was put over another.

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};

/// A piece of text that gives a secret away.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pattern {
    pub(super) bytes: Vec<u8>,
    /// The base64 character before it holds bits of the secret as well.
    pub(super) left: bool,
    /// The base64 character after it does.
    pub(super) right: bool,
}

/// Every pattern of one secret, each once.
pub(super) fn patterns(secret: &[u8]) -> Vec<Pattern> {
    let plain = |bytes| Pattern { bytes, left: false, right: false };
    let mut all = vec![
        plain(secret.to_vec()),
        plain(HEXLOWER.encode(secret).into_bytes()),
        plain(HEXUPPER.encode(secret).into_bytes()),
    ];
    for encoding in [BASE64_NOPAD, BASE64URL_NOPAD] {
        for before in 0..3 {
            // The characters that only the secret decides, when `before` foreign bytes stand before it in its group.
            let mut text = vec![0; before];
            text.extend_from_slice(secret);
            let skipped = [0, 2, 3][before];
            let whole = text.len() * 8 / 6;
            let bytes = encoding.encode(&text).into_bytes()[skipped..whole].to_vec();
            all.push(Pattern { bytes, left: before > 0, right: text.len() % 3 > 0 });
        }
    }
    all.sort();
    all.dedup();
    all
}

/// Whether a byte is of a base64 alphabet, padding included.
pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
}

/// How a view reads a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// `%41` is `A`.
    Percent,
    /// The same, and `+` is a space.
    Form,
    /// `\"`, `\/`, `\n`, `\u0041`, `\x41`: JSON, and the strings of most languages.
    Backslash,
}

/// A text with one layer of escapes taken away, and the way back to where each byte came from.
pub(super) struct View {
    pub(super) bytes: Vec<u8>,
    tokens: Vec<Token>,
}

/// One escape: where it stands in the source, and where its meaning stands in the view.
struct Token {
    source: usize,
    at: usize,
    source_len: u8,
    len: u8,
}

impl View {
    /// The view of a text, or `None` when it holds no such escape.
    pub(super) fn of(text: &[u8], escape: Escape) -> Option<Self> {
        let mut view = View { bytes: Vec::new(), tokens: Vec::new() };
        let (mut copied, mut position) = (0, 0);
        while let Some(found) = text[position..].iter().position(|byte| escape.begins(*byte)) {
            position += found;
            let Some((meaning, source_len)) = escape.read(&text[position..]) else {
                position += 1;
                continue;
            };
            view.bytes.extend_from_slice(&text[copied..position]);
            let mut buffer = [0; 4];
            let meaning = meaning.bytes(&mut buffer);
            view.tokens.push(Token { source: position, at: view.bytes.len(), source_len, len: meaning.len() as u8 });
            view.bytes.extend_from_slice(meaning);
            position += usize::from(source_len);
            copied = position;
        }
        view.bytes.extend_from_slice(&text[copied..]);
        (!view.tokens.is_empty()).then_some(view)
    }

    /// Where the bytes `start..end` of the view (not empty) stand in the source.
    pub(super) fn source(&self, start: usize, end: usize) -> (usize, usize) {
        (self.byte(start).0, self.byte(end - 1).1)
    }

    fn byte(&self, at: usize) -> (usize, usize) {
        let before = self.tokens.partition_point(|token| token.at <= at);
        let Some(token) = before.checked_sub(1).map(|index| &self.tokens[index]) else { return (at, at + 1) };
        let (after, meant) = (token.source + usize::from(token.source_len), token.at + usize::from(token.len));
        if at < meant {
            return (token.source, after);
        }
        let start = after + (at - meant);
        (start, start + 1)
    }
}

/// What an escape stands for.
enum Meaning {
    Byte(u8),
    Char(char),
}

impl Meaning {
    fn bytes<'a>(&self, buffer: &'a mut [u8; 4]) -> &'a [u8] {
        match self {
            Meaning::Byte(byte) => {
                buffer[0] = *byte;
                &buffer[..1]
            }
            Meaning::Char(char) => char.encode_utf8(buffer).as_bytes(),
        }
    }
}

impl Escape {
    fn begins(self, byte: u8) -> bool {
        match self {
            Escape::Percent => byte == b'%',
            Escape::Form => byte == b'%' || byte == b'+',
            Escape::Backslash => byte == b'\\',
        }
    }

    /// Reads one escape at the beginning of a text: its meaning and its length.
    fn read(self, text: &[u8]) -> Option<(Meaning, u8)> {
        match (text, self) {
            ([b'+', ..], Escape::Form) => Some((Meaning::Byte(b' '), 1)),
            ([b'%', rest @ ..], Escape::Percent | Escape::Form) => Some((Meaning::Byte(hex(rest, 2)? as u8), 3)),
            ([b'\\', b'u', rest @ ..], Escape::Backslash) => unicode(rest),
            ([b'\\', b'x', rest @ ..], Escape::Backslash) => Some((Meaning::Byte(hex(rest, 2)? as u8), 4)),
            ([b'\\', byte, ..], Escape::Backslash) => Some((Meaning::Byte(single(*byte)?), 2)),
            _ => None,
        }
    }
}

fn single(byte: u8) -> Option<u8> {
    match byte {
        b'"' | b'\\' | b'/' | b'\'' => Some(byte),
        b'b' => Some(8),
        b'f' => Some(12),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        _ => None,
    }
}

/// Reads what follows `\u`, two halves of one character included.
fn unicode(rest: &[u8]) -> Option<(Meaning, u8)> {
    let first = hex(rest, 4)?;
    if let Some(char) = char::from_u32(first) {
        return Some((Meaning::Char(char), 6));
    }
    let second = hex(rest.get(4..)?.strip_prefix(b"\\u")?, 4)?;
    let char = char::decode_utf16([first as u16, second as u16]).next()?.ok()?;
    Some((Meaning::Char(char), 12))
}

fn hex(text: &[u8], digits: usize) -> Option<u32> {
    text.get(..digits)?.iter().try_fold(0, |sum, byte| Some(sum * 16 + char::from(*byte).to_digit(16)?))
}
