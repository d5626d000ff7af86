//! The documents say what is. Their `sh` blocks run as they are printed, in order and in one shell a document, and the
//! lines of a `console` block occur in the output of the block before it, `…` standing for anything. What stands in
//! their tables is tried or compared.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use callbook_domain::fault::Reason;
use callbook_runtime::settings::{Overrides, Settings};
use callbook_runtime::status::statuses;
use callbook_tests::process::{Process, binary, free_port};
use callbook_tests::upstream::Upstream;
use callbook_tests::world::OWNER;
use callbook_tests::{database, is_here};

const DOCUMENTS: &[&str] = &[
    "README.md",
    "docs/callers.md",
    "docs/issuers.md",
    "docs/holders.md",
    "docs/approvals.md",
    "docs/mcp.md",
    "docs/row-authors.md",
    "docs/search.md",
    "docs/rows/http.md",
    "docs/rows/fn.md",
    "docs/rows/flow.md",
    "docs/rows/agent.md",
    "docs/operators.md",
];
/// The public weather service of the documents; a server on loopback stands for it.
const WEATHER: &str = "https://api.open-meteo.com";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

pub(crate) fn read(document: &str) -> String {
    std::fs::read_to_string(root().join(document)).unwrap_or_else(|error| panic!("{document}: {error}"))
}

/// A fenced block, with the line that it begins at.
struct Block {
    line: usize,
    language: String,
    text: String,
}

fn blocks(document: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (at, line) in document.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(language) => {
                open = true;
                found.push(Block { line: at + 1, language: language.to_owned(), text: String::new() });
            }
            None if open => {
                let block = found.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!open, "a block is not closed");
    found
}

/// The first block of a language.
pub(crate) fn block_of(document: &str, language: &str) -> String {
    blocks_of(document, language).into_iter().next().unwrap_or_else(|| panic!("no block of {language}"))
}

/// Every block of a language.
pub(crate) fn blocks_of(document: &str, language: &str) -> Vec<String> {
    blocks(document).into_iter().filter(|block| block.language == language).map(|block| block.text).collect()
}

/// The rows of the tables below a heading, without their heads, each as its cells.
pub(crate) fn table(document: &str, heading: &str) -> Vec<Vec<String>> {
    let below = document.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading {heading}")).1;
    let section = below.split("\n#").next().unwrap_or_default();
    let cells = |line: &str| -> Vec<String> {
        let line = line.replace("\\|", "\u{0}");
        let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
        inner.split('|').map(|cell| cell.replace('\u{0}', "|").trim().to_owned()).collect()
    };
    let tables = section.split("\n\n").map(str::trim).filter(|part| part.starts_with('|'));
    tables.flat_map(|table| table.lines().skip(2).map(cells)).collect()
}

/// What stands between the ticks of a cell; nothing where it has none.
pub(crate) fn code(cell: &str) -> &str {
    let inner = cell.find('`').map_or("", |at| &cell[at..]);
    let ticks = inner.len() - inner.trim_start_matches('`').len();
    let rest = &inner[ticks..];
    let code = rest.find(&"`".repeat(ticks.max(1))).map_or("", |end| &rest[..end]);
    if ticks > 1 { code.trim() } else { code }
}

/// Whether a line is what the pattern says; `…` stands for anything.
pub(crate) fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// One document, a deployment for it, and the folder in which its commands run.
pub(crate) struct Reading {
    name: &'static str,
    text: String,
    process: Process,
    ports: [u16; 3],
    database: String,
    folder: tempfile::TempDir,
    _upstream: Upstream,
}

impl Reading {
    /// Starts the deployment of a guide.
    async fn open(name: &'static str) -> Reading {
        Reading::of(name, read(name), "", &[], &[]).await
    }

    /// Starts a deployment for a text, with settings, secrets in the environment, and origins that rows may call.
    pub(crate) async fn of(
        name: &'static str,
        text: String,
        settings: &str,
        secrets: &[(&'static str, &'static str)],
        origins: &[String],
    ) -> Reading {
        let upstream = Upstream::weather().await;
        let (text, settings) =
            (text.replace(WEATHER, &upstream.origin()), settings.replace(WEATHER, &upstream.origin()));
        let (folder, database) = (tempfile::tempdir().unwrap(), database::fresh().await);
        let config = folder.path().join("callbook.toml");
        std::fs::write(&config, settings).unwrap();
        for beside in ["scripts", "docs"] {
            std::os::unix::fs::symlink(root().join(beside), folder.path().join(beside)).unwrap();
        }
        let ports = [free_port(), free_port(), free_port()];
        let (origins, kept) = ([origins, &[upstream.origin()]].concat().join(","), database.clone());
        let secrets = secrets.to_vec();
        let process = tokio::task::spawn_blocking(move || {
            let mut environment = vec![
                ("DATABASE_URL", database.as_str()),
                ("CALLBOOK_CONFIG", config.to_str().unwrap()),
                ("CALLBOOK_ALLOW_ORIGINS", origins.as_str()),
            ];
            environment.extend(secrets);
            Process::start_at(&["up"], &environment, ports[0], ports[1], ports[2])
        });
        Reading { name, text, process: process.await.unwrap(), ports, database: kept, folder, _upstream: upstream }
    }

    /// Runs the `sh` blocks in one shell; gives what each of them wrote, and how the shell ended.
    fn run(&self, blocks: &[Block]) -> (Vec<String>, Output) {
        let out = |block: &Block| self.folder.path().join(format!("out-{}", block.line));
        let mut script = String::new();
        for block in blocks.iter().filter(|block| block.language == "sh") {
            script.push_str(&format!("exec >'{}' 2>&1\n{}", out(block).display(), block.text));
        }
        let file = self.folder.path().join("script");
        std::fs::write(&file, script).unwrap();
        let path = format!("{}:{}", binary().parent().unwrap().display(), std::env::var("PATH").unwrap());
        let local = |port: u16| format!("127.0.0.1:{port}");
        let ended = Command::new("timeout")
            .args(["300", "bash", "-eu"])
            .arg(&file)
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env("CALLBOOK_URL", &self.process.http)
            .env("CALLBOOK_KEY", OWNER)
            .env("CALLBOOK_GRPC", local(self.ports[1]))
            .env("CALLBOOK_ADMIN", local(self.ports[2]))
            .env("DATABASE_URL", &self.database)
            .env("no_proxy", "127.0.0.1")
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        (blocks.iter().map(|block| std::fs::read_to_string(out(block)).unwrap_or_default()).collect(), ended)
    }

    /// The documented addresses, as they are here.
    fn here(&self, text: &str) -> String {
        let ports = ["127.0.0.1:7700", "127.0.0.1:7701", "127.0.0.1:7702"].into_iter().zip(self.ports);
        ports.fold(text.to_owned(), |text, (port, here)| text.replace(port, &format!("127.0.0.1:{here}")))
    }

    pub(crate) fn check(&self) {
        let mut blocks = blocks(&self.text);
        if !is_here(root().join("scripts/buf"), "--version") {
            blocks.retain(|block| !block.text.contains("scripts/buf"));
        }
        if !is_here("node", "--version") {
            blocks.retain(|block| !block.text.contains("node docs/"));
        }
        let (written, ended) = self.run(&blocks);
        if !ended.status.success() {
            let last = blocks.iter().zip(&written).rfind(|(block, text)| block.language == "sh" && !text.is_empty());
            let (line, text) = last.map_or((0, ""), |(block, text)| (block.line, text.as_str()));
            panic!(
                "{} ended with {}; last wrote the block of line {line}: {text}\n{}",
                self.name,
                ended.status,
                self.process.log()
            );
        }
        let pairs =
            blocks.iter().zip(&written).zip(blocks.iter().skip(1)).filter(|(_, next)| next.language == "console");
        for ((block, text), expected) in pairs {
            let mut lines = text.lines().map(str::trim_end);
            for pattern in expected.text.lines().filter(|line| line.trim() != "…") {
                let pattern = self.here(pattern.trim_end());
                let found = lines.any(|line| fits(&pattern, line));
                assert!(found, "{} line {}: no line is `{pattern}` in\n{text}", self.name, block.line);
            }
        }
    }
}

async fn commands_run(name: &'static str) {
    let reading = Reading::open(name).await;
    tokio::task::spawn_blocking(move || reading.check()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_readme_run_as_printed() {
    commands_run("README.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_for_callers_run_as_printed() {
    commands_run("docs/callers.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_for_issuers_run_as_printed() {
    commands_run("docs/issuers.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_for_holders_run_as_printed() {
    commands_run("docs/holders.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_for_approvals_run_as_printed() {
    commands_run("docs/approvals.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_for_hosts_of_models_run_as_printed() {
    commands_run("docs/mcp.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_for_row_authors_run_as_printed() {
    commands_run("docs/row-authors.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_about_questions_run_as_printed() {
    commands_run("docs/search.md").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_for_operators_run_as_printed() {
    commands_run("docs/operators.md").await;
}

#[test]
fn the_reasons_for_callers_are_the_dictionary_with_their_statuses() {
    let documented: Vec<[String; 3]> = table(&read("docs/callers.md"), "## Refusals")
        .iter()
        .map(|row| [code(&row[0]).to_owned(), row[1].clone(), code(&row[2]).to_owned()])
        .collect();
    let screaming = |code: tonic::Code| {
        let name = format!("{code:?}");
        let parts = name
            .char_indices()
            .map(|(at, c)| if at > 0 && c.is_uppercase() { format!("_{c}") } else { c.to_uppercase().to_string() });
        parts.collect::<String>()
    };
    let actual: Vec<[String; 3]> = Reason::ALL
        .iter()
        .map(|reason| {
            let statuses = statuses(*reason);
            [reason.as_str().to_owned(), statuses.http.to_string(), screaming(statuses.grpc)]
        })
        .collect();
    for entry in &actual {
        assert!(documented.contains(entry), "{entry:?} is not in the table");
    }
    assert_eq!(documented.len(), actual.len());
}

#[test]
fn the_settings_for_operators_are_those_that_the_program_takes() {
    let help = Command::new(binary()).args(["serve", "--help"]).env_clear().output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let document = read("docs/operators.md");
    let documented: BTreeSet<(String, String)> = table(&document, "## Settings")
        .iter()
        .filter(|row| !code(&row[0]).is_empty())
        .map(|row| (code(&row[0]).to_owned(), code(&row[1]).to_owned()))
        .collect();
    let flags = help
        .lines()
        .filter_map(|line| line.trim().strip_prefix("--")?.split_once(' ').map(|(flag, _)| format!("--{flag}")));
    let variables = help.split("[env: ").skip(1).filter_map(|rest| rest.split(['=', ']']).next()).map(str::to_owned);
    let actual: BTreeSet<(String, String)> =
        flags.filter(|flag| flag != "--help" && flag != "--version").zip(variables).collect();
    assert_eq!(documented, actual);
    let example = block_of(&document, "toml");
    for row in table(&document, "## Settings") {
        let name = code(&row[2]);
        let table = name.split('.').next().unwrap();
        assert!(
            name.is_empty() || example.contains(&format!("{table} =")) || example.contains(&format!("[{table}")),
            "{name} is not in the example"
        );
    }
}

#[test]
fn the_example_of_the_settings_file_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("etc");
    std::fs::create_dir(&files).unwrap();
    let example = block_of(&read("docs/operators.md"), "toml").replace("/etc/callbook", files.to_str().unwrap());
    for name in ["tls.crt", "tls.key", "ca.crt"] {
        std::fs::write(files.join(name), "").unwrap();
    }
    let config = files.join("callbook.toml");
    std::fs::write(&config, example).unwrap();
    if let Err(error) = Settings::load(Overrides { config: Some(config), ..Overrides::default() }) {
        panic!("{error}");
    }
}

#[test]
fn links_lead_somewhere_and_no_document_names_a_machine() {
    for document in DOCUMENTS.iter().chain(&["ARCHITECTURE.md", "CONTRIBUTING.md", "STYLE.md"]) {
        let text = read(document);
        let base = Path::new(document).parent().unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap();
            let is_outside = target.contains("://") || path.is_empty();
            assert!(is_outside || root().join(base).join(path).exists(), "{document} links to {target}");
        }
        for host in ["npmjs", "crates.io", "pythonhosted", "debian.org"] {
            assert!(!text.contains(host), "{document} names {host}");
        }
        for folder in ["root", "home", "work", "Users"] {
            assert!(!text.contains(&format!("/{folder}/")), "{document} names a path of a machine");
        }
    }
}
