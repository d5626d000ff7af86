//! Containers whose clone is cheap and shares everything: a write to a clone copies one page or shard of about a
//! hundred elements, and nothing at all while nobody else holds it.

use std::hash::BuildHasher as _;
use std::sync::{Arc, LazyLock};

use hashbrown::DefaultHashBuilder;

const PAGE: usize = 128;
const SHARDS: usize = 256;

static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// A growing array.
#[derive(Clone)]
pub(crate) struct Pages<T> {
    pages: Vec<Arc<Vec<T>>>,
    length: usize,
}

impl<T: Clone> Pages<T> {
    pub(crate) fn new() -> Self {
        Pages { pages: Vec::new(), length: 0 }
    }

    /// Adds an element and gives its number.
    pub(crate) fn push(&mut self, value: T) -> u32 {
        let number =
            u32::try_from(self.length).expect("an index is held in memory and so has fewer than 2^32 elements");
        if self.length.is_multiple_of(PAGE) {
            self.pages.push(Arc::new(Vec::with_capacity(PAGE)));
        }
        Arc::make_mut(&mut self.pages[self.length / PAGE]).push(value);
        self.length += 1;
        number
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The elements in order, page by page.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &[T]> {
        self.pages.iter().map(|page| page.as_slice())
    }

    pub(crate) fn at(&self, number: u32) -> &T {
        &self.pages[number as usize / PAGE][number as usize % PAGE]
    }

    pub(crate) fn at_mut(&mut self, number: u32) -> &mut T {
        &mut Arc::make_mut(&mut self.pages[number as usize / PAGE])[number as usize % PAGE]
    }
}

/// Text to numbers, several to one text. It holds hashes only: who asks compares the text behind each number.
#[derive(Clone)]
pub(crate) struct Lookup {
    shards: Vec<Arc<Vec<(u32, u32)>>>,
}

impl Lookup {
    pub(crate) fn new() -> Self {
        Lookup { shards: vec![Arc::default(); SHARDS] }
    }

    pub(crate) fn insert(&mut self, text: &[u8], number: u32) {
        let (shard, tag) = place(text);
        let shard = Arc::make_mut(&mut self.shards[shard]);
        if let Err(at) = shard.binary_search(&(tag, number)) {
            shard.insert(at, (tag, number));
        }
    }

    pub(crate) fn remove(&mut self, text: &[u8], number: u32) {
        let (shard, tag) = place(text);
        let shard = Arc::make_mut(&mut self.shards[shard]);
        if let Ok(at) = shard.binary_search(&(tag, number)) {
            shard.remove(at);
        }
    }

    /// Gives back memory that nothing is in. For a lookup that nobody else holds yet.
    pub(crate) fn shrink(&mut self) {
        self.shards.iter_mut().filter_map(Arc::get_mut).for_each(Vec::shrink_to_fit);
    }

    /// Every number under the text, and now and then one of another text.
    pub(crate) fn find(&self, text: &[u8]) -> impl Iterator<Item = u32> + '_ {
        let (shard, tag) = place(text);
        let shard = &self.shards[shard];
        shard[first(shard, tag)..].iter().take_while(move |(t, _)| *t == tag).map(|(_, number)| *number)
    }
}

/// The first place that is not before the tag. Tags are hashes and so spread evenly: the place is near to where their range
/// says, which a search by halves would find in more steps, most of them mispredicted.
fn first(shard: &[(u32, u32)], tag: u32) -> usize {
    let mut at = (shard.len() * (tag >> 16) as usize) >> 16;
    while at > 0 && shard[at - 1].0 >= tag {
        at -= 1;
    }
    while at < shard.len() && shard[at].0 < tag {
        at += 1;
    }
    at
}

fn place(text: &[u8]) -> (usize, u32) {
    let [a, b, c, d, e, f, _, _] = HASHER.hash_one(text).to_le_bytes();
    (usize::from(u16::from_le_bytes([e, f])) % SHARDS, u32::from_le_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_to_a_clone_does_not_reach_its_origin() {
        let mut pages = Pages::new();
        for n in 0..300 {
            pages.push(n);
        }
        let mut copy = pages.clone();
        *copy.at_mut(129) = 7;
        copy.push(8);
        assert_eq!((*pages.at(129), pages.len()), (129, 300));
        assert_eq!((*copy.at(129), *copy.at(300)), (7, 8));
    }

    #[test]
    fn a_lookup_gives_all_numbers_of_a_text_until_they_are_removed() {
        let mut lookup = Lookup::new();
        lookup.insert(b"time", 3);
        lookup.insert(b"time", 1);
        lookup.insert(b"date", 2);
        assert_eq!(lookup.find(b"time").collect::<Vec<_>>(), [1, 3]);
        let mut copy = lookup.clone();
        copy.remove(b"time", 1);
        assert_eq!(copy.find(b"time").collect::<Vec<_>>(), [3]);
        assert_eq!(lookup.find(b"time").count(), 2);
    }
}
