//! Signatures from and to the wire.

use callbook_domain::fault::{Fault, Reason};
use callbook_runtime::grpc::to_status;
use callbook_store::snapshot::Entry;
use callbook_wire::resolver::v1 as wire;
use tonic::Status;

use super::encode;
use crate::signature::{Kind, Page, Wanted, arguments, output, text};
use crate::summary::docstring;

/// What is asked for.
pub(super) fn wanted(asked: wire::ListSignaturesRequest) -> Result<Wanted, Status> {
    let kind = match wire::SignatureKind::try_from(asked.kind) {
        Ok(wire::SignatureKind::Unspecified) => Kind::Call,
        Ok(wire::SignatureKind::Prompt) => Kind::Prompt,
        Ok(wire::SignatureKind::Resource) => Kind::Resource,
        Err(_) => {
            let fault = Fault::new(Reason::InvalidRequest, "`kind` has no such value").with("field", "kind");
            return Err(to_status(&fault));
        }
    };
    Ok(Wanted {
        kind,
        key: asked.key,
        category: asked.category,
        prefix: asked.prefix,
        page_size: asked.page_size,
        page_token: asked.page_token,
    })
}

/// All of an answer but whether it is stale.
pub(super) fn page(page: Page) -> wire::ListSignaturesResponse {
    wire::ListSignaturesResponse {
        signatures: page.rows.iter().filter_map(|entry| signature(entry)).collect(),
        next_page_token: page.next,
        stale: false,
    }
}

/// Nothing for a row that cannot be called; the listing has none.
fn signature(entry: &Entry) -> Option<wire::Signature> {
    let compiled = entry.compiled.as_ref().ok()?;
    let short = encode::summary(entry);
    Some(wire::Signature {
        key: short.key,
        r#type: short.r#type,
        category: short.category,
        what: short.what,
        when_to_use: short.when_to_use,
        effect: short.effect,
        risk: short.risk,
        idempotent: docstring(entry).idempotent,
        input_schema: arguments(entry, compiled).to_string().into_bytes().into(),
        output_schema: output(entry, compiled).map(|schema| schema.to_string().into_bytes().into()),
        text: text(compiled).map(str::to_owned),
        contract_hash: entry.row.contract_hash.clone(),
        untrusted_text: short.untrusted_text,
    })
}
