//! How many calls each upstream holds at once, so that one that hangs cannot hold them all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use callbook_domain::fault::{Fault, Reason, Result};

/// The calls that each origin holds now.
#[derive(Clone, Debug)]
pub struct Origins {
    held: Arc<Mutex<HashMap<String, usize>>>,
    /// The most calls of one origin; 0 is no limit.
    limit: usize,
}

/// A place at an origin, given back when it is dropped.
#[derive(Debug)]
pub struct Held {
    origin: String,
    held: Arc<Mutex<HashMap<String, usize>>>,
}

impl Origins {
    /// Origins that hold at most `limit` calls each; 0 is no limit.
    pub fn new(limit: usize) -> Self {
        Origins { held: Arc::default(), limit }
    }

    /// A place at an origin.
    ///
    /// # Errors
    /// `overloaded` where the origin holds as many calls as it may, before anything is committed.
    pub fn enter(&self, origin: &str) -> Result<Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(origin.to_owned()).or_default();
        if self.limit > 0 && *count >= self.limit {
            return Err(Fault::new(Reason::Overloaded, format!("{origin} holds as many calls as one upstream may"))
                .with("origin", origin)
                .retry_after_ms(1_000));
        }
        *count += 1;
        drop(held);
        Ok(Held { origin: origin.to_owned(), held: self.held.clone() })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.origin) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_that_is_full_refuses_and_leaves_the_others_alone() {
        let origins = Origins::new(2);
        let places = [origins.enter("https://a").unwrap(), origins.enter("https://a").unwrap()];
        assert_eq!(origins.enter("https://a").unwrap_err().reason(), Reason::Overloaded);
        assert!(origins.enter("https://b").is_ok());
        drop(places);
        assert!(origins.enter("https://a").is_ok());
        assert!(origins.held.lock().unwrap().is_empty(), "what nobody holds is forgotten");
        let open = Origins::new(0);
        let _many: Vec<_> = (0..1_000).map(|_| open.enter("https://a").unwrap()).collect();
    }
}
