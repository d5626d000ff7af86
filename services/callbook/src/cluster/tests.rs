//! A cluster through its front door. Without Postgres on this machine there is nothing to test, and nothing fails.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process, test_kill_process};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::folder::Temporary;
use super::*;

/// A data directory, or nothing to test.
fn home() -> Option<Temporary> {
    if let Err(sentence) = Programs::find(None, None) {
        let _ = std::io::Write::write_all(&mut std::io::stdout(), format!("\nskipped: {sentence}\n").as_bytes());
        return None;
    }
    Some(Temporary::create().unwrap())
}

fn ask(url: &str, sql: &str) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut conn = PgConnection::connect(url).await?;
        Ok(sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut conn).await?)
    })
}

fn run(url: &str, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut conn = PgConnection::connect(url).await.unwrap();
        sqlx::query(AssertSqlSafe(sql.to_owned())).execute(&mut conn).await.unwrap();
    });
}

fn ensure(cluster: &Cluster) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = cluster.url(DATABASE);
    runtime.block_on(async {
        ensure_database(&url).await.unwrap();
        ensure_database(&url).await.unwrap();
    });
    url
}

fn server_of(home: &Path) -> Pid {
    orphan::postmaster(&home.join("postgres")).unwrap()
}

fn within(patience: u64, mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !holds() {
        if start.elapsed() > Duration::from_secs(patience) {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
    true
}

/// Whether a process has ended; one that nobody has asked for its status yet has too.
fn has_ended(pid: Pid) -> bool {
    test_kill_process(pid).is_err()
        || cfg!(target_os = "linux") && std::fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero())).is_err()
}

/// Runs the test `owner` as a process of its own.
fn owner_process(home: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "cluster::tests::owner", "--ignored", "--nocapture"]).env("HOME_OF_TEST", home);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
#[ignore = "is the child process of the other tests"]
fn owner() {
    let home = PathBuf::from(std::env::var_os("HOME_OF_TEST").unwrap());
    let cluster = Cluster::start(&home, None).unwrap();
    run(&ensure(&cluster), "create table if not exists kept (n int)");
    std::fs::write(home.join("up"), "").unwrap();
    assert!(within(60, || home.join("stop").exists()));
}

fn start_owner(home: &Path) -> Child {
    let _ = std::fs::remove_file(home.join("up"));
    let child = owner_process(home).spawn().unwrap();
    assert!(within(30, || home.join("up").exists()));
    child
}

#[test]
fn what_was_written_is_there_after_a_warm_start() {
    let Some(home) = home() else { return };
    let start = Instant::now();
    let cluster = Cluster::start(home.path(), None).unwrap();
    let first = start.elapsed();
    let url = ensure(&cluster);
    run(&url, "create table kept (n int)");
    drop(cluster);
    let start = Instant::now();
    let cluster = Cluster::start(home.path(), None).unwrap();
    eprintln!("first start {first:?}, warm start {:?}", start.elapsed());
    assert_eq!(ask(&cluster.url(DATABASE), "select to_regclass('kept')::text").unwrap(), "kept");
    for (setting, value) in [("fsync", "on"), ("listen_addresses", ""), ("synchronous_commit", "on")] {
        assert_eq!(ask(&url, &format!("select current_setting('{setting}')")).unwrap(), value);
    }
    assert_eq!(
        ask(&url, "select current_user::text || ' ' || current_setting('data_checksums')").unwrap(),
        "callbook_owner on"
    );
    drop(cluster);
    assert!(ask(&url, "select 'x'").is_err());
}

#[test]
fn a_second_owner_gets_one_sentence_that_names_the_first() {
    let Some(home) = home() else { return };
    let first = Cluster::start(home.path(), None).unwrap();
    let sentence = Cluster::start(home.path(), None).err().unwrap().to_string();
    let pid = std::process::id();
    assert!(sentence.starts_with(&format!("another Callbook (process {pid}) uses /tmp/")), "{sentence}");
    assert!(ask(&first.url("postgres"), "select 'x'").is_ok(), "the first one goes on");
}

#[test]
fn kill_9_of_the_owner_ends_the_server_and_the_next_start_works() {
    let Some(home) = home() else { return };
    let killed = || {
        let mut child = start_owner(home.path());
        let server = server_of(home.path());
        child.kill().unwrap();
        child.wait().unwrap();
        server
    };
    let server = killed();
    assert!(cfg!(not(target_os = "linux")) || within(20, || has_ended(server)));
    let server = killed();
    // Not waiting: the next owner comes while the server still stops.
    let cluster = Cluster::start(home.path(), None).unwrap();
    assert!(has_ended(server) && server_of(home.path()) != server);
    assert_eq!(ask(&cluster.url(DATABASE), "select to_regclass('kept')::text").unwrap(), "kept");
}

#[test]
fn kill_9_of_the_server_is_followed_by_a_new_one() {
    let Some(home) = home() else { return };
    let cluster = Cluster::start(home.path(), None).unwrap();
    let url = ensure(&cluster);
    let server = server_of(home.path());
    kill_process(server, Signal::KILL).unwrap();
    let file = home.path().join("postgres");
    let another = || orphan::postmaster(&file).is_some_and(|pid| pid != server);
    assert!(within(20, || another() && ask(&url, "select 'x'").is_ok()));
}

#[test]
fn a_first_start_that_was_killed_leaves_nothing_in_the_way() {
    let Some(home) = home() else { return };
    for patience in [50, 300, 600, 1000] {
        let mut child = owner_process(home.path()).spawn().unwrap();
        sleep(Duration::from_millis(patience));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let cluster = Cluster::start(home.path(), None).unwrap();
    assert!(ask(&cluster.url("postgres"), "select 'x'").is_ok());
    let draft =
        |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().to_string_lossy().contains("new");
    assert!(within(20, || {
        initdb::sweep(&home.path().join("postgres"));
        !std::fs::read_dir(home.path()).unwrap().any(draft)
    }));
}

#[test]
fn a_pid_file_whose_number_belongs_to_somebody_else_now_does_not_stop_a_start() {
    let Some(home) = home() else { return };
    drop(Cluster::start(home.path(), None).unwrap());
    let mut sleeper = Command::new("sleep");
    let owner = std::fs::metadata(home.path().join("postgres")).unwrap();
    let mut sleeper = sleeper.arg("60").uid(owner.uid()).gid(owner.gid()).spawn().unwrap();
    let file = home.path().join("postgres/postmaster.pid");
    std::fs::write(&file, format!("{}\n{}\n1\n5432\n/tmp\n\n 1 1\nready   \n", sleeper.id(), home.path().display()))
        .unwrap();
    let cluster = Cluster::start(home.path(), None);
    assert_eq!(sleeper.try_wait().unwrap(), None, "nobody else is touched");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(ask(&cluster.unwrap().url("postgres"), "select 'x'").is_ok());
}

#[test]
fn a_server_outlives_the_thread_that_asked_for_it_and_runs_as_nobody_important() {
    let Some(home) = home() else { return };
    let path = home.path().to_owned();
    let cluster = std::thread::spawn(move || Cluster::start(&path, None).unwrap()).join().unwrap();
    let server = server_of(home.path());
    sleep(Duration::from_millis(500));
    assert!(test_kill_process(server).is_ok());
    let about = std::fs::metadata(format!("/proc/{}", server.as_raw_nonzero()));
    assert!(about.map_or(true, |about| about.uid() != 0));
    assert_eq!(std::fs::symlink_metadata(cluster.sockets.path()).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn an_ordinary_user_can_do_it_too() {
    let Some(home) = home() else { return };
    if !geteuid().is_root() {
        return;
    }
    let folder = home.path().join("of-nobody");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::chown(&folder, Some(65534), Some(65534)).unwrap();
    std::fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    let mut child = owner_process(&folder).uid(65534).gid(65534).env("XDG_RUNTIME_DIR", "").spawn().unwrap();
    let up = within(30, || folder.join("up").exists());
    std::fs::write(folder.join("stop"), "").unwrap();
    assert!(up && child.wait().unwrap().success());
}

#[test]
fn what_is_thrown_away_is_gone_and_was_quick() {
    if home().is_none() {
        return;
    }
    let cluster = Cluster::throwaway(None).unwrap();
    let folder = cluster._folder.as_ref().unwrap().path().to_owned();
    assert_eq!(ask(&cluster.url("postgres"), "select current_setting('fsync')").unwrap(), "off");
    let sockets = cluster.sockets.path().to_owned();
    drop(cluster);
    assert!(!folder.exists() && !sockets.exists());
}

#[test]
fn a_data_directory_that_postgres_cannot_reach_is_one_sentence() {
    let Some(home) = home() else { return };
    if !geteuid().is_root() {
        return;
    }
    let sentence = Cluster::start(&home.path().join("deep/data"), None).err().unwrap().to_string();
    assert!(sentence.contains("cannot pass through /tmp/") && sentence.contains("--data-dir"), "{sentence}");
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let Some(home) = home() else { return };
    drop(Cluster::start(home.path(), None).unwrap());
    std::fs::remove_file(home.path().join("postgres/global/pg_control")).unwrap();
    let sentence = Cluster::start(home.path(), None).err().unwrap().to_string();
    assert!(
        sentence.starts_with("Postgres did not start (exit status: ") && sentence.contains("pg_control"),
        "{sentence}"
    );
}
