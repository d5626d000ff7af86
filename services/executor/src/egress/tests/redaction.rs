//! No spelling of a secret survives.

use std::borrow::Cow;

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use proptest::prelude::*;
use secrecy::SecretString;

use super::super::Redactor;

const MARK: &str = "[redacted:KEY]";

fn redactor(secrets: &[(&str, &str)]) -> Redactor {
    let values: Vec<_> = secrets.iter().map(|(name, value)| ((*name).to_owned(), SecretString::from(*value))).collect();
    Redactor::new(&values)
}

fn json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent(text: &str, every: bool, upper: bool) -> String {
    let one = |byte: u8| match byte {
        byte if !every && byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte if upper => format!("%{byte:02X}"),
        byte => format!("%{byte:02x}"),
    };
    text.bytes().map(one).collect()
}

fn form(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn unicode(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
}

/// Every spelling of a text in which its characters stay apart.
fn spellings(text: &str) -> Vec<String> {
    let mut all =
        vec![text.to_owned(), json(text), unicode(text), form(text), json(&json(text)), json(&json(&json(text)))];
    for (every, upper) in [(false, false), (false, true), (true, false), (true, true)] {
        let once = percent(text, every, upper);
        all.extend([json(&once), percent(&once, false, upper), percent(&json(text), every, upper), once]);
    }
    all.extend([HEXLOWER.encode(text.as_bytes()), HEXUPPER.encode(text.as_bytes())]);
    all
}

/// Secrets as they come, without the few that our own mark would hold or make.
fn secret() -> impl Strategy<Value = String> {
    "[ -Z^-~éß漢😀\\\\\n\"/+=%]{4,48}".prop_filter("is part of the mark", |text| !MARK.contains(text.as_str()))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_spelling_survives(secret in secret(), before in "[a-z ]{0,9}", after in "[a-z ]{0,9}") {
        let redactor = redactor(&[("KEY", &secret)]);
        for spelling in spellings(&secret) {
            let text = format!("{before}{spelling}{after}");
            let redacted = redactor.redact_str(&text);
            prop_assert!(redacted.contains(MARK), "{text}");
            prop_assert!(!redacted.contains(&spelling), "{text} became {redacted}");
            let again = redactor.redact_str(&redacted).into_owned();
            prop_assert!(matches!(redactor.redact_str(&again), Cow::Borrowed(_)), "{text} became {redacted} and {again}");
        }
    }

    #[test]
    fn no_bit_of_it_survives_in_base64(secret in secret(), before in "[a-z:]{0,7}", after in "[a-z:]{0,7}", wrap in 0..3) {
        let redactor = redactor(&[("KEY", &secret)]);
        let plain = format!("{before}{secret}{after}");
        for encoding in [BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD] {
            let encoded = encoding.encode(plain.as_bytes());
            let text = match wrap {
                0 => encoded,
                1 => percent(&encoded, false, true),
                _ => encoded.replace('/', "\\/"),
            };
            let redacted = redactor.redact_str(&text);
            let (left, rest) = redacted.split_once(MARK).expect("found");
            let right = rest.rsplit(MARK).next().unwrap_or(rest);
            let right = right.replace("%3D", "").replace('=', "");
            let padding = (6 - plain.len() * 8 % 6) % 6;
            prop_assert!(left.len() * 6 <= before.len() * 8, "{text} became {redacted}");
            prop_assert!(right.len() * 6 <= after.len() * 8 + padding, "{text} became {redacted}");
        }
    }

    #[test]
    fn a_text_without_secrets_stays_as_it_is(text in any::<Vec<u8>>()) {
        let redactor = redactor(&[("KEY", "correct horse battery staple")]);
        prop_assert!(matches!(redactor.redact(&text), Cow::Borrowed(_)));
    }

    #[test]
    fn a_string_stays_a_string(secret in "[é漢😀a%\\\\]{2,5}", text in "[é漢😀a%\\\\u0-9]{0,60}") {
        let redactor = redactor(&[("KEY", &secret)]);
        let (bytes, string) = (redactor.redact(text.as_bytes()), redactor.redact_str(&text));
        prop_assert_eq!(bytes.as_ref(), string.as_bytes());
    }
}

#[test]
fn each_secret_leaves_its_name() {
    let redactor = redactor(&[("ONE", "hunter2"), ("TWO", "s3cr3t"), ("SHORT", "abc")]);
    assert_eq!(redactor.redact_str("a hunter2, b s3cr3t, abc"), "a [redacted:ONE], b [redacted:TWO], abc");
    assert_eq!(redactor.redact_str("hunter2hunter2"), "[redacted:ONE]");
    assert!(matches!(redactor.redact_str("nothing"), Cow::Borrowed("nothing")));
    let basic = format!("Basic {}", BASE64.encode(b"user:hunter2"));
    assert_eq!(redactor.redact_str(&basic), "Basic dXNlcj[redacted:ONE]");
    assert!(!format!("{redactor:?}").contains("hunter2"));
}

#[test]
fn secrets_that_overlap_go_together() {
    let redactor = redactor(&[("SMALL", "1234"), ("BIG", "x1234y"), ("NEXT", "4yzz")]);
    assert_eq!(redactor.redact_str("ax1234yb"), "a[redacted:BIG]b");
    assert_eq!(redactor.redact_str("ax1234yzzb"), "a[redacted:BIG]b");
    assert_eq!(redactor.redact_str("a1234b"), "a[redacted:SMALL]b");
}

#[test]
fn a_hostile_text_costs_little() {
    let redactor = redactor(&[("KEY", "aaaa aaaa"), ("TWO", "%%%%")]);
    for text in ["a".repeat(4 << 20), "%25".repeat(1 << 20), "\\".repeat(4 << 20), "%".repeat(4 << 20)] {
        let began = std::time::Instant::now();
        redactor.redact_str(&text);
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    }
}

#[test]
fn a_media_type_that_hides_a_secret_is_found_in_any_case() {
    let redactor = redactor(&[("TOKEN", "tok/en+\"secret value 123")]);
    assert!(redactor.finds_in_any_case("text/x-TOK/EN+\"Secret value 123"));
}
