//! Agents (ECMAScript's word): the JS threads of the process, from their first use of the package to their end.
//! This module knows nothing of queues.

mod agent;
mod directory;

pub use agent::{Agent, AgentId, Blockage, LARGEST_ID, Notice, OsThread, ThreadId, WaitId, Wake};
pub use directory::{Agents, Standing};

/// A table that has emptied gives its memory back if it has room for more than this.
pub const SPARE: usize = 1024;

/// Whether a table of `len` entries should give memory back: so seldom that it costs nothing for each entry.
pub fn is_sparse(len: usize, capacity: usize) -> bool {
    capacity > SPARE && capacity / 8 >= len && !fault!(TablesKeepTheirRoom)
}
