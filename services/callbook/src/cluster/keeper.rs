//! The thread that holds the server. The kernel ends the server with the thread that forked it, so this thread lives
//! exactly as long as the cluster; a thread of a pool would be retired sooner.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};

use super::server::Server;
use super::{Plan, orphan};

/// How often it looks whether the server still lives, and how long it waits before it tries again.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A server that is kept alive until this is dropped.
#[derive(Debug)]
pub(super) struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the server and gives back when it takes connections.
    pub(super) fn start(plan: Arc<Plan>) -> Result<Self> {
        let (stop, stopped) = channel();
        let (tell, told) = channel();
        let keep = move || match Server::start(&plan) {
            Ok(server) => {
                // Whoever started us is waiting for this.
                let _ = tell.send(Ok(()));
                keep(server, &plan, &stopped);
            }
            Err(error) => drop(tell.send(Err(error))),
        };
        let thread = std::thread::Builder::new().name("postgres".to_owned()).spawn(keep)?;
        told.recv().context("the thread of Postgres ended")??;
        Ok(Keeper { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn keep(server: Server, plan: &Plan, stopped: &Receiver<()>) {
    let mut server = Some(server);
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK_EVERY) {
        if let Some(status) = server.as_mut().and_then(Server::ended) {
            tracing::error!(%status, "Postgres ended by itself; starting it again");
            server = None;
        }
        if server.is_none() {
            match again(plan) {
                Ok(started) => server = Some(started),
                Err(error) => tracing::error!(%error, "Postgres does not start again; trying on"),
            }
        }
    }
}

fn again(plan: &Plan) -> Result<Server> {
    orphan::settle(&plan.cluster)?;
    Server::start(plan)
}
