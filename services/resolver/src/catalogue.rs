//! The rows that one caller sees, in the orders in which they are listed, with their counts and digests.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::key::Key;
use callbook_store::snapshot::{Entry, Snapshot};

use crate::stamp;

/// One caller's view of one snapshot.
#[derive(Debug)]
pub(crate) struct Catalogue {
    /// The snapshot's revision.
    pub(crate) revision: i64,
    /// The rows that planners see, by first key segment and then key.
    pub(crate) listed: Vec<Arc<Entry>>,
    /// The rows of the registry, by category and then key.
    pub(crate) registered: Vec<Arc<Entry>>,
    /// Digest of all that `listed` tells.
    pub(crate) stamp: String,
    /// Digest of all that `registered` tells.
    pub(crate) registry_stamp: String,
    /// How many rows there are by each predicate.
    pub(crate) counts: Counts,
    /// Every category with its number of enabled rows, by name; rows without one are under the empty name.
    pub(crate) shelves: Vec<(String, u64)>,
}

/// Rows by predicate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// All.
    pub(crate) rows: u64,
    /// Those that can be called.
    pub(crate) enabled: u64,
    /// Those that the registry shows.
    pub(crate) registry: u64,
    /// Those that planners see.
    pub(crate) planner: u64,
}

impl Catalogue {
    /// What the caller sees of a snapshot.
    pub(crate) fn of(snapshot: &Snapshot, caller: &Caller) -> Catalogue {
        let mut counts = Counts::default();
        let mut shelves: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut listed, mut registered) = (Vec::new(), Vec::new());
        for entry in snapshot.rows().iter().filter(|entry| caller.sees(entry.key())) {
            counts.rows += 1;
            if !entry.row.definition.enabled {
                continue;
            }
            counts.enabled += 1;
            *shelves.entry(category(entry)).or_default() += 1;
            if entry.is_registered() {
                counts.registry += 1;
                registered.push(entry.clone());
            }
            if entry.is_planner_visible() {
                counts.planner += 1;
                listed.push(entry.clone());
            }
        }
        listed.sort_unstable_by(|a, b| by_namespace(a.key(), b.key()));
        registered.sort_unstable_by(|a, b| (category(a), a.key()).cmp(&(category(b), b.key())));
        Catalogue {
            revision: snapshot.revision,
            stamp: stamp::stamp(&listed),
            registry_stamp: stamp::stamp(&registered),
            listed,
            registered,
            counts,
            shelves: shelves.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }
}

/// The row's category; empty where it has none.
pub(crate) fn category(entry: &Entry) -> &str {
    entry.row.definition.category.as_deref().unwrap_or_default()
}

/// The order of the listing: the first dotted segment, then the key. It is not the order of keys alone: `a-b.c` stands
/// before `a.c` by its bytes and after it by its namespace.
fn by_namespace(a: &Key, b: &Key) -> Ordering {
    let first = |key: &Key| key.as_str().split('.').next().map(str::len).unwrap_or_default();
    a.as_str()[..first(a)].cmp(&b.as_str()[..first(b)]).then_with(|| a.cmp(b))
}

#[cfg(test)]
pub(crate) mod tests {
    use callbook_domain::compile::{self, Rules};
    use callbook_domain::row::{Definition, Effect, Risk, Row, RowType};
    use callbook_store::snapshot::Change;
    use time::OffsetDateTime;

    use super::*;
    use crate::sight::narrowed;

    /// A row of a pure function, changed by `edit`.
    pub(crate) fn entry(key: &str, edit: impl FnOnce(&mut Definition)) -> Arc<Entry> {
        let mut definition = Definition::new(Key::parse(key).unwrap(), RowType::Fn);
        definition.target = "upper".to_owned();
        definition.content = "# WHAT: Make text large\n# ARGS: text\n[\"$1\"]".to_owned();
        edit(&mut definition);
        let row = Row {
            revision: 1,
            version: 1,
            contract_hash: format!("sha256:{}", definition.target),
            text_hash: format!("sha256:{}", definition.content),
            effect: Effect::Read,
            risk: Risk::Low,
            created_at: OffsetDateTime::UNIX_EPOCH,
            updated_at: OffsetDateTime::UNIX_EPOCH,
            definition,
        };
        let compiled = compile::compile(&row.definition, &Rules::default());
        Arc::new(Entry { row, compiled })
    }

    pub(crate) fn book(rows: Vec<Arc<Entry>>) -> Snapshot {
        let change = Change { changed: rows, removed: Vec::new(), recommended: None };
        Snapshot::default().with(&change, 7)
    }

    fn keys(rows: &[Arc<Entry>]) -> Vec<&str> {
        rows.iter().map(|entry| entry.key().as_str()).collect()
    }

    fn plain(keys: &[&str]) -> Vec<Arc<Entry>> {
        keys.iter().map(|key| entry(key, |_| ())).collect()
    }

    #[test]
    fn a_listing_is_by_first_segment_and_then_key_whatever_came_first() {
        let names = ["b", "a.c", "a-b.c", "Z.z", "a.b.c", "a_b.a", "a.B", "a0.a", "_x"];
        let one = Catalogue::of(&book(plain(&names)), &Caller::Owner);
        assert_eq!(keys(&one.listed), ["Z.z", "_x", "a.B", "a.b.c", "a.c", "a-b.c", "a0.a", "a_b.a", "b"]);
        let turned: Vec<&str> = names.iter().rev().copied().collect();
        let other = Catalogue::of(&book(plain(&turned)), &Caller::Anonymous);
        assert_eq!(keys(&one.listed), keys(&other.listed));
        assert_eq!(one.stamp, other.stamp);
    }

    #[test]
    fn each_count_is_by_its_own_predicate() {
        let rows = vec![
            entry("A", |_| ()),
            entry("B", |row| row.enabled = false),
            entry("C", |row| row.planner_visible = false),
            entry("TEST_ROW", |row| row.category = Some("z".to_owned())),
            entry("D", |row| row.target = "prompt_block".to_owned()),
        ];
        let catalogue = Catalogue::of(&book(rows), &Caller::Owner);
        assert_eq!(catalogue.counts, Counts { rows: 5, enabled: 4, registry: 3, planner: 2 });
        assert_eq!(keys(&catalogue.listed), ["A", "TEST_ROW"]);
        assert_eq!(keys(&catalogue.registered), ["A", "C", "D"]);
        assert_eq!(catalogue.shelves, [(String::new(), 3), ("z".to_owned(), 1)]);
    }

    #[test]
    fn the_registry_is_by_category_and_then_key() {
        let shelf = |key, name: &str| entry(key, |row| row.category = Some(name.to_owned()));
        let rows = vec![shelf("A", "z"), shelf("C", "m"), shelf("B", "m"), entry("D", |_| ())];
        let catalogue = Catalogue::of(&book(rows), &Caller::Owner);
        assert_eq!(keys(&catalogue.registered), ["D", "B", "C", "A"]);
    }

    #[test]
    fn a_narrowed_caller_has_a_catalogue_of_its_own() {
        let all = book(plain(&["A_ONE", "A_TWO", "B_ONE"]));
        let mine = Catalogue::of(&all, &narrowed("A_"));
        assert_eq!(keys(&mine.listed), ["A_ONE", "A_TWO"]);
        assert_eq!(mine.counts.rows, 2);
        assert_eq!(mine.stamp, Catalogue::of(&book(plain(&["A_TWO", "A_ONE"])), &Caller::Owner).stamp);
        assert_ne!(mine.stamp, Catalogue::of(&all, &Caller::Owner).stamp);
    }
}
