//! The index over a snapshot of the book, and its scoring. Pure: no I/O, no async, no SQL.
//!
//! A row becomes words (`words`), its words become postings (`row`, `vocabulary`), a question becomes words too
//! (`reading`), both get a direction of meaning (`encoder`), and `ask` brings them together over the rows that are likely
//! (`shortlist`): keys that the question writes out, then what the operator recommends,
//! then keys that it says in words, then what fits by its words, then what the operator demotes. `score` holds every
//! number and says where it is from.
//!
//! An [`Index`] is a value: a clone shares everything with its origin and a write to the clone copies only what it
//! touches, so that a snapshot can be replaced by pointer swap while others still read the old one, and no question
//! ever waits for a write.
//!
//! A general search engine was not taken: 100,000 short rows fit in memory whole, every row is scored on every
//! question, and what decides here (coverage of key and question, exact keys, abstention, rows seen by this caller
//! only) is outside of what such an engine ranks by.

mod question;
pub use question::{Filters, Hit, Question, Ranked};
mod entry;
pub use entry::{Entry, Recommendation};
mod index;
pub use index::Index;
mod shelf;
pub use shelf::Shelf;

mod apart;
mod ask;
mod mention;
mod reading;
mod recommend;
mod score;
mod shortlist;

mod encoder;
mod row;
mod sharing;
mod typo;
mod vocabulary;
mod words;
