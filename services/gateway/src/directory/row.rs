//! One row, all columns, in the seed's shape and order.

use std::sync::LazyLock;

use callbook_wire::directory::v1 as wire;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::{PartialSchema, ToSchema};

use crate::answer::{Provenance, Raw, RowType, Word, moment, raw, some};

/// One record of the book, all columns.
#[derive(Serialize, ToSchema)]
pub(crate) struct Row {
    /// Unique name by which the row is invoked.
    #[schema(pattern = "^[A-Za-z_][A-Za-z0-9_.-]{0,127}$")]
    key: String,
    /// What runs the row: `fn`, `http`, `agent` or `flow`.
    #[serde(rename = "type")]
    #[schema(inline)]
    row_type: Option<RowType>,
    /// `METHOD url`, `target_map:{…}`, a function's name or a model id.
    target: String,
    /// Form and name of a secret, never a value. Without the right to edit only the form is shown.
    auth: String,
    /// Docstring and template.
    content: String,
    /// When the row was last written.
    updated_at: Option<String>,
    /// Label for grouping and filters.
    category: Option<String>,
    /// Categories whose rows an agent may call, comma-separated; `*` is all.
    allowed_categories: Option<String>,
    /// Fixed position in the canonical order. Null: after all rows that have one, by key.
    seq: Option<i32>,
    /// False: in no projection and not callable.
    enabled: bool,
    /// False: not in ask, MCP tools or an agent's view; still callable by key.
    planner_visible: bool,
    /// Order between equal scores, lower wins.
    planner_rank: i32,
    /// JSON Schema of the arguments. Null: positional text arguments.
    #[schema(value_type = Value)]
    input_schema: Option<Raw>,
    /// Example arguments, each a string or an object.
    #[schema(value_type = Vec<Value>)]
    examples: Vec<Raw>,
    /// True: risk is high.
    sensitive: bool,
    /// Pool of executors that must run the row. Null: `default`.
    runner: Option<String>,
    /// Keys of the prompt blocks before an agent's template, comma-separated.
    includes: Option<String>,
    /// When the row was first written.
    created_at: Option<String>,
    /// Position in the canonical order, from 1.
    row_num: i64,
    /// Number of the directory write that last changed the row or anything that it reaches.
    revision: i64,
    /// Number of the row's own edits; what ETag and If-Match speak of.
    version: i64,
    /// `sha256:` and hex over all that a call depends on.
    contract_hash: String,
    /// `sha256:` and hex over all that a model reads.
    text_hash: String,
    /// JSON Schema of the output. Null: not described.
    #[schema(value_type = Value)]
    output_schema: Option<Raw>,
    /// Who wrote the row's text.
    #[schema(inline)]
    provenance: Option<Provenance>,
    /// Time limit of one call in milliseconds. Null: 30,000.
    timeout_ms: Option<i64>,
    /// Largest response in bytes after decoding. Null: 4 MiB.
    max_response_bytes: Option<i64>,
}

impl Row {
    /// The wire's row.
    pub(crate) fn read(row: wire::Row) -> Self {
        Row {
            key: row.key,
            row_type: RowType::read(row.r#type),
            target: row.target,
            auth: row.auth,
            content: row.content,
            updated_at: moment(row.updated_at),
            category: some(row.category),
            allowed_categories: some(row.allowed_categories.join(",")),
            seq: row.seq,
            enabled: row.enabled,
            planner_visible: row.planner_visible,
            planner_rank: row.planner_rank,
            input_schema: row.input_schema.as_deref().map(raw),
            examples: row.examples.iter().map(|example| raw(example)).collect(),
            sensitive: row.sensitive,
            runner: some(row.runner),
            includes: some(row.includes.join(",")),
            created_at: moment(row.created_at),
            row_num: row.row_num,
            revision: row.revision,
            version: row.version,
            contract_hash: row.contract_hash,
            text_hash: row.text_hash,
            output_schema: row.output_schema.as_deref().map(raw),
            provenance: Provenance::read(row.provenance),
            timeout_ms: row.timeout_ms,
            max_response_bytes: row.max_response_bytes,
        }
    }
}

/// JSON Schema of a row, the same as in the API document.
pub(crate) fn schema() -> &'static RawValue {
    static SCHEMA: LazyLock<Raw> =
        LazyLock::new(|| serde_json::value::to_raw_value(&Row::schema()).expect("a schema is plain data"));
    &SCHEMA
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_a_row_stands_alone() {
        let schema: serde_json::Value = serde_json::from_str(schema().get()).unwrap();
        assert!(schema["properties"]["row_num"].is_object(), "{schema}");
        assert!(!schema.to_string().contains("$ref"), "{schema}");
    }

    #[test]
    fn a_row_has_the_seeds_columns_first_and_its_schema_as_json() {
        let row = wire::Row {
            key: "NOW".into(),
            r#type: 1,
            input_schema: Some(bytes::Bytes::from_static(b"{\"maximum\":1.10}")),
            examples: vec![bytes::Bytes::from_static(b"\"a|b\"")],
            includes: vec!["A".into(), "B".into()],
            ..wire::Row::default()
        };
        let text = serde_json::to_string(&Row::read(row)).unwrap();
        assert!(
            text.starts_with(r#"{"key":"NOW","type":"fn","target":"","auth":"","content":"","updated_at":null,"#),
            "{text}"
        );
        assert!(text.contains(r#""input_schema":{"maximum":1.10},"examples":["a|b"],"#), "{text}");
        assert!(text.contains(r#""includes":"A,B","#), "{text}");
    }
}
