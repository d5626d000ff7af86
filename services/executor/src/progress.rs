//! Following a call from its acceptance to its answer. What is told comes from the database, so that every executor can
//! tell it, whoever runs the call; whoever stops listening changes nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use callbook_domain::caller::Caller;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::{InvocationId, State, Status};
use callbook_domain::key::Key;
use callbook_store::fault::fault;
use futures::stream::{self, Stream};
use uuid::Uuid;

use crate::App;
use crate::call::{Answer, Deadline};
use crate::credential::Credential;
use crate::store::progress;
use crate::{receipt, stored_answer};

/// How long after something happened the next look comes; it doubles while nothing happens.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between two looks.
const LAST_PAUSE: Duration = Duration::from_millis(250);

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Progress {
    /// The call was accepted under this id.
    Accepted(InvocationId),
    /// A call below it, at any depth, ended.
    Step {
        /// Its id.
        id: InvocationId,
        /// Its row.
        key: String,
        /// What its receipt says.
        status: Status,
    },
    /// It ended: the last thing.
    Ended(Box<Answer>),
}

/// Follows a call from its beginning, for those who may read its receipt.
///
/// # Errors
/// As [`receipt::get`]; in the stream what [`follow`] ends with.
pub async fn follow_as(
    app: &Arc<App>,
    credential: Credential<'_>,
    id: &str,
    deadline: Deadline,
) -> Result<impl Stream<Item = Result<Progress>> + use<>> {
    let (caller, record) = receipt::shown(app, credential, id).await?;
    Ok(follow(app.clone(), caller, InvocationId(record.id), deadline))
}

/// Follows a call that is on record, or will be. The stream ends with the answer, or with `erased` where what the call
/// gave is gone, `deadline_too_short` where it runs on past the listener's time, `shutting_down` where another executor
/// has to be asked.
pub fn follow(
    app: Arc<App>,
    caller: Caller,
    id: InvocationId,
    deadline: Deadline,
) -> impl Stream<Item = Result<Progress>> {
    let ready = VecDeque::from([Progress::Accepted(id)]);
    let follower = Follower { app, caller, id, deadline, told: Vec::new(), ready, is_over: false };
    stream::unfold(follower, Follower::next)
}

struct Follower {
    app: Arc<App>,
    /// Who is told: steps of rows that it does not see are not.
    caller: Caller,
    id: InvocationId,
    deadline: Deadline,
    told: Vec<Uuid>,
    ready: VecDeque<Progress>,
    is_over: bool,
}

impl Follower {
    async fn next(mut self) -> Option<(Result<Progress>, Self)> {
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(happened) = self.ready.pop_front() {
                return Some((Ok(happened), self));
            }
            if self.is_over {
                return None;
            }
            if let Err(ended) = self.look().await {
                self.is_over = true;
                return Some((Err(ended), self));
            }
            if self.ready.is_empty() {
                tokio::time::sleep(pause.min(self.deadline.left())).await;
                pause = (pause * 2).min(LAST_PAUSE);
            }
        }
    }

    /// Takes in what happened since the last look.
    async fn look(&mut self) -> Result<()> {
        let pool = self.app.directory.pool();
        // asked first: a call has ended after every step that it waited for
        let state = progress::state(pool, self.id.0).await.map_err(fault)?;
        for step in progress::ended_below(pool, self.id.0, &self.told).await.map_err(fault)? {
            self.told.push(step.id);
            if !Key::parse(&step.key).is_ok_and(|key| self.caller.sees(&key)) {
                continue;
            }
            let state = State::parse(&step.state).unwrap_or(State::Unknown);
            let status = Status::of(state, step.material == Some(true));
            self.ready.push_back(Progress::Step { id: InvocationId(step.id), key: step.key, status });
        }
        match state.as_deref().map(State::parse) {
            Some(Some(State::Done | State::Unknown)) => {
                let answer = stored_answer::load(&self.app, self.id).await?;
                self.ready.push_back(Progress::Ended(Box::new(Answer { replayed: false, ..answer })));
                self.is_over = true;
                Ok(())
            }
            Some(Some(State::Running) | None) | None => self.may_wait(),
        }
    }

    fn may_wait(&self) -> Result<()> {
        if self.app.tasks.is_closed() {
            return Err(Fault::new(Reason::ShuttingDown, "the executor is stopping").retry_after_ms(1_000));
        }
        if self.deadline.left().is_zero() {
            return Err(Fault::new(Reason::DeadlineTooShort, "the call has not ended within the listener's time")
                .fix("follow it again: the call goes on")
                .with("invocation_id", self.id.to_string())
                .with("fired", "true"));
        }
        Ok(())
    }
}
