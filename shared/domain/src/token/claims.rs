//! What a link says: who issued it, for whom, how long, and what it allows.

use serde_json::{Value, json};
use uuid::Uuid;

use super::fields::{Fields, is_name};
use super::{Cap, Digest, PublicKey, invalid};
use crate::canonical;
use crate::fault::Result;
use crate::json;

/// The deepest link: a root is 0.
pub const MAX_DEPTH: u8 = 3;
/// The most audiences of a token.
const MAX_AUDIENCES: usize = 16;
/// The longest life of a bearer root that may write or reach sensitive rows, in seconds.
const BEARER_GRAVE_SECONDS: i64 = 900;
/// The longest life of a token that may travel in a URL, in seconds.
const URL_SECONDS: i64 = 3_600;
/// The most uses of such bearer roots.
const BEARER_USES: u64 = 100;

/// The claims of one link. What can be wrong in each alone was refused when it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Claims {
    /// Who issued the root.
    pub iss: String,
    /// For whom the root was issued.
    pub sub: String,
    /// The executors that may take it, by audience name; 1 to 16, no name twice.
    pub aud: Vec<String>,
    /// Its own id, a UUIDv7.
    pub jti: Uuid,
    /// When it was issued, in seconds since the Unix epoch.
    pub iat: i64,
    /// The first second in which it is no longer good.
    pub exp: i64,
    /// The holder's key; absent on a bearer root alone.
    pub cnf: Option<PublicKey>,
    /// How deep it stands and how deep its children may.
    pub del: Delegation,
    /// The SHA-256 of the parent's signing input; absent on a root.
    pub par: Option<Digest>,
    /// What it allows.
    pub cap: Cap,
}

/// How deep a link stands and how deep its children may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// Its own depth; a root is 0.
    pub d: u8,
    /// The greatest depth of a link below it, at most 3.
    pub max: u8,
}

impl Claims {
    /// Reads the payload of a link.
    ///
    /// # Errors
    /// `claims_invalid`, also for JSON with a name twice, a fraction or a lone surrogate; `claims_unknown`.
    pub fn read(payload: &[u8]) -> Result<Claims> {
        let text = std::str::from_utf8(payload).map_err(|_| invalid("payload", "must be UTF-8"))?;
        let value = json::value(text).map_err(|problem| invalid("payload", &format!("is refused: {problem}")))?;
        let mut fields = Fields::new("", value)?;
        if fields.whole("v")? != 1 {
            return Err(fields.wrong("v", "must be 1"));
        }
        let claims = Claims {
            iss: fields.name("iss")?,
            sub: fields.name("sub")?,
            aud: audiences(&mut fields)?,
            jti: fields.text("jti", uuid7)?,
            iat: seconds(&mut fields, "iat")?,
            exp: seconds(&mut fields, "exp")?,
            cnf: holder(&mut fields)?,
            del: delegation(&mut fields)?,
            par: fields.optional_text("par", Digest::from_base64url)?,
            cap: Cap::read(fields.required("cap")?)?,
        };
        fields.finish()?;
        claims.check()?;
        Ok(claims)
    }

    /// The canonical text (RFC 8785), which is what we sign.
    pub fn canonical(&self) -> String {
        canonical::to_string(&self.to_json())
    }

    /// The claims as JSON; what is absent has no member.
    pub fn to_json(&self) -> Value {
        let mut claims = json!({
            "v": 1, "iss": self.iss, "sub": self.sub, "aud": self.aud, "jti": self.jti, "iat": self.iat,
            "exp": self.exp, "del": {"d": self.del.d, "max": self.del.max}, "cap": self.cap.to_json(),
        });
        if let Some(holder) = &self.cnf {
            claims["cnf"] = json!({"jwk": holder.jwk()});
        }
        if let Some(parent) = &self.par {
            claims["par"] = parent.base64url().into();
        }
        claims
    }

    /// From issue to end, in seconds.
    pub fn life(&self) -> i64 {
        self.exp.saturating_sub(self.iat)
    }

    /// The rules that hold between the claims of one link.
    ///
    /// # Errors
    /// `claims_invalid` with the claim.
    pub fn check(&self) -> Result<()> {
        let uses_are_few = self.cap.uses.is_some_and(|uses| uses <= BEARER_USES);
        let bearer = self.cnf.is_none();
        let rules = [
            (self.iat < self.exp, "exp", "must be after `iat`"),
            (self.cap.uses != Some(0), "cap.uses", "must be at least 1"),
            (!self.cap.keys.is_empty() || !self.cap.prefixes.is_empty(), "cap", "must name keys or prefixes"),
            (!bearer || self.par.is_none(), "cnf", "must name the holder of a derived link"),
            (!bearer || self.del.max == 0, "del", "must end at 0 where no holder could derive"),
            (!bearer || !self.cap.is_grave() || uses_are_few, "cap.uses", "must be 1 to 100 without a holder"),
            (!bearer || !self.cap.is_grave() || self.life() <= BEARER_GRAVE_SECONDS, "exp", "must be within 900 s"),
            (!self.cap.url || bearer, "cap.url", "is for tokens without a holder"),
            (!self.cap.url || !self.cap.is_grave(), "cap.url", "is for reading rows of low risk"),
            (!self.cap.url || self.life() <= URL_SECONDS, "exp", "must be within an hour in a URL"),
            (!self.cap.url || uses_are_few, "cap.uses", "must be 1 to 100 in a URL"),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            None => Ok(()),
            Some((_, claim, rule)) => Err(invalid(claim, rule)),
        }
    }
}

fn seconds(fields: &mut Fields, name: &str) -> Result<i64> {
    Ok(i64::try_from(fields.whole(name)?).expect("a number below 2^53"))
}

/// The one spelling of a UUIDv7, so that one token has one name.
fn uuid7(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|id| id.get_version_num() == 7 && id.to_string() == text)
}

fn audiences(fields: &mut Fields) -> Result<Vec<String>> {
    let Value::Array(items) = fields.required("aud")? else { return Err(fields.wrong("aud", "must be a list")) };
    let names: Option<Vec<String>> =
        items.into_iter().map(|item| item.as_str().filter(|name| is_name(name)).map(str::to_owned)).collect();
    let are_distinct = |names: &Vec<String>| names.iter().enumerate().all(|(at, name)| !names[..at].contains(name));
    let names = names.filter(|names| (1..=MAX_AUDIENCES).contains(&names.len())).filter(are_distinct);
    names.ok_or_else(|| fields.wrong("aud", "must be 1 to 16 different names"))
}

fn holder(fields: &mut Fields) -> Result<Option<PublicKey>> {
    let Some(value) = fields.optional("cnf") else { return Ok(None) };
    let mut cnf = Fields::new("cnf.", value)?;
    let jwk = cnf.required("jwk")?;
    let key = jwk.as_object().and_then(PublicKey::from_jwk);
    let key = key.ok_or_else(|| cnf.wrong("jwk", "must be the public JWK of a good Ed25519 key"))?;
    cnf.finish()?;
    Ok(Some(key))
}

fn delegation(fields: &mut Fields) -> Result<Delegation> {
    let mut del = Fields::new("del.", fields.required("del")?)?;
    let mut depth = |name| {
        let depth = u8::try_from(del.whole(name)?).ok().filter(|depth| *depth <= MAX_DEPTH);
        depth.ok_or_else(|| del.wrong(name, "must be 0 to 3"))
    };
    let delegation = Delegation { d: depth("d")?, max: depth("max")? };
    del.finish()?;
    Ok(delegation)
}
