//! The spellings in which a secret can turn up, written by other means than the product's own.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};

/// Every way in which an upstream may send a text back, by name.
pub fn all(text: &str) -> Vec<(&'static str, String)> {
    let bytes = text.as_bytes();
    let quoted = json(text);
    let mut spellings = vec![
        ("raw", text.to_owned()),
        ("hex", HEXLOWER.encode(bytes)),
        ("HEX", HEXUPPER.encode(bytes)),
        ("json", quoted.clone()),
        ("json in json", json(&quoted)),
        ("json with slashes escaped", quoted.replace('/', "\\/")),
        ("json in numbers", bytes.iter().map(|byte| format!("\\u{byte:04x}")).collect()),
        ("percent", percent(text, |byte| format!("%{byte:02X}"))),
        ("percent in lower case", percent(text, |byte| format!("%{byte:02x}"))),
        ("percent of everything", bytes.iter().map(|byte| format!("%{byte:02X}")).collect()),
        ("form", percent(text, |byte| if byte == b' ' { "+".to_owned() } else { format!("%{byte:02X}") })),
        ("percent in percent", percent(&percent(text, |byte| format!("%{byte:02X}")), |byte| format!("%{byte:02X}"))),
        ("json of percent", json(&percent(text, |byte| format!("%{byte:02X}")))),
    ];
    for (name, before) in [
        ("base64", ""),
        ("base64 after one byte", " "),
        ("base64 after two bytes", ": "),
        ("base64 of a header", "Bearer "),
    ] {
        let text = format!("{before}{text}");
        spellings.push((name, BASE64.encode(text.as_bytes())));
        spellings.push((name, BASE64URL_NOPAD.encode(text.as_bytes())));
        spellings.push((name, BASE64.encode(format!("{text} and more").as_bytes())));
    }
    spellings
}

/// Pieces of text that give a secret away wherever they stand: of base64 only what the secret alone decides.
pub fn traces(secret: &str) -> Vec<String> {
    let mut traces: Vec<String> =
        all(secret).into_iter().filter(|(name, _)| !name.starts_with("base64")).map(|(_, text)| text).collect();
    for encoding in [BASE64_NOPAD, BASE64URL_NOPAD] {
        for before in 0..3 {
            let text = format!("{}{secret}", &"   "[..before]);
            let encoded = encoding.encode(text.as_bytes());
            traces.push(encoded[4..encoded.len() - 4].to_owned());
        }
    }
    // a part of it is a part too many
    traces.extend(secret.as_bytes().windows(12).filter_map(|part| String::from_utf8(part.to_vec()).ok()));
    traces
}

/// The first trace of any of these secrets that stands in the bytes, with what stands around it.
pub fn found(bytes: &[u8], secrets: &[(&str, &str)]) -> Option<String> {
    let all: Vec<(&str, String)> =
        secrets.iter().flat_map(|(name, secret)| traces(secret).into_iter().map(move |trace| (*name, trace))).collect();
    let search =
        AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(all.iter().map(|(_, trace)| trace)).unwrap();
    let hit = search.find(bytes)?;
    let (name, trace) = &all[hit.pattern().as_usize()];
    let around = &bytes[hit.start().saturating_sub(160)..bytes.len().min(hit.end() + 80)];
    Some(format!("{name} as `{trace}` in …{}…", String::from_utf8_lossy(around)))
}

fn json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent(text: &str, escape: impl Fn(u8) -> String) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { escape(byte) }).collect()
}
