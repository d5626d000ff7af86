//! The attacks of `spec/tokens.md` on the text and the numbers of a signature: more than one text, more than one key.

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use proptest::prelude::*;

use super::*;

#[test]
fn small_order_points() {
    // The eight points of small order, and encodings of some of them with a coordinate that is not reduced.
    for hex in [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    ] {
        let bytes: [u8; 32] = HEXLOWER.decode(hex.as_bytes()).unwrap().try_into().unwrap();
        assert!(PublicKey::from_bytes(&bytes).is_none(), "{hex}");
        let x = BASE64URL_NOPAD.encode(&bytes);
        let holder = alice().public().jwk()["x"].as_str().unwrap().to_owned();
        assert_eq!(refusal(&edited(&holder, &x)), "claims_invalid");
    }
    // A signature whose R is the neutral point and whose s is zero: under a small-order key it would fit any text.
    let (input, _) = root().rsplit_once('.').map(|(input, _)| (input.to_owned(), ())).unwrap();
    let mut signature = [0_u8; 64];
    signature[0] = 1;
    let token = format!("{input}.{}", BASE64URL_NOPAD.encode(&signature));
    assert_eq!(refusal(&token), "bad_signature");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn encoding_malleability(at in any::<prop::sample::Index>(), byte in 0x20_u8..0x7f, how in 0..3) {
        let token = child(|_| {});
        let at = at.index(token.len());
        let mut other = token.clone().into_bytes();
        match how {
            0 => other[at] = byte,
            1 => other.insert(at, byte),
            _ => drop(other.remove(at)),
        }
        let other = String::from_utf8(other).unwrap();
        prop_assume!(other != token);
        prop_assert!(inspected(&token).is_ok());
        prop_assert!(inspected(&other).is_err(), "{other}");
    }
}

#[test]
fn encoding_malleability_of_the_last_bits_and_padding() {
    let token = root();
    let last = token.chars().last().unwrap();
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for other in alphabet.chars().filter(|c| *c != last) {
        let mut changed = token.clone();
        changed.pop();
        changed.push(other);
        let refused = refusal(&changed);
        assert!(["token_malformed", "bad_signature"].contains(&refused.as_str()), "{other}: {refused}");
    }
    for broken in [
        format!("{token}="),
        format!("{token}."),
        format!(" {token}"),
        format!("{token}\n"),
        format!("{token}~"),
        format!("~{token}"),
    ] {
        assert_eq!(refusal(&broken), "token_malformed", "{broken:?}");
    }
    // s + L is the same scalar: a second text of one signature.
    let (input, signature) = token.rsplit_once('.').unwrap();
    let mut bytes = BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap();
    let order = HEXLOWER.decode(b"edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010").unwrap();
    let mut carry = 0_u16;
    for (byte, more) in bytes[32..].iter_mut().zip(order) {
        carry += u16::from(*byte) + u16::from(more);
        *byte = carry as u8;
        carry >>= 8;
    }
    let second = format!("{input}.{}", BASE64URL_NOPAD.encode(&bytes));
    assert_eq!(refusal(&second), "bad_signature");
}

#[test]
fn a_private_key_is_read_as_a_pem_or_as_its_seed() {
    let pem = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEIB/8XLpoE6GnmdeFKgvtwGhUGZAiwiYtrthy6d0FDGLU\n\
        -----END PRIVATE KEY-----\n";
    let seed = "H_xcumgToaeZ14UqC-3AaFQZkCLCJi2u2HLp3QUMYtQ";
    let [of_pem, of_seed] = [pem, seed].map(|text| PrivateKey::parse(text).unwrap().public());
    assert_eq!(of_pem, of_seed);
    for bad in ["", "H_xcumgToaeZ14UqC", &pem.replace("MC4C", "MC4D"), "-----BEGIN PRIVATE KEY-----"] {
        assert!(PrivateKey::parse(bad).is_none(), "{bad}");
    }
}
