//! A request, read at the door: what comes out is typed, and what cannot be read is refused by name.

mod base;
mod body;
mod call;
mod condition;
mod query;

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use callbook_domain::fault::{Fault, Reason};

pub(crate) use self::body::{JsonBody, Object, is_import, json_text, object, too_large, unreadable, unsupported};
pub(crate) use self::call::{CAP_PROOF, Call, REQUEST_ID, TERMINAL_KEY};
pub(crate) use self::condition::{Etag, IfMatch, if_match, is_fresh};
pub(crate) use self::query::{Limit, Query, Switch, decoded, names, nothing, recognize, wants};
use crate::answer::Refusal;
use crate::app::App;

/// The one variable part of a path: a key, an id or a name.
pub(crate) struct At(pub(crate) String);

impl FromRequestParts<Arc<App>> for At {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Refusal> {
        match Path::<String>::from_request_parts(parts, app).await {
            Ok(Path(text)) => Ok(At(text)),
            Err(_) => Err(Fault::new(Reason::InvalidRequest, "the path is not UTF-8").into()),
        }
    }
}
