//! The built-in functions that an `fn` row may name: what each may change, and how many arguments it takes.
//!
//! The table is what a writer is warned by and what a contract says; the executor's map must have the same names.

use crate::row::Effect;

/// One built-in function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// What `target` says.
    pub name: &'static str,
    /// What a call may change.
    pub effect: Effect,
    /// Fewest arguments.
    pub min: usize,
    /// Most arguments.
    pub max: usize,
}

const fn read(name: &'static str, min: usize, max: usize) -> Function {
    Function { name, effect: Effect::Read, min, max }
}

const fn write(name: &'static str, min: usize, max: usize) -> Function {
    Function { name, effect: Effect::Write, min, max }
}

const fn destructive(name: &'static str, min: usize, max: usize) -> Function {
    Function { name, effect: Effect::Destructive, min, max }
}

/// Every function of this build, by name.
pub const FUNCTIONS: &[Function] = &[
    read("ask", 1, 2),
    read("base64_decode", 1, 1),
    read("base64_encode", 1, 1),
    read("content", 0, 64),
    read("contract", 1, 2),
    read("echo", 0, 64),
    write("exec", 1, 2),
    write("http_fetch", 1, 4),
    read("json_get", 2, 2),
    read("json_merge", 1, 16),
    write("kv_append", 2, 2),
    destructive("kv_delete", 1, 1),
    read("kv_get", 1, 1),
    read("kv_list", 0, 1),
    write("kv_put", 2, 2),
    read("last_reply_of", 1, 1),
    read("lower", 1, 1),
    read("noop", 0, 64),
    read("now", 0, 1),
    read("parse_tags", 1, 1),
    read("random", 0, 2),
    read("receipt", 1, 1),
    read("regex_match", 2, 2),
    destructive("row_delete", 1, 1),
    write("row_patch", 2, 2),
    write("row_put", 1, 1),
    read("sha256", 1, 1),
    read("sql_query", 2, 16),
    read("template", 1, 16),
    read("trim", 1, 1),
    read("upper", 1, 1),
    read("url_encode", 1, 1),
    read("uuid", 0, 1),
];

/// The function of this name.
pub fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.binary_search_by(|function| function.name.cmp(name)).ok().map(|at| &FUNCTIONS[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_so_that_it_can_be_searched() {
        assert!(FUNCTIONS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert_eq!(find("now").map(|f| f.effect), Some(Effect::Read));
        assert!(find("frobnicate").is_none());
    }
}
