//! Making a cluster, whole or not at all.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use super::child::command;
use super::folder::random_name;
use super::{Durability, OWNER, Plan};

/// How the names of drafts go on after the cluster's own.
const DRAFT: &str = "new-";

/// The major version that made a cluster; `None` where there is none.
pub(super) fn version(cluster: &Path) -> Option<u32> {
    std::fs::read_to_string(cluster.join("PG_VERSION")).ok()?.trim().parse().ok()
}

/// Makes the cluster where it is missing: in a folder beside it, renamed at the end, so that a first start that was
/// killed leaves nothing that looks like a cluster.
pub(super) fn ensure(plan: &Plan) -> Result<()> {
    if version(&plan.cluster).is_some() {
        return Ok(());
    }
    if plan.cluster.exists() {
        bail!("{} exists and is not a Postgres cluster; move it away", plan.cluster.display());
    }
    sweep(&plan.cluster);
    let draft = plan.cluster.with_extension(format!("{DRAFT}{}", random_name()?));
    make_folder(plan, &draft).with_context(|| format!("{} cannot be made", draft.display()))?;
    run(plan, &draft)?;
    std::fs::rename(&draft, &plan.cluster)?;
    if let Some(parent) = plan.cluster.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// Drafts of first starts that were killed. An initdb that was left alone may still be removing its own, which is why
/// each has its own name; what cannot be removed now is removed by a later first start.
pub(super) fn sweep(cluster: &Path) {
    let parent = cluster.parent().and_then(|parent| std::fs::read_dir(parent).ok());
    for entry in parent.into_iter().flatten().flatten() {
        let path = entry.path();
        let is_draft = path.extension().and_then(|end| end.to_str()).is_some_and(|end| end.starts_with(DRAFT));
        if is_draft && path.file_stem() == cluster.file_stem() {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

fn make_folder(plan: &Plan, draft: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(draft)?;
    match &plan.account {
        Some(account) => chown(draft, Some(account.uid), Some(account.gid)),
        None => Ok(()),
    }
}

/// Order by bytes is the same on every machine and in every version of its libraries. `trust` only because the socket
/// is in a folder that nobody else can enter and there is no port.
fn run(plan: &Plan, draft: &Path) -> Result<()> {
    let program = &plan.programs.initdb;
    let mut initdb = command(program, plan.account.as_ref());
    initdb.arg("-D").arg(draft).args(["-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions"]);
    if cfg!(target_os = "linux") {
        initdb.arg("--lc-ctype=C.UTF-8");
    }
    initdb.arg(match plan.durability {
        Durability::Durable => "--data-checksums",
        Durability::ThrowAway => "--no-sync",
    });
    let output = initdb.stdout(Stdio::null()).output();
    let output = output.with_context(|| format!("{} cannot be started", program.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("initdb failed ({}): {}", output.status, said.trim().lines().next().unwrap_or("it said nothing"));
    }
    Ok(())
}
