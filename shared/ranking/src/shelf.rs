//! The index as a process shares it.

/// In work.
#[derive(Debug, Default)]
pub struct Shelf;
