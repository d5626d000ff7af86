//! How much of a row a caller is shown.

use std::borrow::Cow;
use std::sync::Arc;

use callbook_domain::auth::Auth;
use callbook_domain::caller::{Caller, May};
use callbook_domain::docstring::Docstring;
use callbook_domain::row::{Definition, RowType};
use callbook_store::snapshot::{Entry, Snapshot};

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
                content: public_content(definition),
                ..definition.clone()
            }),
        }
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

/// What a model is told in secret, an agent's prompt or a block of one, is for those who may edit it.
fn public_content(definition: &Definition) -> String {
    match definition.row_type {
        RowType::Agent => Docstring::split(&definition.content).0.raw,
        RowType::Fn if definition.is_prompt_block() => Docstring::split(&definition.content).0.raw,
        RowType::Fn | RowType::Http | RowType::Flow => definition.content.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_shows_its_form_and_a_prompt_its_docstring() {
        assert_eq!((form("bearer:KEY"), form("")), ("bearer".to_owned(), String::new()));
        let row = |row_type: &str, target: &str| {
            let content = "# WHAT: x\nSecret prompt";
            let fields = serde_json::json!({"key": "K", "type": row_type, "target": target, "content": content});
            public_content(&Definition::from_json(fields.as_object().unwrap()).unwrap().0)
        };
        assert_eq!(row("agent", "grok-4"), "# WHAT: x");
        assert_eq!(row("fn", "prompt_block"), "# WHAT: x");
        assert_eq!(row("fn", "echo"), "# WHAT: x\nSecret prompt");
    }
}
