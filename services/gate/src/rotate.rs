//! The signing keys: which there are, and one step on.

use callbook_domain::caller::Caller;
use callbook_domain::event::{Body, EventKind};
use callbook_domain::fault::Result;
use callbook_domain::row::timestamp;
use callbook_store::fault::fault;
use callbook_store::lock;

use crate::App;
use crate::store::key::{self as store, Published, State};
use crate::store::token::log;

/// The public keys whose signatures are believed or soon will be.
///
/// # Errors
/// `database_unavailable`.
pub(crate) async fn published(app: &App) -> Result<Vec<Published>> {
    let mut connection = app.pool.acquire().await.map_err(fault)?;
    store::published(&mut connection, app.clock.now()).await.map_err(fault)
}

/// The keys after one step: the next key signs, the one that signed is believed until its last token has ended, and
/// another next key is made. A next key whose private part is not here is passed over, so that a deployment that lost
/// its keys goes on after one step.
///
/// # Errors
/// `unauthorized`, `forbidden`; `invalid_request` where the operator gives the key; `service_unavailable`.
pub(crate) async fn rotate(app: &App, caller: &Caller) -> Result<Vec<Published>> {
    caller.require_owner()?;
    let now = app.clock.now();
    let made = app.signer.make()?;
    let mut transaction = app.pool.begin().await.map_err(fault)?;
    lock::exclusive(&mut transaction).await.map_err(fault)?;
    let before = store::published(&mut transaction, now).await.map_err(fault)?;
    let retired = store::retire(&mut transaction, now).await.map_err(fault)?;
    let next = before.iter().find(|key| key.state == State::Next);
    let active = match next.map(|next| app.signer.key(&next.kid)) {
        Some(Ok(private)) => private,
        Some(Err(_)) | None => app.signer.make()?,
    };
    store::drop_next(&mut transaction, now).await.map_err(fault)?;
    store::publish(&mut transaction, &active.public(), State::Active, now).await.map_err(fault)?;
    store::publish(&mut transaction, &made.public(), State::Next, now).await.map_err(fault)?;
    store::settle(&mut transaction, now).await.map_err(fault)?;
    let body = Body::new(EventKind::Mint)
        .set("kid", active.public().thumbprint())
        .set("actor", caller.actor())
        .set("ts", timestamp(now))
        .canonical();
    log(&mut transaction, EventKind::Mint, &caller.actor(), &body, now).await.map_err(fault)?;
    let after = store::published(&mut transaction, now).await.map_err(fault)?;
    transaction.commit().await.map_err(fault)?;
    for kid in retired {
        app.signer.forget(&kid);
    }
    Ok(after)
}
