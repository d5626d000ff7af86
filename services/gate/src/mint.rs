//! Mint a token: the one answer that holds its text.

use callbook_domain::caller::Caller;
use callbook_domain::event::EventKind;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::uuid_at;
use callbook_domain::token::mint::{self, LIFE_SECONDS};
use callbook_domain::token::{Claims, Delegation, MAX_DEPTH, PublicKey};
use callbook_store::fault::fault;
use callbook_store::lock;
use callbook_store::principal::check_alive;
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::App;
use crate::scope::{Scope, refused};
use crate::store::{key as keys, token as store};
use crate::token::{Issued, check_words, in_words_of_a_request};

/// The life of a token, in seconds, where none is asked.
pub(crate) const LIFE: i64 = 900;

/// What is asked.
pub(crate) struct Asked {
    /// What it covers.
    pub(crate) scope: Scope,
    /// Life in seconds.
    pub(crate) ttl: Option<i64>,
    /// The holder.
    pub(crate) holder: Option<PublicKey>,
    /// It may travel in an address.
    pub(crate) url: bool,
    /// For whom it is; empty: the caller.
    pub(crate) subject: String,
    /// What it is for.
    pub(crate) purpose: String,
    /// How deep it may be derived from.
    pub(crate) max_depth: Option<u8>,
    /// Who may take it; empty: this deployment.
    pub(crate) audience: Vec<String>,
}

/// The text of the token, and what is kept of it.
///
/// # Errors
/// `unauthorized`, `forbidden`, `unknown_key` with the key, `invalid_request` with the field, `token_too_large`,
/// `revoked` where it would be taken back already, `service_unavailable` where this gate has no signing key.
pub(crate) async fn mint(app: &App, caller: &Caller, asked: Asked) -> Result<(String, Issued)> {
    caller.require_credential()?;
    if matches!(caller, Caller::Holder(_)) {
        return Err(Fault::new(Reason::Forbidden, "a token mints nothing")
            .fix("narrow it instead")
            .with("needs", "mint:"));
    }
    check_words("purpose", &asked.purpose)?;
    let now = app.clock.now();
    let issued_at = now.unix_timestamp();
    let ttl = checked_life(app, asked.ttl, caller.ends().map(|end| end - issued_at))?;
    let snapshot = app.directory.fresh().await?;
    let deepest = if asked.holder.is_some() { MAX_DEPTH } else { 0 };
    let claims = Claims {
        iss: app.deployment.issuer.clone(),
        sub: subject(asked.subject, caller),
        aud: if asked.audience.is_empty() { vec![app.deployment.audience.clone()] } else { asked.audience },
        jti: uuid_at(now),
        iat: issued_at,
        exp: issued_at + ttl,
        cnf: asked.holder,
        del: Delegation { d: 0, max: asked.max_depth.unwrap_or(deepest) },
        par: None,
        cap: asked.scope.root(caller, &snapshot, asked.url)?,
    };
    let mut transaction = app.pool.begin().await.map_err(fault)?;
    lock::shared(&mut transaction).await.map_err(fault)?;
    check_alive(&mut transaction, caller).await?;
    let text = sign(app, &mut transaction, &claims).await?;
    let issued = Issued::of(&text, asked.purpose, caller, None)?;
    record(&mut transaction, &issued, &claims, now).await?;
    transaction.commit().await.map_err(fault)?;
    Ok((text, issued))
}

/// The token, signed by the key that signs now.
pub(crate) async fn sign(app: &App, connection: &mut PgConnection, claims: &Claims) -> Result<String> {
    let kid = keys::active(connection).await.map_err(fault)?.ok_or_else(no_key)?;
    let key = app.signer.key(&kid)?;
    mint::root(claims, &key).map_err(in_words_of_a_request)
}

/// Keeps the token, unless something that it would be named by is taken back already: its subject, its holder, its key,
/// or the token that it comes from.
pub(crate) async fn record(
    connection: &mut PgConnection,
    issued: &Issued,
    claims: &Claims,
    now: OffsetDateTime,
) -> Result<()> {
    if let Some(what) = store::revoked(connection, &issued.names).await.map_err(fault)? {
        return Err(Fault::new(Reason::Revoked, "such a token would be taken back already").detail(what));
    }
    store::insert(connection, issued).await.map_err(fault)?;
    let body = issued.event(claims, now);
    store::log(connection, EventKind::Mint, &issued.minted_by, &body, now).await.map_err(fault)
}

/// The life that is asked, or the default, as far as the operator lets it and as the minting credential lives itself.
fn checked_life(app: &App, asked: Option<i64>, left: Option<i64>) -> Result<i64> {
    let allowed = app.deployment.max_ttl.whole_seconds().min(*LIFE_SECONDS.end());
    let longest = left.map_or(allowed, |left| left.min(allowed));
    let shortest = *LIFE_SECONDS.start();
    match asked {
        None if longest >= shortest => Ok(LIFE.min(longest)),
        None => Err(refused("ttl", format!("this credential ends in less than {shortest} seconds"))),
        Some(ttl) if (shortest..=longest).contains(&ttl) => Ok(ttl),
        Some(_) => Err(refused("ttl", format!("a token lives {shortest} to {longest} seconds here"))
            .with("max_seconds", longest.to_string())),
    }
}

fn subject(asked: String, caller: &Caller) -> String {
    match caller {
        _ if !asked.is_empty() => asked,
        Caller::Principal(principal) => principal.name.clone(),
        Caller::Owner | Caller::Holder(_) | Caller::Anonymous => "owner".to_owned(),
    }
}

fn no_key() -> Fault {
    Fault::new(Reason::ServiceUnavailable, "no key signs tokens here")
        .fix("give the gate a data directory or `CALLBOOK_ISSUER_KEY`, and start it again")
}
