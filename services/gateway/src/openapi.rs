//! The routes, and the document that is made from them.

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::StatusCode;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi as Document, SecurityRequirement};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Problem, media};
use crate::app::App;
use crate::{approvals, directory, dispatch, health, mcp, principals, receipt, recommended, tokens, watch_rules};

const LLMS: &str = include_str!("llms.txt");

/// Callbook is a book of everything that can be called: ask, read the contract, invoke, keep the receipt.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Callbook", description = "A book of everything that can be called: ask, read the contract, invoke, keep the receipt.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    servers((url = "/", description = "This gateway")),
    tags(
        (name = "loop", description = "The four calls: ask, contract, invoke, receipt"),
        (name = "directory", description = "Writing and reading the book"),
        (name = "receipts", description = "What happened"),
        (name = "tokens", description = "Capability tokens: what a holder may run, how and for how long"),
        (name = "approvals", description = "Calls that wait for a person, and the rules that hold them"),
        (name = "operator", description = "Standing answers and principals"),
        (name = "health", description = "For orchestrators")
    ),
    components(schemas(Problem)),
    modifiers(&Credentials)
)]
struct Api;

struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut Document) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("The owner key, a principal's API key, or a token"));
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));
        let owner = ApiKeyValue::with_description("x-terminal-key", "The owner key");
        components.add_security_scheme("terminal_key", SecurityScheme::ApiKey(ApiKey::Header(owner)));
        let holder = "`Cap` and a token; where it has a holder, beside the holder's proof for this call in `cap-proof`";
        let holder = ApiKeyValue::with_description("authorization", holder);
        components.add_security_scheme("token", SecurityScheme::ApiKey(ApiKey::Header(holder)));
        let share = ApiKeyValue::with_description("share", "A token that was minted for addresses");
        components.add_security_scheme("share", SecurityScheme::ApiKey(ApiKey::Query(share)));
        // Either, or none: what an anonymous caller may do is the deployment's choice.
        document.security = Some(vec![
            SecurityRequirement::new::<_, _, &str>("bearer", []),
            SecurityRequirement::new::<_, _, &str>("terminal_key", []),
            SecurityRequirement::new::<_, _, &str>("token", []),
            SecurityRequirement::default(),
        ]);
    }
}

/// Every route with its description.
pub(crate) fn document() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(dispatch::read, dispatch::invoke::invoke))
        .routes(routes!(dispatch::batch::batch))
        .routes(routes!(dispatch::progress::events))
        .merge(directory::routes())
        .merge(receipt::routes())
        .routes(routes!(recommended::list, recommended::set, recommended::remove))
        .routes(routes!(principals::list, principals::create))
        .routes(routes!(principals::delete))
        .routes(routes!(principals::revoke))
        .merge(tokens::routes())
        .merge(approvals::routes())
        .merge(watch_rules::routes())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(llms))
        .merge(mcp::routes())
}

/// The routes, and the document beside them.
pub(crate) fn serve(routes: Router<Arc<App>>, document: &Document) -> Router<Arc<App>> {
    let text: Arc<str> = serde_json::to_string(document).expect("the document is plain data").into();
    let serve = move || {
        let text = text.as_bytes().to_vec();
        async move { media(StatusCode::OK, "application/json", text) }
    };
    routes.route("/openapi.json", get(serve))
}

/// The four calls in a few lines of text.
#[utoipa::path(
    get, path = "/llms.txt", tag = "loop",
    responses((status = 200, description = "The text", body = String, content_type = "text/plain"))
)]
pub(crate) async fn llms() -> Response {
    media(StatusCode::OK, "text/plain; charset=utf-8", LLMS)
}
