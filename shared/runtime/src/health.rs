//! Whether this process should be given work.

use std::collections::BTreeSet;

use tokio::sync::watch;

/// What a process waits for before it is ready. Clones are the same.
#[derive(Clone, Debug)]
pub struct Readiness(watch::Sender<BTreeSet<&'static str>>);

impl Readiness {
    /// Not ready until each of these parts has been marked.
    pub fn waiting_for(parts: impl IntoIterator<Item = &'static str>) -> Self {
        Readiness(watch::Sender::new(parts.into_iter().collect()))
    }

    /// This part works.
    pub fn ready(&self, part: &'static str) {
        self.0.send_if_modified(|waiting| waiting.remove(part));
    }

    /// This part does not work now; `stopping` is the part of a process that ends.
    pub fn not_ready(&self, part: &'static str) {
        self.0.send_if_modified(|waiting| waiting.insert(part));
    }

    /// The parts that do not work now; none means ready.
    pub fn missing(&self) -> Vec<&'static str> {
        self.0.borrow().iter().copied().collect()
    }

    /// Whether everything works.
    pub fn is_ready(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Waits until everything works.
    pub async fn until_ready(&self) {
        // The sender is `self`, so it cannot be gone.
        let _ = self.0.subscribe().wait_for(BTreeSet::is_empty).await;
    }

    /// Sees every change, as the gRPC health service wants it: the set of parts that do not work.
    pub fn watch(&self) -> watch::Receiver<BTreeSet<&'static str>> {
        self.0.subscribe()
    }
}
