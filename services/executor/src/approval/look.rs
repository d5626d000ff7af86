//! Shows what a held call would do.

use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::fault::Result;
use callbook_store::fault::fault;
use callbook_store::snapshot::Snapshot;

use super::find::visible;
use super::{Approval, id_text, parse_id};
use crate::App;
use crate::admit::{callable, work};
use crate::call::{Call, Work};
use crate::credential::Credential;
use crate::repair::sent;
use crate::shape::{Shaped, render};
use crate::store::approval;

/// What a person sees before it decides.
#[derive(Clone, Debug)]
pub struct Look {
    /// The approval.
    pub approval: Approval,
    /// What the caller sent, as JSON; empty once it was erased.
    pub input: Vec<u8>,
    /// The request that would go out. Absent where the row has moved on or the input was erased: nothing would.
    pub shaped: Option<Shaped>,
    /// The host that the request would go to; empty where it goes nowhere.
    pub egress_host: String,
    /// Whether the row is still the one that the call is bound to.
    pub is_current: bool,
}

/// What a held call would do, rendered from the row that it is bound to. The values of secrets are never read. Who holds a
/// token with a holder's key proves it as for a call of the row with the arguments `{"approval": "<id>"}`.
///
/// # Errors
/// `unauthorized`, `not found`; `pop_required`, `pop_invalid`.
pub async fn look(app: &App, credential: Credential<'_>, id: &str) -> Result<Look> {
    let caller = credential.caller().await?;
    caller.require_credential()?;
    let id = parse_id(id)?;
    let approval = visible(app, &caller, id).await?;
    credential.proves_reading(&approval.key, "approval", &id_text(id)).await?;
    let input = approval::input(app.directory.pool(), id).await.map_err(fault)?;
    let snapshot = app.directory.fresh().await?;
    let row = snapshot.get(&approval.key).filter(|entry| entry.row.definition.enabled);
    let is_current = row.is_some_and(|entry| entry.row.contract_hash == approval.contract_hash);
    let mut look = Look { approval, input: Vec::new(), shaped: None, egress_host: String::new(), is_current };
    if let Some(input) = input {
        if is_current {
            let call = bind(&caller, &snapshot, &look.approval.key, &input)?;
            if let Work::Http(request) = &call.work {
                look.egress_host = request.url.host_str().unwrap_or_default().to_owned();
            }
            look.shaped = Some(render(app, &call)?);
        }
        look.input = input;
    }
    Ok(look)
}

/// The call as it was admitted when it was held, for the one who looks at it. Whether this executor could run it does not
/// matter here: it is shown.
fn bind(caller: &Caller, snapshot: &Arc<Snapshot>, key: &str, input: &[u8]) -> Result<Call> {
    let (entry, compiled) = callable(snapshot, &Caller::Owner, key)?;
    let bound = compiled.signature.bind(&sent(input)?)?;
    let work = work(compiled, &bound)?;
    Ok(Call { caller: caller.clone(), entry, bound, work, place: None, book: snapshot.clone() })
}
