//! One text for one JSON value, so that a hash over it means something: RFC 8785, with one departure.
//!
//! RFC 8785 puts every number through an IEEE double, so `9007199254740993` and `9007199254740992` get one text. Two
//! schemas that differ must never hash alike, so a number whose decimal value a double does not give back keeps all
//! its digits, written in the same layout. [`is_exact`] says whether a value stays within RFC 8785.

use std::fmt::Write as _;

use serde_json::{Number, Value};
use sha2::{Digest, Sha256};

/// The canonical text: no spaces, keys in the order of their UTF-16 code units, numbers as ECMAScript writes them.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// Whether the canonical text is that of RFC 8785: a double gives every number back.
pub fn is_exact(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number_text(number).1,
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(fields) => fields.values().all(is_exact),
    }
}

/// `sha256:<hex>` of the bytes.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    format!("sha256:{}", data_encoding::HEXLOWER.encode(&Sha256::digest(bytes.as_ref())))
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&number_text(number).0),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (at, (name, item)) in fields.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_string(name, out);
                out.push(':');
                write(item, out);
            }
            out.push('}');
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The number's text, and whether a double gives it back.
fn number_text(number: &Number) -> (String, bool) {
    let text = number.to_string();
    let Some(exact) = Decimal::read(&text) else { return (text, false) };
    // serde_json's own writer breaks ties to even as ECMAScript does; `{:e}` of std does not.
    let shortest = text.parse().ok().and_then(Number::from_f64).and_then(|double| Decimal::read(&double.to_string()));
    let is_exact = shortest.as_ref() == Some(&exact);
    (exact.layout(), is_exact)
}

/// A decimal number as sign, digits and the place of the point: `0.digits × 10^point`. Equal numbers are equal values.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    /// Without zeros at either end; empty for zero.
    digits: String,
    point: i128,
}

impl Decimal {
    /// Reads a JSON number. Nothing where the exponent itself passes 64 bits: such a number keeps its text.
    fn read(text: &str) -> Option<Decimal> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_start_matches('0');
        let zeros = digits.len() - significant.len();
        let significant = significant.trim_end_matches('0');
        if significant.is_empty() {
            return Some(Decimal { negative: false, digits: String::new(), point: 0 });
        }
        let exponent: i64 = exponent.parse().ok()?;
        let point = i128::from(exponent) + whole.len() as i128 - zeros as i128;
        Some(Decimal { negative, digits: significant.to_owned(), point })
    }

    /// Number::toString of ECMAScript, for any number of digits.
    fn layout(&self) -> String {
        let digits = self.digits.as_str();
        let count = digits.len() as i128;
        let text = match self.point {
            _ if digits.is_empty() => "0".to_owned(),
            point if count <= point && point <= 21 => format!("{digits:0<0$}", point as usize),
            point if 0 < point && point <= 21 => {
                let (whole, fraction) = digits.split_at(point as usize);
                format!("{whole}.{fraction}")
            }
            point if -6 < point && point <= 0 => format!("0.{}{digits}", "0".repeat(-point as usize)),
            point => {
                let (first, rest) = digits.split_at(1);
                let dot = if rest.is_empty() { "" } else { "." };
                format!("{first}{dot}{rest}e{:+}", point - 1)
            }
        };
        if self.negative { format!("-{text}") } else { text }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(text: &str) -> String {
        to_string(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn numbers_are_those_of_appendix_b() {
        for (bits, text) in [
            (0x0000_0000_0000_0000_u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            let double = f64::from_bits(bits);
            let value = Value::from(double);
            assert_eq!(to_string(&value), text, "{double:e}");
            assert!(is_exact(&value), "{text}");
        }
    }

    #[test]
    fn the_example_of_section_3_is_written() {
        let text = r#"{"numbers":[333333333.3333333,1E30,4.50,2e-3,0.000000000000000000000000001],
            "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
        let wanted = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
        assert_eq!(canonical(text), wanted);
    }

    #[test]
    fn keys_are_sorted_by_utf_16_code_units() {
        let text = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
        assert_eq!(canonical(text), "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}");
    }

    #[test]
    fn a_number_that_no_double_gives_back_keeps_its_digits() {
        for (text, wanted) in [
            ("9007199254740993", "9007199254740993"),
            ("333333333.33333329", "333333333.33333329"),
            ("295147905179352825856", "295147905179352825856"),
            ("123456789012345678901234567890", "1.2345678901234567890123456789e+29"),
            ("1e400", "1e+400"),
            ("-10E-401", "-1e-400"),
            ("1e99999999999999999999", "1e+99999999999999999999"),
        ] {
            let value = serde_json::from_str(text).unwrap();
            assert_eq!(to_string(&value), wanted);
            assert!(!is_exact(&value), "{text}");
        }
        assert_eq!(canonical("[1.10,-0,0e999999999999999999999,1e0]"), "[1.1,0,0,1]");
    }

    #[test]
    fn the_hash_names_its_kind() {
        assert_eq!(sha256_hex(""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    proptest! {
        #[test]
        fn the_canonical_text_is_a_fixed_point(text in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,21})?") {
            let once = canonical(&text);
            prop_assert_eq!(canonical(&once), once);
        }

        #[test]
        fn every_double_is_exact(double in prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL) {
            let value = Value::from(double);
            prop_assert!(is_exact(&value));
            prop_assert_eq!(to_string(&value).parse::<f64>().unwrap(), double);
        }
    }
}
