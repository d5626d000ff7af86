//! Finding the programs of Postgres.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

/// The oldest major version whose SQL we may use.
const OLDEST: u32 = 15;

/// One installation of Postgres.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Programs {
    pub(super) initdb: PathBuf,
    pub(super) postgres: PathBuf,
    pub(super) major: u32,
}

impl Programs {
    /// The programs in the folder that the operator named, else the newest in the usual places. A cluster that exists
    /// (`made_by`) needs the major version that made it.
    pub(super) fn find(pg_bin: Option<&Path>, made_by: Option<u32>) -> Result<Self> {
        let found: Vec<Programs> = match pg_bin {
            Some(folder) => vec![named(folder)?],
            None => folders().iter().filter_map(|folder| inside(folder)).collect(),
        };
        let fits = |programs: &&Programs| programs.major >= OLDEST && made_by.is_none_or(|made| made == programs.major);
        if let Some(programs) = found.iter().find(fits) {
            return Ok(programs.clone());
        }
        match (made_by, found.first()) {
            (Some(made), Some(_)) => bail!(
                "the data directory was made by Postgres {made}, which is not on this machine any more; install it, or \
                 move the data with pg_upgrade"
            ),
            (None, Some(old)) => bail!("Postgres {} is too old, {OLDEST} or newer is needed: {}", old.major, install()),
            (_, None) => bail!("no Postgres on this machine: {}", install()),
        }
    }
}

fn named(folder: &Path) -> Result<Programs> {
    match inside(folder) {
        Some(programs) => Ok(programs),
        None => bail!("setting `pg_bin`: {} does not hold the programs initdb and postgres", folder.display()),
    }
}

fn inside(folder: &Path) -> Option<Programs> {
    let (initdb, postgres) = (folder.join("initdb"), folder.join("postgres"));
    if !initdb.is_file() {
        return None;
    }
    let answer = Command::new(&postgres).arg("--version").env_clear().output().ok()?;
    let major = major(&String::from_utf8_lossy(&answer.stdout))?;
    Some(Programs { initdb, postgres, major })
}

/// The 15 of `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` and of `… 18beta1`.
fn major(answer: &str) -> Option<u32> {
    let (_, version) = answer.split_once("(PostgreSQL) ")?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Where to look: what the user's shell would run, then the packages of the systems, newest first.
fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    for (parent, prefix, suffix) in [
        ("/usr/lib/postgresql", "", "bin"),
        ("/usr", "pgsql-", "bin"),
        ("/usr/libexec", "postgresql", ""),
        ("/opt/homebrew/opt", "postgresql@", "bin"),
        ("/usr/local/opt", "postgresql@", "bin"),
        ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
    ] {
        folders.extend(versions(Path::new(parent), prefix).into_iter().map(|folder| folder.join(suffix)));
    }
    folders
}

/// The folders called `<prefix><number>`, highest number first.
fn versions(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| {
        let name = entry.file_name();
        let number: u32 = name.to_str()?.strip_prefix(prefix)?.parse().ok()?;
        Some((number, entry.path()))
    });
    let mut numbered: Vec<_> = numbered.collect();
    numbered.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    numbered.into_iter().map(|(_, path)| path).collect()
}

/// What to type on this system.
fn install() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let command = match cfg!(target_os = "macos") {
        true => "run `brew install postgresql@18`",
        false => install_on(&release),
    };
    format!("{command}, or name a database (`DATABASE_URL`) or the programs' folder (`CALLBOOK_PG_BIN`)")
}

fn install_on(release: &str) -> &'static str {
    let of = |name: &str| release.lines().find_map(|line| Some(line.strip_prefix(name)?.trim_matches('"').to_owned()));
    let names = [of("ID="), of("ID_LIKE=")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    for name in names.split_whitespace() {
        match name {
            "debian" | "ubuntu" => return "run `apt install postgresql`",
            "fedora" | "rhel" | "centos" | "amzn" => return "run `dnf install postgresql-server`",
            "alpine" => return "run `apk add postgresql`",
            "arch" => return "run `pacman -S postgresql`",
            "suse" | "opensuse" => return "run `zypper install postgresql-server`",
            _ => {}
        }
    }
    "install PostgreSQL 15 or newer"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_every_spelling() {
        assert_eq!(major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 19beta2\n"), Some(19));
        assert_eq!(major("bash 5"), None);
    }

    #[test]
    fn every_system_is_told_its_own_command() {
        assert_eq!(install_on("ID=debian\n"), "run `apt install postgresql`");
        assert_eq!(
            install_on("NAME=Rocky\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\""),
            "run `dnf install postgresql-server`"
        );
        assert_eq!(install_on(""), "install PostgreSQL 15 or newer");
    }

    #[test]
    fn the_newest_version_comes_first() {
        let parent = super::super::folder::Temporary::create().unwrap();
        for name in ["9", "15", "16", "current"] {
            std::fs::create_dir(parent.path().join(name)).unwrap();
        }
        let names: Vec<_> =
            versions(parent.path(), "").iter().map(|path| path.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["16", "15", "9"]);
    }

    #[test]
    fn a_folder_without_the_programs_is_one_sentence_that_names_the_setting() {
        let sentence = Programs::find(Some(Path::new("/nowhere")), None).unwrap_err().to_string();
        assert_eq!(sentence, "setting `pg_bin`: /nowhere does not hold the programs initdb and postgres");
    }

    #[test]
    fn a_cluster_of_another_version_is_not_touched() {
        if Programs::find(None, None).is_err() {
            return;
        }
        let sentence = Programs::find(None, Some(9)).unwrap_err().to_string();
        assert!(sentence.starts_with("the data directory was made by Postgres 9,"), "{sentence}");
    }
}
