//! The form of a row's credential and the names of its secrets. No value is ever here: what a row holds is a name, and
//! a refusal never repeats what was written, in case somebody wrote a value.

mod header;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use data_encoding::BASE64;

/// The longest header or parameter name, in bytes.
const MAX_NAME: usize = 128;
/// The parameter of `query:NAME`.
const DEFAULT_PARAM: &str = "access_token";

/// How a request shows who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Nothing is shown.
    None,
    /// `Authorization: Bearer <value>`
    Bearer(SecretName),
    /// `Authorization: Basic <user:password>`
    Basic {
        /// The secret of the user's name.
        user: SecretName,
        /// The secret of the password; empty where there is none.
        password: Option<SecretName>,
    },
    /// Headers whose values hold secrets.
    Headers(Vec<(String, Vec<AuthPiece>)>),
    /// A query parameter.
    Query {
        /// The parameter.
        param: String,
        /// The secret that is its value.
        secret: SecretName,
    },
    /// OAuth 2, kept by the executor; whether this build has it is the caller's to say.
    Oauth(SecretName),
}

/// The name of a secret: `[A-Za-z_][A-Za-z0-9_]{0,127}`.
pub type SecretName = String;

/// A part of a header's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthPiece {
    /// Text as it goes out.
    Literal(String),
    /// The value of a secret.
    Secret(SecretName),
}

/// Why a text is no form of a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAuth {
    /// A form that does not exist; only a word that can be no secret is repeated.
    #[error("unknown_prefix:{0}")]
    UnknownPrefix(String),
    /// A known form with something wrong in it.
    #[error("{form}: {why}")]
    Malformed {
        /// The form.
        form: &'static str,
        /// What is wrong.
        why: String,
    },
}

/// What a credential adds to a request. Its values are secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Headers, names as the row writes them. The sender checks the values by [`crate::template::header_value`].
    pub headers: Vec<(String, String)>,
    /// Query parameters, not yet encoded.
    pub query: Vec<(String, String)>,
}

impl std::fmt::Debug for Applied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        f.debug_struct("Applied")
            .field("headers", &names(&self.headers))
            .field("query", &names(&self.query))
            .finish_non_exhaustive()
    }
}

impl Auth {
    /// Reads the column `auth`.
    ///
    /// # Errors
    /// A form that does not exist, a name that is none, a header that a row may not set.
    pub fn parse(text: &str) -> Result<Auth, BadAuth> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Auth::None);
        }
        let (form, rest) = text.split_once(':').unwrap_or((text, ""));
        match form {
            "bearer" => Ok(Auth::Bearer(secret_name("bearer", rest)?)),
            "oauth" => Ok(Auth::Oauth(secret_name("oauth", rest)?)),
            "basic" => basic(rest),
            "headers" => header::parse(rest),
            "query" => query(rest),
            other => Err(BadAuth::UnknownPrefix(harmless(other))),
        }
    }

    /// The form's word, for readers who may not see names.
    pub fn form(&self) -> &'static str {
        match self {
            Auth::None => "none",
            Auth::Bearer(_) => "bearer",
            Auth::Basic { .. } => "basic",
            Auth::Headers(_) => "headers",
            Auth::Query { .. } => "query",
            Auth::Oauth(_) => "oauth",
        }
    }

    /// The names of the secrets, each once, in order.
    pub fn secret_names(&self) -> Vec<String> {
        let mut names: Vec<String> = match self {
            Auth::None => Vec::new(),
            Auth::Bearer(name) | Auth::Oauth(name) | Auth::Query { secret: name, .. } => vec![name.clone()],
            Auth::Basic { user, password } => std::iter::once(user).chain(password).cloned().collect(),
            Auth::Headers(headers) => headers.iter().flat_map(|(_, pieces)| pieces).filter_map(secret_of).collect(),
        };
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    /// What the credential adds to a request; `lookup` gives a secret's value. For `oauth` that is the access token.
    ///
    /// # Errors
    /// What `lookup` refuses.
    pub fn apply<E>(&self, lookup: impl Fn(&str) -> Result<String, E>) -> Result<Applied, E> {
        let mut applied = Applied::default();
        let mut authorize = |value: String| applied.headers.push(("Authorization".to_owned(), value));
        match self {
            Auth::None => {}
            Auth::Bearer(name) | Auth::Oauth(name) => authorize(format!("Bearer {}", lookup(name)?)),
            Auth::Basic { user, password } => {
                let password = password.as_deref().map(&lookup).transpose()?.unwrap_or_default();
                let pair = format!("{}:{password}", lookup(user)?);
                authorize(format!("Basic {}", BASE64.encode(pair.as_bytes())));
            }
            Auth::Headers(headers) => {
                for (name, pieces) in headers {
                    let mut value = String::new();
                    for piece in pieces {
                        match piece {
                            AuthPiece::Literal(text) => value.push_str(text),
                            AuthPiece::Secret(name) => value.push_str(&lookup(name)?),
                        }
                    }
                    applied.headers.push((name.clone(), value));
                }
            }
            Auth::Query { param, secret } => applied.query.push((param.clone(), lookup(secret)?)),
        }
        Ok(applied)
    }
}

/// Whether a text may be the name of a secret.
pub fn is_secret_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let starts = bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
    starts && text.len() <= 128 && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn secret_of(piece: &AuthPiece) -> Option<String> {
    match piece {
        AuthPiece::Literal(_) => None,
        AuthPiece::Secret(name) => Some(name.clone()),
    }
}

fn malformed(form: &'static str, why: impl Into<String>) -> BadAuth {
    BadAuth::Malformed { form, why: why.into() }
}

fn secret_name(form: &'static str, text: &str) -> Result<SecretName, BadAuth> {
    if is_secret_name(text) {
        return Ok(text.to_owned());
    }
    Err(malformed(form, "after the colon stands the name of a secret: a letter or `_`, then letters, digits and `_`"))
}

fn basic(rest: &str) -> Result<Auth, BadAuth> {
    let (user, password) = match rest.split_once(':') {
        None => (rest, None),
        Some((user, password)) => (user, Some(secret_name("basic", password)?)),
    };
    Ok(Auth::Basic { user: secret_name("basic", user)?, password })
}

fn query(rest: &str) -> Result<Auth, BadAuth> {
    let (param, secret) = rest.split_once('=').unwrap_or((DEFAULT_PARAM, rest));
    let is_param = !param.is_empty()
        && param.len() <= MAX_NAME
        && param.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~[]".contains(&byte));
    if !is_param {
        return Err(malformed("query", "before `=` stands a parameter of letters, digits and `-._~[]`"));
    }
    Ok(Auth::Query { param: param.to_owned(), secret: secret_name("query", secret)? })
}

/// A word that is short and plain enough to be no secret; anything else is not repeated.
fn harmless(word: &str) -> String {
    let is_plain = word.len() <= 16 && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_plain { word.to_owned() } else { "?".to_owned() }
}
