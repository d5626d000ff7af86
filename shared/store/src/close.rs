//! What an edit means for the rows that reach the edited ones: hashes, effect and risk, closed over the whole tree.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use callbook_domain::compile::{self, Compiled, Reach, ReachKind, Rules};
use callbook_domain::docstring::Docstring;
use callbook_domain::hash::{self, Callable, Reached};
use callbook_domain::row::{DEFAULT_POOL, Definition, Effect, Risk, Row};
use sqlx::PgConnection;

use crate::stored::Stored;

/// A row whose facts are computed afresh.
pub(crate) struct Node {
    pub definition: Definition,
    pub compiled: Compiled,
    /// As stored, where it was stored before.
    pub stored: Option<Row>,
    /// Whether this write edits the row itself, or only something that it reaches.
    pub edited: bool,
}

/// What the closure gives a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub contract_hash: String,
    pub text_hash: String,
    pub effect: Effect,
    pub risk: Risk,
}

/// What other rows need to know of a row that is not computed here.
#[derive(Clone)]
struct Leaf {
    facts: Facts,
    pool: String,
    template: String,
}

/// The computed facts by key, and what was noticed on the way.
#[derive(Default)]
pub(crate) struct Closure {
    pub facts: BTreeMap<String, Facts>,
    /// Keys of edited rows that reach themselves.
    pub cycles: Vec<String>,
    /// `(row, step, step's pool)` where a step of an edited flow runs in another pool than its flow.
    pub pool_mismatches: Vec<(String, String, String)>,
    /// Warnings by row: `unknown_step:<KEY>`, `unknown_include:<KEY>`.
    pub warnings: BTreeMap<String, Vec<String>>,
}

/// Every row that reaches one of these keys, at any depth.
pub(crate) async fn dependents(connection: &mut PgConnection, keys: &[String]) -> sqlx::Result<Vec<Row>> {
    let stored = sqlx::query_as!(
        Stored,
        "with recursive up (key) as (
             select key from dependency where reaches = any($1)
             union
             select dependency.key from dependency join up on dependency.reaches = up.key
         )
         select directory.* from directory join up using (key)",
        keys
    )
    .fetch_all(connection)
    .await?;
    stored.into_iter().map(Stored::into_row).collect()
}

/// Adds the dependents of the edited and removed rows to `nodes`, then computes everything.
pub(crate) async fn close(
    connection: &mut PgConnection,
    nodes: &mut BTreeMap<String, Node>,
    removed: &[String],
    rules: &Rules,
) -> sqlx::Result<Closure> {
    let touched: Vec<String> = nodes.keys().cloned().chain(removed.iter().cloned()).collect();
    for row in dependents(connection, &touched).await? {
        let key = row.definition.key.to_string();
        if nodes.contains_key(&key) || removed.contains(&key) {
            continue;
        }
        // A row that no longer compiles is not callable, so its hashes may stand as they are.
        if let Ok(compiled) = compile::compile(&row.definition, rules) {
            let definition = row.definition.clone();
            nodes.insert(key, Node { definition, compiled, stored: Some(row), edited: false });
        }
    }
    let leaves = leaves(connection, nodes, removed).await?;
    Ok(compute(nodes, &leaves))
}

async fn leaves(
    connection: &mut PgConnection,
    nodes: &BTreeMap<String, Node>,
    removed: &[String],
) -> sqlx::Result<HashMap<String, Leaf>> {
    let mut wanted: Vec<String> = nodes
        .values()
        .flat_map(|node| &node.compiled.reaches)
        .map(|reach| reach.key.to_string())
        .filter(|key| !nodes.contains_key(key) && !removed.contains(key))
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let stored =
        sqlx::query_as!(Stored, "select * from directory where key = any($1)", &wanted).fetch_all(connection).await?;
    stored
        .into_iter()
        .map(|stored| {
            let row = stored.into_row()?;
            Ok((row.definition.key.to_string(), leaf_of(&row.definition, facts_of(&row))))
        })
        .collect()
}

fn facts_of(row: &Row) -> Facts {
    Facts {
        contract_hash: row.contract_hash.clone(),
        text_hash: row.text_hash.clone(),
        effect: row.effect,
        risk: row.risk,
    }
}

fn leaf_of(definition: &Definition, facts: Facts) -> Leaf {
    let (_, template) = Docstring::split(&definition.content);
    Leaf { facts, pool: definition.pool().to_owned(), template: template.to_owned() }
}

/// Rows whose reached rows are all known come first; what is left over at the end stands in a cycle.
fn compute(nodes: &BTreeMap<String, Node>, leaves: &HashMap<String, Leaf>) -> Closure {
    let mut known: HashMap<String, Leaf> = leaves.clone();
    let mut waiting: HashMap<&str, usize> = HashMap::new();
    let mut reached_by: HashMap<&str, Vec<&str>> = HashMap::new();
    for (key, node) in nodes {
        let inner: Vec<&str> = node
            .compiled
            .reaches
            .iter()
            .map(|reach| reach.key.as_str())
            .filter(|key| nodes.contains_key(*key))
            .collect();
        waiting.insert(key, inner.len());
        for reached in inner {
            reached_by.entry(reached).or_default().push(key);
        }
    }
    let mut ready: VecDeque<&str> = nodes.keys().map(String::as_str).filter(|key| waiting[key] == 0).collect();
    let mut closure = Closure::default();
    while let Some(key) = ready.pop_front() {
        let node = &nodes[key];
        let facts = facts(node, &known, &mut closure);
        known.insert(key.to_owned(), leaf_of(&node.definition, facts.clone()));
        closure.facts.insert(key.to_owned(), facts);
        for dependent in reached_by.get(key).into_iter().flatten() {
            let left = waiting.get_mut(dependent).expect("every node waits for a number of rows");
            *left -= 1;
            if *left == 0 {
                ready.push_back(dependent);
            }
        }
    }
    closure.cycles = circles(nodes, &closure).into_iter().filter(|key| nodes[key].edited).collect();
    closure
}

/// Of the rows that are left over, those that stand in a circle: not those that only lead into one.
fn circles(nodes: &BTreeMap<String, Node>, closure: &Closure) -> Vec<String> {
    let mut left: BTreeSet<&str> =
        nodes.keys().map(String::as_str).filter(|key| !closure.facts.contains_key(*key)).collect();
    loop {
        let reached: BTreeSet<&str> = left
            .iter()
            .flat_map(|key| &nodes[*key].compiled.reaches)
            .map(|reach| reach.key.as_str())
            .filter(|key| left.contains(key))
            .collect();
        if reached.len() == left.len() {
            return left.into_iter().map(str::to_owned).collect();
        }
        left = reached;
    }
}

fn facts(node: &Node, known: &HashMap<String, Leaf>, closure: &mut Closure) -> Facts {
    let definition = &node.definition;
    let (mut effect, mut risk) = (node.compiled.effect, definition.risk());
    let mut reached = Vec::new();
    for reach in &node.compiled.reaches {
        let leaf = known.get(reach.key.as_str());
        notice(node, reach, leaf, closure);
        if let (ReachKind::Step, Some(leaf)) = (reach.kind, leaf) {
            effect = effect.max(leaf.facts.effect);
            risk = risk.max(leaf.facts.risk);
        }
        reached.push(as_reached(reach, leaf));
    }
    let callable = Callable {
        template: &node.compiled.template,
        argument_names: &node.compiled.signature.names,
        effect: node.compiled.effect,
    };
    Facts {
        contract_hash: hash::contract_hash(definition, callable, &reached),
        text_hash: hash::text_hash(definition, &node.compiled.docstring.raw, &reached),
        effect,
        risk,
    }
}

fn notice(node: &Node, reach: &Reach, leaf: Option<&Leaf>, closure: &mut Closure) {
    let row = node.definition.key.as_str();
    match (reach.kind, leaf) {
        (ReachKind::Step, None) => warn(closure, row, format!("unknown_step:{}", reach.key)),
        (ReachKind::Include, None) => warn(closure, row, format!("unknown_include:{}", reach.key)),
        // a flow that this write does not edit is not this write's to refuse
        (ReachKind::Step, Some(leaf))
            if node.edited && leaf.pool != DEFAULT_POOL && leaf.pool != node.definition.pool() =>
        {
            closure.pool_mismatches.push((row.to_owned(), reach.key.to_string(), leaf.pool.clone()));
        }
        (ReachKind::Step | ReachKind::Include, Some(_)) => {}
    }
}

fn warn(closure: &mut Closure, row: &str, warning: String) {
    let warnings = closure.warnings.entry(row.to_owned()).or_default();
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

fn as_reached(reach: &Reach, leaf: Option<&Leaf>) -> Reached {
    let key = reach.key.to_string();
    match reach.kind {
        ReachKind::Step => Reached::Step {
            key,
            hashes: leaf.map(|leaf| (leaf.facts.contract_hash.clone(), leaf.facts.text_hash.clone())),
        },
        ReachKind::Include => Reached::Include { key, text: leaf.map(|leaf| leaf.template.clone()) },
    }
}
