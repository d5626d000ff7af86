//! From our words to the wire.

use bytes::Bytes;
use callbook_domain::row::{Provenance, RowType};
use callbook_store::history::Version;
use callbook_store::write::{Imported, RefusedLine, Written};
use callbook_wire::directory::v1 as wire;
use prost_types::Timestamp;
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::sight::Shown;

/// A moment.
pub(super) fn at(time: OffsetDateTime) -> Timestamp {
    Timestamp { seconds: time.unix_timestamp(), nanos: i32::try_from(time.nanosecond()).unwrap_or(0) }
}

/// A row as it is shown.
pub(super) fn row(shown: &Shown) -> wire::Row {
    let stored = &shown.entry.row;
    let definition = shown.definition().into_owned();
    wire::Row {
        key: definition.key.to_string(),
        r#type: row_type(definition.row_type).into(),
        target: definition.target,
        auth: definition.auth,
        content: definition.content,
        category: definition.category.unwrap_or_default(),
        allowed_categories: definition.allowed_categories,
        seq: definition.seq,
        enabled: definition.enabled,
        planner_visible: definition.planner_visible,
        planner_rank: definition.planner_rank,
        input_schema: definition.input_schema.map(Bytes::from),
        examples: definition.examples.iter().map(bytes).collect(),
        sensitive: definition.sensitive,
        runner: definition.runner.unwrap_or_default(),
        includes: definition.includes,
        created_at: Some(at(stored.created_at)),
        updated_at: Some(at(stored.updated_at)),
        row_num: i64::try_from(shown.row_num).unwrap_or(i64::MAX),
        revision: stored.revision,
        version: stored.version,
        contract_hash: stored.contract_hash.clone(),
        text_hash: stored.text_hash.clone(),
        output_schema: definition.output_schema.map(Bytes::from),
        provenance: provenance(definition.provenance).into(),
        timeout_ms: definition.timeout_ms.map(i64::from),
        max_response_bytes: definition.max_response_bytes.map(i64::from),
    }
}

/// What a write of one row gave.
pub(super) fn write(written: Written) -> wire::RowWrite {
    wire::RowWrite {
        key: written.key.to_string(),
        updated_at: Some(at(written.updated_at)),
        revision: written.revision,
        version: written.version,
        warnings: written.warnings,
        ignored_fields: written.ignored_fields,
    }
}

/// One version of a row.
pub(super) fn version(version: &Version) -> wire::RowVersion {
    let side = |columns: &Option<Map<String, Value>>, value: &Value| columns.as_ref().map(|_| bytes(value));
    let changes = version.changes.iter().cloned().map(|(column, before, after)| wire::ColumnChange {
        column,
        before_json: side(&version.before, &before),
        after_json: side(&version.after, &after),
    });
    let whole = |columns: &Option<Map<String, Value>>| columns.clone().map(|columns| bytes(&Value::Object(columns)));
    wire::RowVersion {
        version: version.version,
        revision: version.revision,
        at: Some(at(version.at)),
        actor: version.actor.clone(),
        action: action(version).into(),
        before_json: whole(&version.before),
        after_json: whole(&version.after),
        changes: changes.collect(),
    }
}

/// What an import gave.
pub(super) fn imported(imported: Imported) -> wire::ImportRowsResponse {
    let wrote = imported.created + imported.replaced > 0;
    wire::ImportRowsResponse {
        ok: imported.ok,
        created: count(imported.created),
        replaced: count(imported.replaced),
        unchanged: count(imported.unchanged),
        refused: imported.refused.into_iter().map(refused).collect(),
        warnings: imported.warnings,
        revision: wrote.then_some(imported.revision),
    }
}

/// A number of things.
pub(super) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// JSON text.
pub(super) fn bytes(value: &Value) -> Bytes {
    value.to_string().into()
}

fn refused(line: RefusedLine) -> wire::RefusedRow {
    let (message, fix) = (line.fault.message(), line.fault.how_to_fix());
    let how_to_fix = fix.map_or_else(|| message.to_owned(), |fix| format!("{message}: {fix}"));
    wire::RefusedRow { line: count(line.line), key: line.key, error: line.fault.error_text(), how_to_fix }
}

fn action(version: &Version) -> wire::RowAction {
    match version.action.as_str() {
        "create" => wire::RowAction::Create,
        "replace" => wire::RowAction::Replace,
        "patch" => wire::RowAction::Patch,
        "delete" => wire::RowAction::Delete,
        "restore" => wire::RowAction::Restore,
        "reach" => wire::RowAction::Rehash,
        // an import says what it did by whether there was a row
        _ if version.before.is_none() => wire::RowAction::Create,
        _ => wire::RowAction::Replace,
    }
}

fn row_type(row_type: RowType) -> wire::RowType {
    match row_type {
        RowType::Fn => wire::RowType::Fn,
        RowType::Http => wire::RowType::Http,
        RowType::Agent => wire::RowType::Agent,
        RowType::Flow => wire::RowType::Flow,
    }
}

fn provenance(provenance: Provenance) -> wire::Provenance {
    match provenance {
        Provenance::Owner => wire::Provenance::Owner,
        Provenance::ThirdParty => wire::Provenance::ThirdParty,
        Provenance::Generated => wire::Provenance::Generated,
    }
}
