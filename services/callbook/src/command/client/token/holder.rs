//! `callbook token holder`: the key pair of a holder, as a JWK of RFC 8037 in a file of its own.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use callbook_domain::token::{PrivateKey, PublicKey};
use clap::Args;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use super::super::screen::Screen;
use super::super::trouble::Trouble;
use super::super::{Ended, Verdict, input};

#[derive(Debug, Args)]
#[command(
    after_help = "The file is a private JWK that nobody else can read. The public part is what `mint --holder` and
`narrow --to` take; they take the file too and use its public part only.

Example:
  callbook token holder alice.jwk > alice.pub.jwk"
)]
pub struct Make {
    /// The file to make; one that is there is left alone
    file: String,
}

impl Make {
    pub fn run(self, screen: &Screen) -> Ended {
        let mut seed = [0u8; 32];
        getrandom::fill(&mut seed)
            .map_err(|error| Trouble::Broken(format!("this machine has no randomness ({error})")))?;
        let public = PrivateKey::from_seed(&seed).public().jwk();
        let mut private = public.clone();
        private["d"] = BASE64URL_NOPAD.encode(&seed).into();
        let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.file);
        made.and_then(|mut file| writeln!(file, "{private}"))
            .map_err(|error| Trouble::usage(format!("{} cannot be made ({error})", self.file)))?;
        screen.text(&format!("{public}\n")).map(|()| Verdict::Done)
    }
}

/// The public key of a file: a JWK, or of a file with the private key.
pub fn public(file: &str) -> Result<PublicKey, Trouble> {
    if let Some(key) = pem(file)? {
        return Ok(key.public());
    }
    let mut jwk = read(file)?;
    jwk.remove("d");
    PublicKey::from_jwk(&jwk).ok_or_else(|| no_key(file))
}

/// The private key of a file: a JWK, or a PEM as `openssl genpkey -algorithm ed25519` writes it.
pub fn private(file: &str) -> Result<PrivateKey, Trouble> {
    if let Some(key) = pem(file)? {
        return Ok(key);
    }
    let jwk = read(file)?;
    let seed = jwk.get("d").and_then(Value::as_str).and_then(|d| BASE64URL_NOPAD.decode(d.as_bytes()).ok());
    let seed: Option<[u8; 32]> = seed.and_then(|seed| seed.try_into().ok());
    let seed = seed.ok_or_else(|| Trouble::usage(format!("{file} holds no private key")))?;
    let key = PrivateKey::from_seed(&seed);
    // two halves that do not belong together would sign what nobody takes
    if key.public() == public(file)? { Ok(key) } else { Err(no_key(file)) }
}

fn pem(file: &str) -> Result<Option<PrivateKey>, Trouble> {
    let text = input::text(file)?;
    if !text.contains("-----BEGIN") {
        return Ok(None);
    }
    PrivateKey::parse(&text).map(Some).ok_or_else(|| no_key(file))
}

fn read(file: &str) -> Result<Map<String, Value>, Trouble> {
    let jwk: Option<Map<String, Value>> = serde_json::from_str(&input::text(file)?).ok();
    let mut jwk = jwk.ok_or_else(|| no_key(file))?;
    // what other programs write beside it says nothing about the key
    jwk.retain(|name, _| matches!(name.as_str(), "kty" | "crv" | "x" | "d"));
    Ok(jwk)
}

fn no_key(file: &str) -> Trouble {
    Trouble::usage(format!("{file} is not the JWK of an Ed25519 key; `callbook token holder` makes one"))
}

#[cfg(test)]
pub mod tests {
    use callbook_domain::token::{Claims, mint};
    use serde_json::json;

    use super::*;

    /// The file of a holder.
    pub fn file(seed: u8) -> tempfile::NamedTempFile {
        let mut jwk = PrivateKey::from_seed(&[seed; 32]).public().jwk();
        jwk["d"] = BASE64URL_NOPAD.encode(&[seed; 32]).into();
        jwk["use"] = "sig".into();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "{jwk}").unwrap();
        file
    }

    /// A token of the holder with the seed 2, five uses, one pinned key and the prefix of it.
    pub fn root() -> String {
        let now = super::super::now().unix_timestamp();
        let pin = callbook_domain::token::Digest::of("contract").to_string();
        let claims = json!({
            "v": 1, "iss": "here", "sub": "alice", "aud": ["callbook"], "jti": callbook_domain::invocation::uuid_at(super::super::now()),
            "iat": now, "exp": now + 900, "del": {"d": 0, "max": 2},
            "cnf": {"jwk": PrivateKey::from_seed(&[2; 32]).public().jwk()},
            "cap": {"keys": {"PINNED": pin}, "prefixes": ["PIN"], "risk": "low", "effect": "read", "uses": 5},
        });
        mint::root(&Claims::read(claims.to_string().as_bytes()).unwrap(), &PrivateKey::from_seed(&[1; 32])).unwrap()
    }

    #[test]
    fn a_key_is_made_once_for_nobody_else_to_read() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alice.jwk");
        let name = path.to_str().unwrap();
        let screen = super::super::super::text::screen_of(100);
        Make { file: name.into() }.run(&screen).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(private(name).unwrap().public(), public(name).unwrap());
        let before = std::fs::read(&path).unwrap();
        assert_eq!(Make { file: name.into() }.run(&screen).unwrap_err().code(), 2);
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_key_of_other_programs_is_one_too() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let pem = "-----BEGIN PRIVATE KEY-----\n\
            MC4CAQAwBQYDK2VwBCIEIB/8XLpoE6GnmdeFKgvtwGhUGZAiwiYtrthy6d0FDGLU\n\
            -----END PRIVATE KEY-----\n";
        write!(file, "{pem}").unwrap();
        let name = file.path().to_str().unwrap();
        assert_eq!(private(name).unwrap().public(), public(name).unwrap());
        std::fs::write(file.path(), "-----BEGIN PRIVATE KEY-----\nAAAA\n").unwrap();
        assert!(private(name).is_err() && public(name).is_err());
    }

    #[test]
    fn halves_that_do_not_belong_together_are_no_key() {
        let mut jwk = PrivateKey::from_seed(&[2; 32]).public().jwk();
        jwk["d"] = BASE64URL_NOPAD.encode(&[3; 32]).into();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "{jwk}").unwrap();
        assert!(private(file.path().to_str().unwrap()).is_err());
        assert!(public("/nowhere/alice.jwk").is_err());
    }
}
