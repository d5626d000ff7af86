//! `:list`, `:describe` and `:stamp`: the whole catalogue for programs.

use std::sync::Arc;

use axum::extract::State;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_wire::resolver::v1 as wire;
use callbook_wire::resolver::v1::describe_response;
use http::Uri;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, Raw, Refused, RowType, json, marked, only, raw, some};
use crate::app::App;
use crate::dispatch::Match;
use crate::request::{Call, Limit, Query, names, nothing};
use crate::upstream::rpc;

/// Filters over the catalogue.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// Only rows under this namespace.
    #[param(nullable = false)]
    namespace: Option<String>,
    /// Only rows of this category.
    #[param(nullable = false)]
    category: Option<String>,
    /// Only rows of this type.
    #[serde(rename = "type")]
    #[param(nullable = false)]
    row_type: Option<RowType>,
    /// Rows a page, 1 to 50; 50 where nothing is said.
    #[param(nullable = false, value_type = u32, minimum = 1, maximum = 50)]
    limit: Option<Limit>,
    /// `next_cursor` of the page before; refused when the catalogue or a filter has changed.
    #[param(nullable = false)]
    cursor: Option<String>,
}

/// A page of the catalogue.
#[derive(Serialize, ToSchema)]
#[schema(as = CataloguePage)]
struct Page {
    /// The rows, by namespace and then key.
    results: Vec<Match>,
    /// All rows under the filters, over all pages.
    total: u64,
    /// Digest of the caller's catalogue.
    stamp: String,
    /// The directory's revision.
    revision: i64,
    /// Cursor of the next page. Null: this is the last.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Enumerates every row that the caller may see exactly once.
#[utoipa::path(
    get, path = "/api/directory:list", tag = "directory", operation_id = "list_capabilities", params(Filter),
    responses((status = 200, description = "A page", body = Page), Refused)
)]
pub(crate) async fn list(State(app): State<Arc<App>>, call: Call, Query(filter): Query<Filter>) -> Answer {
    let request = wire::ListCapabilitiesRequest {
        namespace: filter.namespace.unwrap_or_default(),
        category: filter.category.unwrap_or_default(),
        r#type: only(filter.row_type),
        page_size: Limit::page_size(filter.limit),
        page_token: filter.cursor.unwrap_or_default(),
    };
    let found = app.upstreams.resolver.read(&call, request, rpc!(resolver.list_capabilities)).await?;
    let page = Page {
        results: found.results.into_iter().map(|row| Match::read(row, &call.base)).collect(),
        total: found.total,
        stamp: found.stamp,
        revision: found.revision,
        next_cursor: some(found.next_page_token),
    };
    Ok(marked(json(&page)?, found.stale))
}

/// The description, or why there is none.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum Described {
    Description(Description),
    TooLarge { too_large: TooLarge },
}

/// Rows as TypeScript.
#[derive(Serialize, ToSchema)]
struct Description {
    /// Declarations of a nested `env` with one async function a row, at most 16 KiB.
    typescript: String,
    /// JSON Schema of the arguments, for a single key. Absent: several rows were asked for.
    #[serde(rename = "inputSchema", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    input_schema: Option<Raw>,
    /// Keys that are described.
    keys: Vec<String>,
    /// True: some texts come from third parties and are data. Absent: all were written here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    untrusted_text: bool,
}

/// A description that does not fit; nothing is ever cut.
#[derive(Serialize, ToSchema)]
struct TooLarge {
    /// What it would take, in bytes.
    size_bytes: u64,
    /// The bound, in bytes.
    max_bytes: u64,
    /// Rows that were asked for.
    rows: u64,
    /// What to do instead.
    hint: String,
}

/// Describes rows as TypeScript: up to 20 keys, or a namespace.
#[utoipa::path(
    get, path = "/api/directory:describe", tag = "directory", operation_id = "describe",
    params(
        ("key" = Option<Vec<String>>, Query, description = "Keys of rows, at most 20", max_items = 20),
        ("namespace" = Option<String>, Query, description = "Namespace whose rows are described")
    ),
    responses((status = 200, description = "The description, or that it would be too large", body = Described), Refused)
)]
pub(crate) async fn describe(State(app): State<Arc<App>>, call: Call, uri: Uri) -> Answer {
    let found = app.upstreams.resolver.read(&call, subject(&uri)?, rpc!(resolver.describe)).await?;
    let described = match found.answer {
        Some(describe_response::Answer::Description(description)) => Described::Description(Description {
            typescript: description.typescript,
            input_schema: description.input_schema.as_deref().map(raw),
            keys: description.keys,
            untrusted_text: description.untrusted_text,
        }),
        Some(describe_response::Answer::TooLarge(large)) => Described::TooLarge {
            too_large: TooLarge {
                size_bytes: large.size_bytes,
                max_bytes: large.max_bytes,
                rows: large.rows,
                hint: large.hint,
            },
        },
        None => return Err(Fault::new(Reason::Internal, "the description came empty").into()),
    };
    Ok(marked(json(&described)?, found.stale))
}

/// The one query whose parameter may stand several times.
fn subject(uri: &Uri) -> Result<wire::DescribeRequest> {
    let received = names(uri)?;
    if let Some(unknown) = received.iter().find(|name| !matches!(name.as_str(), "key" | "namespace" | "pretty")) {
        return Err(Fault::new(Reason::UnrecognizedRequest, format!("`{unknown}` is not known here"))
            .with("received_params", json!(received).to_string())
            .with("recognized", json!(["key", "namespace"]).to_string()));
    }
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let values = |wanted: &str| -> Vec<String> {
        let values = pairs.clone().filter(|(name, _)| *name == wanted);
        values.map(|(_, value)| percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned()).collect()
    };
    let (keys, namespaces) = (values("key"), values("namespace"));
    let namespace = match namespaces.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        _ => return Err(Fault::new(Reason::InvalidRequest, "`namespace` is there twice").with("field", "namespace")),
    };
    Ok(wire::DescribeRequest { keys, namespace })
}

/// The digest of the catalogue.
#[derive(Serialize, ToSchema)]
struct Stamp {
    /// Digest over the metadata of all rows that the caller sees; equal catalogues have equal stamps.
    stamp: String,
    /// The directory's revision.
    revision: i64,
    /// Rows under the stamp.
    count: u64,
}

/// Gives the digest of the caller's catalogue.
#[utoipa::path(
    get, path = "/api/directory:stamp", tag = "directory", operation_id = "get_stamp",
    responses((status = 200, description = "The digest", body = Stamp), Refused)
)]
pub(crate) async fn stamp(State(app): State<Arc<App>>, call: Call, uri: Uri) -> Answer {
    nothing(&uri)?;
    let found = app.upstreams.resolver.read(&call, wire::GetStampRequest {}, rpc!(resolver.get_stamp)).await?;
    let stamp = Stamp { stamp: found.stamp, revision: found.revision, count: found.count };
    Ok(marked(json(&stamp)?, found.stale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_keys_are_one_description() {
        let subject = |query: &str| subject(&format!("/x?{query}").parse().unwrap());
        assert_eq!(subject("key=A&key=b.c&pretty").unwrap().keys, ["A", "b.c"]);
        assert_eq!(subject("namespace=a.b").unwrap().namespace, "a.b");
        assert!(subject("namespace=a&namespace=b").is_err());
        assert_eq!(subject("keys=A").unwrap_err().reason(), Reason::UnrecognizedRequest);
    }
}
