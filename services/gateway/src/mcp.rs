//! The book as an MCP server. Two surfaces of one executor path: four tools whatever the size of the book, and one typed
//! tool a row. Both eras of the protocol are answered on one address and nothing is kept between requests.
//!
//! The transport is our own and not the SDK's: arguments and outputs must keep their exact text, a service behind the
//! gateway decides whether a credential is taken (so the HTTP status of a refusal is known late), and mirrored headers
//! are checked against the schema of a row.

mod endpoint;
mod era;
mod guard;
mod header;
mod message;
mod reply;
mod stream;

mod discover;
mod four;
mod typed;

mod ask;
mod call;
mod consent;
mod content;
mod page;
mod refusal;
mod schema;
mod state;
mod tool;

mod completion;
mod listen;
mod prompt;
mod receipt;
mod resource;
mod wellknown;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::routing::{any, get};
use callbook_domain::fault::{Fault, Reason};
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;

use self::message::{RpcError, code};
use crate::app::App;

/// The routes of this part. They speak JSON-RPC and are not in the API document.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    let at =
        |surface: Surface| any(move |app: State<Arc<App>>, request: Request| endpoint::handle(surface, app, request));
    OpenApiRouter::new()
        .route(Surface::Four.path(), at(Surface::Four))
        .route(Surface::Typed.path(), at(Surface::Typed))
        .route(Surface::Seed.path(), at(Surface::Seed))
        .route("/.well-known/oauth-protected-resource", get(wellknown::metadata))
        .route("/.well-known/oauth-protected-resource/{*path}", get(wellknown::metadata))
}

/// The fault where no executor is set up.
fn nobody() -> Fault {
    Fault::new(Reason::ServiceUnavailable, "no executor is set up")
}

/// What is shown at one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    /// Four tools.
    Four,
    /// One tool a row, paged.
    Typed,
    /// The same for the seed's clients, which know no pages.
    Seed,
}

impl Surface {
    fn path(self) -> &'static str {
        match self {
            Surface::Four => "/mcp",
            Surface::Typed => "/mcp/tools",
            Surface::Seed => "/api/mcp",
        }
    }

    /// A refusal in this surface's words.
    fn own(self, mut error: RpcError) -> RpcError {
        if self == Surface::Seed && error.status == StatusCode::UNAUTHORIZED {
            error.code = code::SEED_UNAUTHORIZED;
            "unauthorized".clone_into(&mut error.message);
        }
        error
    }
}
