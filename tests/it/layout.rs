//! The shape of the repository: who may use whom, and how long things get.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a file, lines of a function.
const FILE_WALL: usize = 500;
const FUNCTION_WALL: usize = 70;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(under: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![under.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.extension() {
                None if path.is_dir() && !path.ends_with("target") => open.push(path),
                Some(extension) if extension == "rs" => found.push(path),
                Some(_) | None => {}
            }
        }
    }
    found.sort();
    found
}

fn all_sources() -> Vec<PathBuf> {
    ["shared", "services", "tests"].iter().flat_map(|folder| sources(&root().join(folder))).collect()
}

/// The `[dependencies]` of a crate, without those for tests and build scripts.
fn dependencies(folder: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
    let section = text.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| line.split(['.', ' ', '=']).next()).filter(|n| !n.is_empty()).map(str::to_owned).collect()
}

#[test]
fn crates_use_only_what_their_room_allows() {
    let none_of = |folder: &str, banned: &[&str]| {
        let used = dependencies(folder);
        for name in banned {
            assert!(!used.iter().any(|u| u == name), "{folder} must not use {name}");
        }
    };
    none_of(
        "shared/domain",
        &["prost", "tonic", "sqlx", "tokio", "reqwest", "axum", "callbook-store", "callbook-wire"],
    );
    none_of("shared/wire", &["callbook-domain", "sqlx"]);
    none_of("shared/store", &["callbook-wire", "tonic", "prost", "axum", "callbook-ranking"]);
    none_of("shared/ranking", &["tokio", "sqlx", "tonic", "callbook-store", "callbook-wire", "reqwest"]);
    none_of("shared/caller", &["callbook-wire", "tonic"]);
    none_of("shared/runtime", &["callbook-wire", "callbook-store", "callbook-ranking", "callbook-caller"]);
    none_of("services/gateway", &["sqlx", "callbook-store", "callbook-ranking", "callbook-caller"]);
}

#[test]
fn services_never_import_each_other() {
    let services = ["resolver", "contract", "gate", "executor", "gateway"];
    for service in services {
        let used = dependencies(&format!("services/{service}"));
        for other in services {
            assert!(!used.contains(&format!("callbook-{other}")), "services/{service} must not use services/{other}");
        }
    }
}

#[test]
fn words_of_a_room_stay_in_it() {
    let mut strays = Vec::new();
    for path in all_sources() {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(root()).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        let is_grpc = name.contains("/grpc");
        let test_code = name.starts_with("tests/")
            || name.contains("/tests")
            || name.ends_with("_tests.rs")
            || name.contains("/examples/")
            || name.contains("/benches/")
            || text.contains("#[cfg(test)]");
        let is_verb = name.starts_with("services/")
            && !name.contains("/tests")
            && !is_grpc
            && !name.starts_with("services/gateway")
            && !name.starts_with("services/callbook")
            && !name.ends_with("lib.rs");
        if is_verb && (text.contains("callbook_wire") || text.contains("tonic::")) {
            strays.push(format!("{name}: wire words outside of grpc"));
        }
        if name.starts_with("services/") && is_grpc && text.contains("sqlx::query") {
            strays.push(format!("{name}: SQL in grpc"));
        }
        if !test_code && text.contains(".unwrap()") {
            strays.push(format!("{name}: unwrap"));
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

#[test]
fn files_and_functions_stay_below_their_walls() {
    let mut tall = Vec::new();
    for path in all_sources() {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let lines = text.lines().count();
        if lines > FILE_WALL {
            tall.push(format!("{name}: {lines} lines"));
        }
        for (function, length) in functions(&text) {
            if length > FUNCTION_WALL {
                tall.push(format!("{name}: fn {function} has {length} lines"));
            }
        }
    }
    assert!(tall.is_empty(), "{}", tall.join("\n"));
}

/// Functions by the indent of their first and last lines: rustfmt makes that exact.
fn functions(text: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let mut open: Vec<(String, usize, usize)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if line.trim_end() == format!("{}}}", " ".repeat(indent)) {
            while open.last().is_some_and(|(_, depth, _)| *depth >= indent) {
                let (name, depth, begun) = open.pop().unwrap();
                if depth == indent {
                    found.insert(format!("{name} at line {}", begun + 1), at - begun + 1);
                }
            }
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(position) = words.iter().position(|word| *word == "fn") {
            let qualifiers = ["pub", "pub(crate)", "pub(super)", "async", "const", "unsafe", "extern"];
            if words[..position].iter().all(|word| qualifiers.contains(word)) && !line.trim_end().ends_with(';') {
                let name = words.get(position + 1).and_then(|w| w.split(['(', '<']).next()).unwrap_or_default();
                open.push((name.to_owned(), indent, at));
            }
        }
    }
    found
}

/// Text that no file of the project may hold: paths of machines and registries.
#[test]
fn no_file_names_a_machine() {
    let hosts = ["registry.npmjs", "crates.io/api", "files.pythonhosted", "deb.debian"];
    for path in all_sources() {
        let text = fs::read_to_string(&path).unwrap();
        if path.ends_with("layout.rs") {
            continue;
        }
        for host in hosts.iter().chain(&["/root/", "/home/"]) {
            assert!(!text.contains(host), "{} names {host}", path.display());
        }
    }
}
