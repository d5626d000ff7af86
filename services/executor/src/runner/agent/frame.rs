//! What an agent and everything below it have taken, and what they may take. An agent inside an agent takes from both.

use std::sync::{Arc, Mutex, PoisonError};

use callbook_domain::agent::AgentBounds;
use callbook_domain::outcome::Failure;

use super::chat::Usage;

/// One agent that runs, and those that it runs in.
#[derive(Debug)]
pub struct Frame {
    bounds: AgentBounds,
    /// 1 for the outermost.
    depth: u8,
    taken: Mutex<Taken>,
    outer: Option<Arc<Frame>>,
}

/// What was taken so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    /// US dollars.
    pub cost_usd: f64,
    /// Tokens.
    pub usage: Usage,
    /// Answers of models.
    pub answers: u32,
}

impl Frame {
    /// An agent inside of another one, or of none.
    ///
    /// # Errors
    /// `agent:depth_limit`, where it stands deeper than one of those around it allows.
    pub fn inside(outer: Option<Arc<Frame>>, bounds: AgentBounds) -> Result<Arc<Frame>, Failure> {
        let depth = outer.as_ref().map_or(0, |outer| outer.depth).saturating_add(1);
        let refusing = around(outer.as_deref()).find(|frame| depth - frame.depth >= frame.bounds.depth);
        if let Some(frame) = refusing {
            let most = frame.bounds.depth;
            return Err(Failure::new("agent:depth_limit", format!("agents may stand {most} deep and no deeper")));
        }
        Ok(Arc::new(Frame { bounds, depth, taken: Mutex::default(), outer }))
    }

    /// Adds one answer of a model.
    pub fn take(&self, usage: Usage, cost_usd: f64) {
        for frame in around(Some(self)) {
            let mut taken = frame.taken.lock().unwrap_or_else(PoisonError::into_inner);
            taken.usage += usage;
            taken.cost_usd += cost_usd;
            taken.answers += 1;
        }
    }

    /// What it has taken with everything below it.
    pub fn taken(&self) -> Taken {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tokens that are left, here and around; at least 1.
    ///
    /// # Errors
    /// `agent:cost_limit`, `agent:token_limit`.
    pub fn left(&self) -> Result<u64, Failure> {
        let mut left = u64::MAX;
        for frame in around(Some(self)) {
            let (taken, bounds) = (frame.taken(), frame.bounds);
            if taken.cost_usd >= bounds.cost_usd {
                let most = bounds.cost_usd;
                return Err(Failure::new("agent:cost_limit", format!("its models may cost {most} USD and no more")));
            }
            left = left.min(bounds.tokens.saturating_sub(taken.usage.total()));
            if left == 0 {
                let most = bounds.tokens;
                return Err(Failure::new(
                    "agent:token_limit",
                    format!("its models may take {most} tokens and no more"),
                ));
            }
        }
        Ok(left)
    }
}

/// A frame and those around it.
fn around(frame: Option<&Frame>) -> impl Iterator<Item = &Frame> {
    std::iter::successors(frame, |frame| frame.outer.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(depth: u8, cost_usd: f64, tokens: u64) -> AgentBounds {
        AgentBounds { rounds: 20, depth, cost_usd, tokens }
    }

    #[test]
    fn agents_stand_as_deep_as_all_around_them_allow() {
        let one = Frame::inside(None, bounds(2, 1.0, 10)).unwrap();
        let two = Frame::inside(Some(one), bounds(8, 1.0, 10)).unwrap();
        assert_eq!(Frame::inside(Some(two), bounds(8, 1.0, 10)).unwrap_err().code, "agent:depth_limit");
        let alone = Frame::inside(None, bounds(1, 1.0, 10)).unwrap();
        assert!(Frame::inside(Some(alone), bounds(8, 1.0, 10)).is_err());
    }

    #[test]
    fn what_is_taken_inside_is_taken_from_all_around() {
        let outer = Frame::inside(None, bounds(3, 0.5, 100)).unwrap();
        let inner = Frame::inside(Some(outer.clone()), bounds(3, 1.0, 1_000)).unwrap();
        assert_eq!(inner.left().unwrap(), 100);
        inner.take(Usage { input: 60, output: 10 }, 0.2);
        assert_eq!((inner.left().unwrap(), outer.left().unwrap()), (30, 30));
        assert_eq!(outer.taken(), Taken { cost_usd: 0.2, usage: Usage { input: 60, output: 10 }, answers: 1 });
        inner.take(Usage { input: 30, output: 0 }, 0.2);
        assert_eq!(inner.left().unwrap_err().code, "agent:token_limit");
        inner.take(Usage::default(), 0.2);
        assert_eq!(inner.left().unwrap_err().code, "agent:cost_limit");
    }
}
