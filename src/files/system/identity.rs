//! The identity of a file, apart from its name.

/// A file or directory, by device and number: it has one identity, whatever path leads to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Identity(pub u64, pub u128);
