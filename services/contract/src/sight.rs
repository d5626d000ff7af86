//! How much of a row a caller is shown.

use std::borrow::Cow;
use std::sync::Arc;

use callbook_domain::auth::Auth;
use callbook_domain::caller::{Caller, May};
use callbook_domain::docstring::Docstring;
use callbook_domain::row::{Definition, RowType};
use callbook_store::snapshot::{Entry, Snapshot};
use serde_json::{Map, Value};

/// How much of a row a caller is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Everything: the caller may edit the row.
    Whole,
    /// Of the credential its form, of an agent not its prompt.
    Public,
}

/// A row as a caller is shown it.
pub(crate) struct Shown {
    /// The row.
    pub(crate) entry: Arc<Entry>,
    /// Its place in the canonical order, from 1.
    pub(crate) row_num: usize,
    /// How much of it is shown.
    pub(crate) sight: Sight,
}

impl Sight {
    /// Nothing where the row does not exist for the caller: another's row, or a disabled one that it may not edit.
    pub(crate) fn of(caller: &Caller, entry: &Entry) -> Option<Sight> {
        let key = entry.key();
        if !caller.sees(key) {
            None
        } else if caller.may(May::Edit, Some(key)) {
            Some(Sight::Whole)
        } else {
            entry.row.definition.enabled.then_some(Sight::Public)
        }
    }
}

impl Shown {
    /// The row of the key, as far as it exists for the caller.
    pub(crate) fn find(snapshot: &Snapshot, caller: &Caller, key: &str) -> Option<Shown> {
        let entry = snapshot.get(key)?;
        let sight = Sight::of(caller, entry)?;
        Some(Shown { row_num: snapshot.row_num(entry), entry: entry.clone(), sight })
    }

    /// Whether the caller is shown everything.
    pub(crate) fn is_whole(&self) -> bool {
        self.sight == Sight::Whole
    }

    /// The columns that the caller is shown.
    pub(crate) fn definition(&self) -> Cow<'_, Definition> {
        let definition = &self.entry.row.definition;
        match self.sight {
            Sight::Whole => Cow::Borrowed(definition),
            Sight::Public => Cow::Owned(Definition {
                auth: form(&definition.auth),
                content: public_content(definition.row_type, &definition.content),
                ..definition.clone()
            }),
        }
    }
}

/// The same for the columns of a version in the history.
pub(crate) fn veil(columns: &mut Map<String, Value>) {
    let is_agent = columns.get("type").and_then(Value::as_str) == Some(RowType::Agent.as_str());
    if let Some(Value::String(auth)) = columns.get_mut("auth") {
        *auth = form(auth);
    }
    if let Some(Value::String(content)) = columns.get_mut("content").filter(|_| is_agent) {
        *content = public_content(RowType::Agent, content);
    }
}

/// The form without the names of its secrets; empty where there is none.
fn form(auth: &str) -> String {
    match Auth::parse(auth) {
        Ok(Auth::None) => String::new(),
        Ok(auth) => auth.form().to_owned(),
        // written under other rules; whatever it is, it is not shown
        Err(_) => "unknown".to_owned(),
    }
}

fn public_content(row_type: RowType, content: &str) -> String {
    match row_type {
        RowType::Agent => Docstring::split(content).0.raw,
        RowType::Fn | RowType::Http | RowType::Flow => content.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_veil_leaves_the_form_of_a_credential_and_no_prompt() {
        let mut columns =
            serde_json::json!({"type": "agent", "auth": "bearer:KEY", "content": "# WHAT: x\nSecret prompt"});
        veil(columns.as_object_mut().unwrap());
        assert_eq!(columns, serde_json::json!({"type": "agent", "auth": "bearer", "content": "# WHAT: x"}));
        let mut columns = serde_json::json!({"type": "fn", "auth": "", "content": "[\"$1\"]"});
        let same = columns.clone();
        veil(columns.as_object_mut().unwrap());
        assert_eq!(columns, same);
    }
}
