//! A row as a writer sends it. The contract service reads it; this describes it.

use serde_json::Value;
use utoipa::ToSchema;

use crate::answer::{Provenance, RowType};

/// A new row.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes in the API document what the contract service reads")]
pub(super) struct NewRow {
    /// Unique name by which the row is invoked.
    #[schema(pattern = "^[A-Za-z_][A-Za-z0-9_.-]{0,127}$")]
    key: String,
    #[schema(inline)]
    #[serde(flatten)]
    columns: Columns,
}

/// The columns of a row. What is left out, and null, takes its default.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes in the API document what the contract service reads")]
pub(super) struct Columns {
    /// What runs the row.
    r#type: RowType,
    /// `METHOD url`, `target_map:{…}`, a function's name or a model id.
    target: Option<String>,
    /// Form and name of a secret, never a value.
    auth: Option<String>,
    /// Docstring and template, at most 64 KiB.
    content: Option<String>,
    /// Label for grouping and filters.
    category: Option<String>,
    /// Categories whose rows an agent may call: a list, or text with commas.
    #[schema(value_type = Option<Value>)]
    allowed_categories: Option<Value>,
    /// Fixed position in the canonical order.
    seq: Option<i32>,
    /// Whether the row can be called; `0` and `1` are taken too.
    #[schema(value_type = Option<Value>, default = true)]
    enabled: Option<Value>,
    /// Whether planners see the row; `0` and `1` are taken too.
    #[schema(value_type = Option<Value>, default = true)]
    planner_visible: Option<Value>,
    /// Order between equal scores, lower wins.
    #[schema(default = 100)]
    planner_rank: Option<i32>,
    /// JSON Schema 2020-12 of the arguments, or a string that holds it.
    #[schema(value_type = Option<Value>)]
    input_schema: Option<Value>,
    /// JSON Schema 2020-12 of the output, or a string that holds it.
    #[schema(value_type = Option<Value>)]
    output_schema: Option<Value>,
    /// Example arguments, each a string or an object, or a string that holds the list.
    #[schema(value_type = Option<Value>)]
    examples: Option<Value>,
    /// Whether the risk is high; `0` and `1` are taken too.
    #[schema(value_type = Option<Value>, default = false)]
    sensitive: Option<Value>,
    /// Pool of executors that must run the row.
    runner: Option<String>,
    /// Keys of prompt blocks: a list, or text with commas.
    #[schema(value_type = Option<Value>)]
    includes: Option<Value>,
    /// Who wrote the row's text.
    provenance: Option<Provenance>,
    /// Time limit of one call in milliseconds.
    #[schema(minimum = 1)]
    timeout_ms: Option<i32>,
    /// Largest response in bytes after decoding.
    #[schema(minimum = 1)]
    max_response_bytes: Option<i32>,
}
