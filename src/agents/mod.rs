//! Agents (ECMAScript's word): the JS threads of the process, from their first use of the package to their end.
//! This module knows nothing of queues.

mod agent;
mod directory;
mod spare;

pub use agent::{Agent, AgentId, Blockage, LARGEST_ID, Message, Notice, OsThread, RequestId, ThreadId, Wake};
pub use directory::{Agents, Standing};
pub use spare::{SPARE, is_sparse};
