//! The digest of a catalogue: equal catalogues have equal stamps, on every replica and at every revision.

use std::sync::Arc;

use callbook_store::snapshot::Entry;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::catalogue::category;

/// `sha256:<hex>` over all that the rows tell, in the order of the rows. Schemas, docstrings, notes and examples are in
/// it by way of the two hashes that each row carries; revisions, versions and times are not.
pub(crate) fn stamp(rows: &[Arc<Entry>]) -> String {
    let mut digest = Sha256::new();
    for entry in rows {
        let (row, definition) = (&entry.row, &entry.row.definition);
        let parts = [
            entry.key().as_str(),
            definition.row_type.as_str(),
            category(entry),
            row.effect.as_str(),
            row.risk.as_str(),
            definition.pool(),
            definition.provenance.as_str(),
            &row.contract_hash,
            &row.text_hash,
        ];
        for part in parts {
            frame(&mut digest, part);
        }
    }
    format!("sha256:{}", HEXLOWER.encode(&digest.finalize()))
}

/// Adds a part with its length, so that no two lists of parts run into one text.
pub(crate) fn frame(digest: &mut Sha256, part: &str) {
    digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
    digest.update(part);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::tests::entry;

    #[test]
    fn a_stamp_is_over_what_rows_tell_and_not_over_when_they_were_written() {
        let one = stamp(&[entry("A", |_| ())]);
        assert!(one.starts_with("sha256:") && one.len() == 71, "{one}");
        let mut later = Arc::try_unwrap(entry("A", |_| ())).unwrap();
        later.row.revision = 9;
        later.row.version = 4;
        assert_eq!(one, stamp(&[Arc::new(later)]));
        let told = [
            entry("B", |_| ()),
            entry("A", |row| row.content.push(' ')),
            entry("A", |row| row.category = Some("c".to_owned())),
            entry("A", |row| row.target = "lower".to_owned()),
            entry("A", |row| row.provenance = callbook_domain::row::Provenance::ThirdParty),
        ];
        for other in told {
            assert_ne!(one, stamp(&[other]));
        }
    }
}
