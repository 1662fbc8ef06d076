//! When a table that has emptied gives its memory back.

/// A table that has emptied gives its memory back if it has room for more than this.
pub const SPARE: usize = 1024;

/// Whether a table of `len` entries should give memory back: so seldom that it costs nothing for each entry.
pub fn is_sparse(len: usize, capacity: usize) -> bool {
    capacity > SPARE && capacity / 8 >= len && !fault!(TablesKeepTheirRoom)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_large_tables_that_are_nearly_empty_give_memory_back() {
        let large = 8 * SPARE;
        for (len, capacity, expected) in
            [(0, SPARE, false), (0, SPARE + 1, true), (SPARE, large, true), (SPARE + 1, large, false)]
        {
            assert_eq!(is_sparse(len, capacity), expected, "{len} of {capacity}");
        }
    }
}
