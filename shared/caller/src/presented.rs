//! A credential that is good by itself, and what is still to be asked of it.

use std::sync::Arc;

use callbook_domain::arguments::Sent;
use callbook_domain::caller::Caller;
use callbook_domain::fault::Result;

use crate::token::{Known, Tokens};

/// What a call presents, before anybody knows whether it may be made with it.
pub struct Presented<'a>(Who<'a>);

enum Who<'a> {
    Known(Caller),
    Token { tokens: &'a Tokens, known: Arc<Known>, proof: Option<String> },
}

impl<'a> Presented<'a> {
    pub(crate) fn known(caller: Caller) -> Self {
        Presented(Who::Known(caller))
    }

    pub(crate) fn token(tokens: &'a Tokens, known: Arc<Known>, proof: Option<&str>) -> Self {
        Presented(Who::Token { tokens, known, proof: proof.map(str::to_owned) })
    }

    /// The name in receipts of the one who presents it, whatever may come of the call.
    pub fn actor(&self) -> String {
        match &self.0 {
            Who::Known(caller) => caller.actor(),
            Who::Token { known, .. } => format!("cap:{}", known.chain.leaf().claims.jti),
        }
    }

    /// The caller of this key with what it sent, and the id of its proof, which is the call's idempotency key; absent
    /// where the credential is no token or has no holder. Steps 9 and 10; nothing is said about rows.
    ///
    /// # Errors
    /// `args_not_canonical`, `pop_required`, `pop_invalid`, `revoked`, `database_unavailable`.
    pub async fn prove(self, key: &str, sent: &Sent) -> Result<(Caller, Option<String>)> {
        match self.0 {
            Who::Known(caller) => Ok((caller, None)),
            Who::Token { tokens, known, proof } => {
                let proof = tokens.prove(&known, proof.as_deref(), key, sent)?;
                Ok((Caller::Holder(tokens.standing(&known).await?), proof))
            }
        }
    }

    /// The caller, where no row is called: step 10 alone.
    ///
    /// # Errors
    /// `revoked`, `database_unavailable`.
    pub async fn without_proof(self) -> Result<Caller> {
        match self.0 {
            Who::Known(caller) => Ok(caller),
            Who::Token { tokens, known, .. } => Ok(Caller::Holder(tokens.standing(&known).await?)),
        }
    }
}
