//! The address that runs a row, for whoever holds a token that may travel in one.

use callbook_domain::compile::Plan;
use callbook_domain::row::{Effect, Risk};
use callbook_store::snapshot::Entry;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands in an address as it is.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// The longest address; the token takes as much again, and a gateway takes twice this.
const LONGEST: usize = 4 * 1024;

/// Path and query on the gateway, with the example's arguments and the literal `share=<TOKEN>`. Nothing where no such
/// token could call the row: one reads rows of low risk alone.
pub(crate) fn run_now(entry: &Entry, example: &str) -> Option<String> {
    let row = &entry.row;
    let is_callable = entry.compiled.as_ref().is_ok_and(|compiled| !matches!(compiled.plan, Plan::Block));
    let is_mild = row.effect == Effect::Read && row.risk == Risk::Low;
    if !row.definition.enabled || !is_callable || !is_mild {
        return None;
    }
    let body = match example {
        "" => String::new(),
        example => format!("&body={}", utf8_percent_encode(example, ESCAPED)),
    };
    let address = format!("/api/dispatch?invoke={}{body}&share=<TOKEN>", entry.key());
    (address.len() <= LONGEST).then_some(address)
}
