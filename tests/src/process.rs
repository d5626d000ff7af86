//! The product as processes: for what only a kill can show.

use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::door::Door;
use crate::world::OWNER;

/// The binary that this build made.
pub fn binary() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    let binary = path.join("callbook");
    assert!(binary.exists(), "{} is missing, build the workspace first", binary.display());
    binary
}

/// A running `callbook`.
pub struct Process {
    child: Child,
    door: Door,
    /// Its services.
    pub grpc: String,
    /// Its metrics and health.
    pub admin: String,
    data: tempfile::TempDir,
}

/// A free port; somebody else could take it before we do, which has not been seen.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Process {
    /// Starts the binary with its own ports and data directory and waits until it is ready.
    pub fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Process {
        let (http, grpc, admin) = (free_port(), free_port(), free_port());
        Process::start_at(arguments, environment, http, grpc, admin)
    }

    /// The same at chosen ports.
    pub fn start_at(arguments: &[&str], environment: &[(&str, &str)], http: u16, grpc: u16, admin: u16) -> Process {
        let data = tempfile::tempdir().unwrap();
        let local = |port: u16| format!("127.0.0.1:{port}");
        let log = std::fs::File::create(data.path().join("log")).unwrap();
        let child = Command::new(binary())
            .args(arguments)
            .env("CALLBOOK_HTTP", local(http))
            .env("CALLBOOK_GRPC", local(grpc))
            .env("CALLBOOK_ADMIN", local(admin))
            .env("CALLBOOK_DATA_DIR", data.path())
            .env("CALLBOOK_OWNER_KEY", OWNER)
            .env("CALLBOOK_INTERNAL_KEY", "internal-key-of-the-tests-012345")
            .env("CALLBOOK_CATALOGUE", "public")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let [door, grpc, at] = [http, grpc, admin].map(|port| format!("http://{}", local(port)));
        let mut process = Process { child, door: Door::at(door), grpc, admin: at, data };
        process.wait_until_ready(&local(admin));
        process
    }

    fn wait_until_ready(&mut self, admin: &str) {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("callbook ended with {status}: {}", self.log());
            }
            if ready(admin) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "callbook is not ready: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What it wrote to stderr.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.data.path().join("log")).unwrap_or_default()).into_owned()
    }

    /// How much memory it holds, in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse().unwrap()
    }

    /// How much of a processor it used so far, all threads together; Linux counts in hundredths of a second.
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let ticks: u64 = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Sends it a signal by its name, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success(), "kill -{name}");
    }

    /// Ends it without a chance to tidy up.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and gives its exit code and how long it took.
    pub fn terminate(mut self) -> (Option<i32>, Duration) {
        let began = Instant::now();
        self.signal("TERM");
        let status = self.child.wait().unwrap();
        (status.code(), began.elapsed())
    }
}

impl Deref for Process {
    type Target = Door;
    fn deref(&self) -> &Door {
        &self.door
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ready(admin: &str) -> bool {
    use std::io::{Read as _, Write as _};
    let Ok(mut stream) = std::net::TcpStream::connect(admin) else { return false };
    let request = format!("GET /readyz HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
    let mut answer = String::new();
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}
