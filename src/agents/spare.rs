//! When a table that has emptied gives its memory back.

/// A table that has emptied gives its memory back if it has room for more than this.
pub const SPARE: usize = 1024;

/// Whether a table of `len` entries should give memory back: so seldom that it costs nothing for each entry.
pub fn is_sparse(len: usize, capacity: usize) -> bool {
    capacity > SPARE && capacity / 8 >= len && !fault!(TablesKeepTheirRoom)
}
