//! Where a client gets a credential for this server (RFC 9728).

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use callbook_domain::fault::{Fault, Reason};
use serde_json::json;

use crate::answer::{Answer, json as answered};
use crate::app::App;
use crate::request::Call;

/// The metadata of the surface whose path follows the well-known one, or of the gateway as a whole.
pub(super) async fn metadata(State(app): State<Arc<App>>, call: Call, uri: Uri) -> Answer {
    let path = uri.path().trim_start_matches("/.well-known/oauth-protected-resource").trim_end_matches('/');
    let is_ours = matches!(path, "" | "/mcp" | "/mcp/tools" | "/api/mcp");
    if app.config.issuers.is_empty() || !is_ours {
        return Err(Fault::new(Reason::NotFound, "no outside issuer is set up for this address").into());
    }
    answered(&json!({
        "resource": format!("{}{path}", call.base),
        "resource_name": "Callbook",
        "authorization_servers": app.config.issuers,
        "bearer_methods_supported": ["header"],
        "scopes_supported": app.config.scopes,
    }))
}
