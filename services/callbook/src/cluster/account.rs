//! Who runs the server. Postgres refuses to run as root, so root hands it to somebody who may less.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    /// The user of this name, unless it is root.
    pub(crate) fn named(name: &str) -> Option<Self> {
        named(&std::fs::read_to_string("/etc/passwd").unwrap_or_default(), name)
    }

    /// Nobody else unless we are root. Root takes whoever owns the cluster already, else `postgres`, else `nobody`.
    pub(super) fn choose(cluster: &Path) -> Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        if let Ok(owner) = std::fs::symlink_metadata(cluster) {
            if owner.uid() == 0 {
                bail!(
                    "{} belongs to root, as whom Postgres does not run; hand it over with `chown -R postgres {0}`",
                    cluster.display()
                );
            }
            let name = name_of(&users, owner.uid()).unwrap_or_else(|| owner.uid().to_string());
            return Ok(Some(Account { name, uid: owner.uid(), gid: owner.gid() }));
        }
        let account = named(&users, "postgres").or_else(|| named(&users, "nobody"));
        let account = account.context("Postgres does not run as root, and there is no user `postgres` or `nobody`")?;
        Ok(Some(account))
    }
}

fn named(users: &str, name: &str) -> Option<Account> {
    let user = users.lines().map(fields).find(|user| user[0] == name)?;
    let (uid, gid) = (user[2].parse().ok()?, user[3].parse().ok()?);
    (uid != 0).then(|| Account { name: name.to_owned(), uid, gid })
}

fn name_of(users: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    users.lines().map(fields).find(|user| user[2] == uid).map(|user| user[0].to_owned())
}

/// name, password, uid, gid
fn fields(line: &str) -> [&str; 4] {
    let mut fields = line.split(':');
    std::array::from_fn(|_| fields.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str =
        "root:x:0:0:root:/root:/bin/bash\n# note\npostgres:x:101:104:,,,:/var/lib/postgresql:/bin/bash\n";

    #[test]
    fn a_user_is_found_by_name_and_by_number_and_root_never() {
        let postgres = Account { name: "postgres".to_owned(), uid: 101, gid: 104 };
        assert_eq!(named(USERS, "postgres"), Some(postgres));
        assert_eq!(named(USERS, "root"), None);
        assert_eq!(named(USERS, "nobody"), None);
        assert_eq!(name_of(USERS, 101).as_deref(), Some("postgres"));
    }
}
