//! How long a connection may take to send the head of a request, and how long it may rest between two.
//!
//! hyper has one time for both. A head that dawdles is given up soon; but a client or a load balancer that keeps a
//! connection for its next request would send it just when we close, and could not know whether it was taken. So what
//! rests is kept for longer than such pools keep theirs.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::io::InspectReader;

/// How long the head of a request may take. One that dawdles holds nothing but itself, and not for long.
pub(super) const HEAD: Duration = Duration::from_secs(15);
/// How long a connection may rest. Pools of clients and load balancers give theirs up after 60 to 90 s.
const REST: Duration = Duration::from_secs(120);

/// hyper's clock for the heads of one connection.
#[derive(Clone, Default)]
pub(super) struct HeadTimer {
    /// When the first bytes came since a head is waited for.
    began: Arc<Mutex<Option<Instant>>>,
}

impl HeadTimer {
    /// The connection, watched.
    pub(super) fn watch(&self, stream: TcpStream) -> impl AsyncRead + AsyncWrite + Unpin + use<> {
        let timer = self.clone();
        InspectReader::new(stream, move |bytes| {
            if !bytes.is_empty() {
                timer.began().get_or_insert_with(Instant::now);
            }
        })
    }

    fn began(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.began.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When it is over by what is known now.
    fn end(&self, rests_since: Instant) -> Instant {
        self.began().map_or(rests_since + REST, |began| began + HEAD)
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    /// A head is waited for from now on.
    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        *self.began() = None;
        let look = Box::pin(tokio::time::sleep_until(deadline.into()));
        Box::pin(Waiting { timer: self.clone(), since: Instant::now(), look })
    }
}

/// The wait for one head.
struct Waiting {
    timer: HeadTimer,
    since: Instant,
    /// Until it is looked at again.
    look: Pin<Box<tokio::time::Sleep>>,
}

impl Sleep for Waiting {}

impl Future for Waiting {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.look.as_mut().poll(context));
            let (now, end) = (Instant::now(), self.timer.end(self.since));
            if end <= now {
                return Poll::Ready(());
            }
            // a head may begin at any time, so none is looked for later than it may end
            self.look.as_mut().reset(end.min(now + HEAD).into());
        }
    }
}
