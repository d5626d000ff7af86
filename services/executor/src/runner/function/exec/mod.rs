//! `exec`: one program that the operator listed, started with an argv list and never by a shell.

mod group;
mod streams;

use std::path::{Path, PathBuf};
use std::time::Duration;

use callbook_domain::arguments::Argument;
use callbook_domain::json::{self, JsonKind};
use callbook_domain::outcome::{Failure, Output};

use super::{Given, World, refused, text_of};
use group::{Ended, Group};

/// The most bytes of an argv list; the system takes no more than 128 KiB in one argument.
const MAX_ARGV: usize = 96 * 1024;

/// What the program writes to its standard output. Arguments: the argv list, its first item a program of the setting
/// `exec.programs` by its path or its name; and what it reads on its standard input.
pub(super) async fn exec(world: &World<'_>, arguments: &[Argument]) -> Given {
    let Some(setting) = &world.app.config.exec else {
        return Err(Failure::new("fn:exec:off", "the operator lets no program be started"));
    };
    let argv = argv(text_of(arguments, 0))?;
    let program = listed(&setting.programs, &argv[0])?;
    let input = arguments.get(1).map(|argument| argument.as_text().as_bytes().to_vec()).unwrap_or_default();
    let bounds =
        Bounds { time: setting.timeout.min(world.limit), bytes: setting.max_output_bytes.min(world.max_bytes()) };
    let group = Group::start(setting, program, &argv[1..], &bounds).await.map_err(|error| not_started(&error))?;
    let (ended, written) = group.run(input, &bounds).await;
    outcome(ended, written, &bounds)
}

/// What one run may take.
struct Bounds {
    time: Duration,
    bytes: usize,
}

/// What a program wrote, up to its bounds.
#[derive(Debug, Default)]
struct Written {
    output: Vec<u8>,
    errors: Vec<u8>,
}

/// The argv list: a JSON list of strings, numbers and booleans, none of them with U+0000.
fn argv(text: &str) -> Result<Vec<String>, Failure> {
    let shape = || refused("`exec` takes a JSON list as its first argument: the program and its arguments");
    let items = json::list(text).map_err(|_| shape())?;
    let word = |raw: &str| match json::kind(raw) {
        JsonKind::String => json::unescape(raw).map_err(|_| shape()),
        JsonKind::Number | JsonKind::Boolean => Ok(raw.to_owned()),
        JsonKind::Object | JsonKind::Array | JsonKind::Null => {
            Err(refused("the items of an argv list are strings, numbers and booleans"))
        }
    };
    let argv: Vec<String> = items.iter().map(|item| word(item.get())).collect::<Result<_, _>>()?;
    if argv.is_empty() {
        return Err(shape());
    }
    if argv.iter().any(|word| word.contains('\0')) {
        return Err(refused("an argument of a program has no U+0000"));
    }
    if argv.iter().map(String::len).sum::<usize>() > MAX_ARGV {
        return Err(refused(format!("an argv list has at most {MAX_ARGV} bytes")));
    }
    Ok(argv)
}

/// The listed program of this path, or of this name where it is one's alone.
fn listed<'a>(programs: &'a [PathBuf], word: &str) -> Result<&'a Path, Failure> {
    let mut found =
        programs.iter().filter(|path| path.as_os_str() == word || path.file_name().is_some_and(|n| n == word));
    match (found.next(), found.next()) {
        (Some(program), None) => Ok(program),
        (None, _) | (Some(_), Some(_)) => {
            Err(Failure::new("fn:exec:refused", "no program of this path or name is listed by the operator"))
        }
    }
}

fn not_started(error: &std::io::Error) -> Failure {
    tracing::warn!(%error, "a program cannot be started");
    Failure::new("fn:exec:not_started", "the program cannot be started as it is configured")
}

fn outcome(ended: Ended, written: Written, bounds: &Bounds) -> Given {
    let errors = String::from_utf8_lossy(&written.errors).into_owned();
    match ended {
        Ended::Code(0) => Ok(output(written.output)),
        Ended::Code(code) => Err(Failure {
            output: Some(Output::text(errors)),
            ..Failure::new(format!("fn:exec:{code}"), format!("the program ended with status {code}"))
        }),
        Ended::Signal(signal) => Err(Failure {
            output: Some(Output::text(errors)),
            ..Failure::new(format!("fn:exec:signal:{signal}"), format!("the program was ended by signal {signal}"))
        }),
        Ended::TooLate => Err(Failure::new("timeout", format!("no result within {} ms", bounds.time.as_millis()))),
        Ended::TooLarge => Err(Failure {
            output: Some(Output { truncated: true, ..output(written.output) }),
            ..super::too_large(bounds.bytes)
        }),
        Ended::Lost => Err(Failure::new("internal", "the end of the program was not seen")),
    }
}

/// JSON where it is JSON, else text where it is text.
fn output(bytes: Vec<u8>) -> Output {
    match String::from_utf8(bytes) {
        Ok(text) if json::check(&text).is_ok() => Output::json(text),
        Ok(text) => Output::text(text),
        Err(error) => {
            Output { bytes: error.into_bytes(), media_type: "application/octet-stream".to_owned(), truncated: false }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argv_list_is_a_list_of_words() {
        assert_eq!(argv(r#"["jq","-r",".a",12,1.10,true]"#).unwrap(), ["jq", "-r", ".a", "12", "1.10", "true"]);
        let long = format!("[\"a\",\"{}\"]", "x".repeat(MAX_ARGV));
        for bad in ["", "jq .a", "[]", "{}", "[null]", "[[\"a\"]]", r#"["a\u0000"]"#, &long] {
            assert_eq!(argv(bad).unwrap_err().code, "fn:arguments", "{bad}");
        }
    }

    #[test]
    fn only_listed_programs_are_found_and_none_by_half_a_path() {
        let programs: Vec<PathBuf> = ["/usr/bin/jq", "/bin/cat", "/opt/cat"].map(PathBuf::from).to_vec();
        assert_eq!(listed(&programs, "jq").unwrap(), Path::new("/usr/bin/jq"));
        assert_eq!(listed(&programs, "/opt/cat").unwrap(), Path::new("/opt/cat"));
        for bad in ["cat", "sh", "/bin/jq", "bin/jq", "./jq", "../usr/bin/jq", "/usr/bin/../bin/jq", ""] {
            assert_eq!(listed(&programs, bad).unwrap_err().code, "fn:exec:refused", "{bad}");
        }
    }

    #[test]
    fn an_end_is_an_outcome() {
        let bounds = Bounds { time: Duration::from_secs(1), bytes: 3 };
        let gives = |ended, out: &[u8], err: &[u8]| {
            outcome(ended, Written { output: out.to_vec(), errors: err.to_vec() }, &bounds)
        };
        assert_eq!(gives(Ended::Code(0), b"{\"a\":1.10}\n", b"").unwrap().as_json(), Some("{\"a\":1.10}"));
        assert_eq!(gives(Ended::Code(0), b"a\n", b"").unwrap(), Output::text("a\n"));
        assert_eq!(gives(Ended::Code(0), b"\xff", b"").unwrap().media_type, "application/octet-stream");
        let failed = gives(Ended::Code(3), b"x", b"no").unwrap_err();
        assert_eq!((failed.code.as_str(), failed.output), ("fn:exec:3", Some(Output::text("no"))));
        assert_eq!(gives(Ended::Signal(9), b"", b"").unwrap_err().code, "fn:exec:signal:9");
        assert!(!gives(Ended::TooLate, b"", b"").unwrap_err().retryable, "a program may have changed something");
        let cut = gives(Ended::TooLarge, b"abc", b"").unwrap_err();
        assert!(cut.code == "fn:too_large" && cut.output.is_some_and(|output| output.truncated));
    }
}
