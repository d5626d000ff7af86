//! Work that is done in groups: a group is what has come in while the last ones were being committed.
//!
//! Nobody waits for a group to fill. A group that fails is halved and tried again, so that one bad member cannot fail
//! its neighbours.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};

/// At most this many in one transaction.
const GROUP: usize = 256;
/// At most this many transactions of one kind at a time.
const LANES: usize = 2;
/// At most about this many bytes in one transaction: a message to Postgres has a bound of its own.
const GROUP_BYTES: usize = 16 * 1024 * 1024;
/// How long a transaction may take before the database counts as one that does not answer. Longer than a lock is waited
/// for.
const WORK: Duration = Duration::from_secs(15);
/// How many may wait. Past it the executor is overloaded.
const QUEUE: usize = 4_096;

/// One kind of work that is done in groups.
pub trait Work: Clone + Send + Sync + 'static {
    /// What comes in.
    type Member: Clone + Send + Sync + 'static;
    /// What a member is told.
    type Answer: Send + 'static;
    /// What a lane has for itself, a connection for example.
    type Lane: Send;
    /// The kind in metrics.
    const KIND: &'static str;

    /// A member's bytes.
    fn weigh(member: &Self::Member) -> usize;

    /// A new lane.
    fn lane(&self) -> Self::Lane;

    /// Does the work for a group and gives one answer for each member, in order.
    fn settle(
        &self,
        lane: &mut Self::Lane,
        group: &[Self::Member],
    ) -> impl Future<Output = sqlx::Result<Vec<Self::Answer>>> + Send;
}

type Reply<W> = oneshot::Sender<sqlx::Result<<W as Work>::Answer>>;
type Member<W> = (<W as Work>::Member, Reply<W>);
type Waiting<W> = Arc<Mutex<mpsc::Receiver<Member<W>>>>;

/// The entrance to one kind of grouped work.
pub struct Grouped<W: Work> {
    queue: mpsc::Sender<Member<W>>,
}

/// Why nothing came back.
#[derive(Debug)]
pub enum Refused {
    /// Too many wait already.
    Full,
    /// The work failed.
    Sql(sqlx::Error),
    /// The process is stopping; nothing was done.
    Stopped,
    /// The work ended without an answer, so it may have been done.
    Lost,
}

impl<W: Work> Grouped<W> {
    /// Starts the lanes.
    pub fn start(work: &W) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..LANES {
            tokio::spawn(lane(waiting.clone(), work.clone()));
        }
        Grouped { queue }
    }

    /// Hands one member in and waits for nothing.
    pub fn offer(&self, member: W::Member) -> Result<(), Refused> {
        let (reply, _) = oneshot::channel();
        self.enter(member, reply)
    }

    /// Hands one member in and waits for its answer.
    pub async fn submit(&self, member: W::Member) -> Result<W::Answer, Refused> {
        let (reply, answer) = oneshot::channel();
        self.enter(member, reply)?;
        match answer.await {
            Ok(answer) => answer.map_err(Refused::Sql),
            Err(_) => Err(Refused::Lost),
        }
    }

    fn enter(&self, member: W::Member, reply: Reply<W>) -> Result<(), Refused> {
        self.queue.try_send((member, reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Refused::Full,
            mpsc::error::TrySendError::Closed(_) => Refused::Stopped,
        })
    }
}

async fn lane<W: Work>(waiting: Waiting<W>, work: W) {
    let mut own = work.lane();
    loop {
        let mut came = Vec::new();
        if waiting.lock().await.recv_many(&mut came, GROUP).await == 0 {
            return;
        }
        for group in portions(came, W::weigh) {
            metrics::histogram!("commit_group_calls", "kind" => W::KIND).record(group.len() as f64);
            let began = std::time::Instant::now();
            settle(group, &work, &mut own).await;
            metrics::histogram!("commit_seconds", "kind" => W::KIND).record(began.elapsed().as_secs_f64());
        }
    }
}

/// What came in, in portions that are not too heavy. A member that is too heavy by itself goes alone.
fn portions<T, R>(came: Vec<(T, R)>, weigh: fn(&T) -> usize) -> Vec<Vec<(T, R)>> {
    let (mut portions, mut weight) = (vec![Vec::new()], 0);
    for member in came {
        let own = weigh(&member.0);
        if weight + own > GROUP_BYTES && weight > 0 {
            portions.push(Vec::new());
            weight = 0;
        }
        weight += own;
        portions.last_mut().expect("there is a first portion").push(member);
    }
    portions
}

async fn settle<W: Work>(group: Vec<Member<W>>, work: &W, own: &mut W::Lane) {
    let mut open = vec![group];
    while let Some(mut group) = open.pop() {
        let members: Vec<W::Member> = group.iter().map(|(member, _)| member.clone()).collect();
        let worked = tokio::time::timeout(WORK, work.settle(own, &members)).await;
        match worked.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
            Ok(answers) => {
                debug_assert_eq!(answers.len(), group.len());
                for ((_, reply), answer) in group.into_iter().zip(answers) {
                    let _ = reply.send(Ok(answer)); // nobody waits any more
                }
            }
            Err(error) if group.len() == 1 || callbook_store::fault::is_outage(&error) => fail::<W>(group, error),
            Err(_) => {
                let tail = group.split_off(group.len() / 2);
                open.push(tail);
                open.push(group);
            }
        }
    }
}

/// `sqlx::Error` cannot be copied: the first member gets it, the others one of the same kind.
fn fail<W: Work>(group: Vec<Member<W>>, error: sqlx::Error) {
    let mut error = Some(error);
    for (_, reply) in group {
        let _ = reply.send(Err(error.take().unwrap_or(sqlx::Error::PoolTimedOut)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heavy_member_goes_alone_and_nobody_is_left_behind() {
        let weights = [1, GROUP_BYTES, GROUP_BYTES / 2, GROUP_BYTES / 2, 5 * GROUP_BYTES, 1];
        let portions = portions(weights.iter().map(|weight| (*weight, ())).collect(), |weight| *weight);
        let sizes: Vec<usize> = portions.iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, 1, 2, 1, 1]);
    }

    /// Doubles what it is given and fails a group with a 13 in it.
    #[derive(Clone)]
    struct Double;

    impl Work for Double {
        type Member = u32;
        type Answer = u32;
        type Lane = ();
        const KIND: &'static str = "test";

        fn weigh(_: &u32) -> usize {
            1
        }

        fn lane(&self) {}

        async fn settle(&self, (): &mut (), group: &[u32]) -> sqlx::Result<Vec<u32>> {
            tokio::task::yield_now().await;
            match group.contains(&13) {
                true => Err(sqlx::Error::RowNotFound),
                false => Ok(group.iter().map(|n| n * 2).collect()),
            }
        }
    }

    #[tokio::test]
    async fn one_bad_member_does_not_fail_its_neighbours() {
        let doubled = Arc::new(Grouped::start(&Double));
        let calls: Vec<_> = (0..100u32)
            .map(|n| {
                let doubled = doubled.clone();
                tokio::spawn(async move { (n, doubled.submit(n).await.ok()) })
            })
            .collect();
        for call in calls {
            let (n, answer) = call.await.unwrap();
            assert_eq!(answer, (n != 13).then_some(n * 2));
        }
    }
}
