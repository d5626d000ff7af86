//! Calls that a call makes: the same admission, the same commit point, a receipt of their own below their parent's.

use std::sync::Arc;
use std::time::Duration;

use callbook_domain::arguments::Sent;
use callbook_domain::fault::Result;
use callbook_domain::invocation::InvocationId;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::App;
use crate::call::{Answer, Call, Deadline, Request};
use crate::invoke::{self, Until};
use crate::runner::Frame;
use crate::tree::{Authority, Place, Tree};

/// A committed call that runs, and what its runner works with.
#[derive(Clone, Copy)]
pub struct Running<'a> {
    /// The executor.
    pub app: &'a Arc<App>,
    /// The call.
    pub call: &'a Call,
    /// Its id: the parent of what it calls.
    pub id: InvocationId,
    /// The tree that it is in.
    pub tree: &'a Arc<Tree>,
    /// When the whole tree must have ended.
    pub deadline: Deadline,
    /// How long the runner may take.
    pub limit: Duration,
    /// The agent whose run it is, where it is one's: what it starts takes from this one's bounds.
    pub frame: Option<&'a Arc<Frame>>,
}

impl Running<'_> {
    /// How many calls stand above it.
    pub fn depth(&self) -> u8 {
        self.call.place.as_ref().map_or(0, |place| place.depth)
    }

    /// The innermost agent that it runs in.
    pub fn agent(&self) -> Option<&Arc<Frame>> {
        self.frame.or(self.call.place.as_ref().and_then(|place| place.agent.as_ref()))
    }

    /// Makes a call below this one and waits for its answer. A call that ran and failed is an answer.
    ///
    /// It belongs to a task of its own, so that a runner that is dropped leaves no committed call without a result.
    ///
    /// # Errors
    /// Whatever refused it: the budget of the tree, admission, the commit point.
    pub fn invoke(&self, key: &str, sent: Sent, authority: Authority) -> BoxFuture<'static, Result<Answer>> {
        let (app, caller, key) = (self.app.clone(), self.call.caller.clone(), key.to_owned());
        let (deadline, place) =
            (self.deadline, self.tree.grow(self.id, self.depth(), authority, self.call.book.clone()));
        let agent = self.agent().cloned();
        async move {
            let place = Some(Place { agent, ..place? });
            let request = Request {
                key,
                sent,
                idempotency_key: None,
                repairs: None,
                replay_of: None,
                deadline,
                wait: Duration::ZERO,
                place,
            };
            invoke::walk_aside(&app, &caller, request, Until::Ended).await
        }
        .boxed()
    }
}
