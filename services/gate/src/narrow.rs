//! Narrow a token for a holder without a crypto library: the gate mints a bearer token that allows less.

use std::sync::Arc;

use callbook_domain::caller::{Caller, Holder};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::uuid_at;
use callbook_domain::token::{Claims, Delegation, narrow as rule};
use callbook_store::fault::fault;
use callbook_store::lock;

use crate::App;
use crate::mint::{LIFE, record, sign};
use crate::scope::Scope;
use crate::token::{Issued, check_words};

/// What is asked.
pub(crate) struct Asked {
    /// What it covers; what is not named is the source's.
    pub(crate) scope: Scope,
    /// Life in seconds.
    pub(crate) ttl: Option<i64>,
    /// It may travel in an address.
    pub(crate) url: bool,
    /// What it is for.
    pub(crate) purpose: String,
}

/// The text of the narrower token, and what is kept of it.
///
/// # Errors
/// `unauthorized`; `forbidden` where the caller presents no token; `widened:<field>`, also `widened:cnf` where the token
/// has a holder: a bearer token would ask less of whoever uses it; `unknown_key`, `invalid_request`, `revoked`,
/// `service_unavailable`.
pub(crate) async fn narrow(app: &App, caller: &Caller, asked: Asked) -> Result<(String, Issued)> {
    let holder = presented(caller)?;
    check_words("purpose", &asked.purpose)?;
    let leaf = &holder.chain.leaf().claims;
    if leaf.cnf.is_some() {
        return Err(Fault::new(Reason::Widened, "a bearer token would ask less than a token with a holder")
            .detail("cnf")
            .fix("derive a narrower token offline with the holder's key"));
    }
    let snapshot = app.directory.fresh().await?;
    let now = app.clock.now();
    let issued_at = now.unix_timestamp();
    let end = holder.expires_at();
    let claims = Claims {
        jti: uuid_at(now),
        iat: issued_at,
        exp: asked.ttl.map_or_else(|| end.min(issued_at + LIFE), |ttl| issued_at.saturating_add(ttl)),
        cnf: None,
        del: Delegation { d: 0, max: 0 },
        par: None,
        cap: asked.scope.within(&leaf.cap, caller, &snapshot, asked.url)?,
        ..leaf.clone()
    };
    rule::check(&Claims { exp: end, ..leaf.clone() }, &claims)?;
    let mut transaction = app.pool.begin().await.map_err(fault)?;
    lock::shared(&mut transaction).await.map_err(fault)?;
    let text = sign(app, &mut transaction, &claims).await?;
    let issued = Issued::of(&text, asked.purpose, caller, Some(holder))?;
    record(&mut transaction, &issued, &claims, now).await?;
    transaction.commit().await.map_err(fault)?;
    Ok((text, issued))
}

/// The holder of the token that the caller presents.
///
/// # Errors
/// `unauthorized`, `forbidden`.
pub(crate) fn presented(caller: &Caller) -> Result<&Arc<Holder>> {
    caller.require_credential()?;
    match caller {
        Caller::Holder(holder) => Ok(holder),
        Caller::Owner | Caller::Principal(_) | Caller::Anonymous => {
            Err(Fault::new(Reason::Forbidden, "this is asked with a token, and about it")
                .fix("send `Authorization: Cap <token>`")
                .with("needs", "token"))
        }
    }
}
