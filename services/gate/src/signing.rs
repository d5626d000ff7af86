//! The private keys: given by the operator, or kept in a folder that gates may share. No other service has them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use callbook_domain::clock::Clock;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::token::PrivateKey;
use callbook_runtime::key_file::{KeyError, KeyFolder};
use callbook_store::fault::fault;
use callbook_store::lock;
use data_encoding::BASE64URL_NOPAD;
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::PgPool;

use crate::store::key::{self as store, State};

/// Where private keys come from.
#[derive(Debug)]
pub enum Source {
    /// The operator's one key. Another one is another setting.
    Given(Arc<PrivateKey>),
    /// A folder, in which the gate makes them.
    Folder(KeyFolder),
    /// Nowhere: this gate mints nothing.
    Nowhere,
}

/// Signs tokens.
#[derive(Debug)]
pub struct Signer {
    source: Source,
    /// Those that were read from the folder, by `kid`.
    read: Mutex<HashMap<String, Arc<PrivateKey>>>,
}

impl Signer {
    /// Brings the published keys in line with the private ones: the operator's key signs, or the first key and the next
    /// one are made. A folder that cannot be used leaves a gate that mints nothing, and says so in the log.
    ///
    /// # Errors
    /// `database_unavailable`.
    pub async fn open(pool: &PgPool, source: Source, clock: &Clock) -> Result<Signer> {
        let signer = Signer { source, read: Mutex::default() };
        let now = clock.now();
        let mut transaction = pool.begin().await.map_err(fault)?;
        lock::exclusive(&mut transaction).await.map_err(fault)?;
        let published = store::published(&mut transaction, now).await.map_err(fault)?;
        let active = published.iter().find(|key| key.state == State::Active).map(|key| key.kid.clone());
        match &signer.source {
            Source::Given(given) => {
                let kid = given.public().thumbprint();
                if active.as_ref() != Some(&kid) {
                    store::retire(&mut transaction, now).await.map_err(fault)?;
                    store::drop_next(&mut transaction, now).await.map_err(fault)?;
                    store::publish(&mut transaction, &given.public(), State::Active, now).await.map_err(fault)?;
                }
            }
            Source::Folder(_) => {
                let has_next = published.iter().any(|key| key.state == State::Next);
                let missing = [(active.is_none(), State::Active), (!has_next, State::Next)];
                for (_, state) in missing.into_iter().filter(|(is_missing, _)| *is_missing) {
                    match signer.make() {
                        Ok(made) => {
                            store::publish(&mut transaction, &made.public(), state, now).await.map_err(fault)?;
                        }
                        Err(fault) => tracing::warn!(%fault, "this gate mints no tokens"),
                    }
                }
            }
            Source::Nowhere => tracing::warn!("no place for a signing key: this gate mints no tokens"),
        }
        transaction.commit().await.map_err(fault)?;
        if let Some(Err(fault)) = active.map(|kid| signer.key(&kid)) {
            tracing::warn!(%fault, "this gate mints no tokens");
        }
        Ok(signer)
    }

    /// The private part of a key.
    ///
    /// # Errors
    /// `service_unavailable` where this gate does not have it.
    pub(crate) fn key(&self, kid: &str) -> Result<Arc<PrivateKey>> {
        let folder = match &self.source {
            Source::Given(given) if given.public().thumbprint() == kid => return Ok(given.clone()),
            Source::Folder(folder) => folder,
            Source::Given(_) | Source::Nowhere => return Err(not_here()),
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = read.get(kid) {
            return Ok(key.clone());
        }
        let text = folder.read(kid).map_err(unusable)?.ok_or_else(not_here)?;
        let key = PrivateKey::parse(text.expose_secret()).filter(|key| key.public().thumbprint() == kid);
        let key = Arc::new(key.ok_or_else(not_here)?);
        read.insert(kid.to_owned(), key.clone());
        Ok(key)
    }

    /// Makes a key and keeps it.
    ///
    /// # Errors
    /// `invalid_request` where the operator gives the key; `service_unavailable`.
    pub(crate) fn make(&self) -> Result<Arc<PrivateKey>> {
        let Source::Folder(folder) = &self.source else {
            return match &self.source {
                Source::Given(_) => Err(Fault::new(Reason::InvalidRequest, "the signing key is given by a setting")
                    .fix("set `CALLBOOK_ISSUER_KEY` to another key and start the gates again")),
                Source::Nowhere | Source::Folder(_) => Err(not_here()),
            };
        };
        let mut seed = [0u8; 32];
        getrandom::fill(&mut seed).map_err(|_| Fault::new(Reason::Internal, "the system gives no randomness"))?;
        let key = Arc::new(PrivateKey::from_seed(&seed));
        let kid = key.public().thumbprint();
        folder.keep(&kid, &SecretString::from(BASE64URL_NOPAD.encode(&seed))).map_err(unusable)?;
        self.read.lock().unwrap_or_else(PoisonError::into_inner).insert(kid, key.clone());
        Ok(key)
    }

    /// Forgets a key that signs no more, for good.
    pub(crate) fn forget(&self, kid: &str) {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).remove(kid);
        if let Source::Folder(folder) = &self.source
            && let Err(error) = folder.forget(kid)
        {
            tracing::warn!(%error, "a signing key that signs no more stays where it is");
        }
    }
}

fn not_here() -> Fault {
    Fault::new(Reason::ServiceUnavailable, "this gate does not have the private part of the signing key").fix(
        "share the data directory or `CALLBOOK_ISSUER_KEY` between gates; a key that is lost is left by a rotation",
    )
}

fn unusable(error: KeyError) -> Fault {
    tracing::error!(%error, "the folder of signing keys cannot be used");
    Fault::new(Reason::ServiceUnavailable, "the folder of signing keys cannot be used, the log of the gate says why")
}
