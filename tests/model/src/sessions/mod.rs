//! Locks that PostgreSQL keeps: a lock is a session's, and ends with it. Clients with two connections each: the home, which tries
//! and never blocks, and one in which a wait blocks. Sessions end, cables are cut, and a cancel meets a grant.
//!
//! [`state`]: connections, requests, who holds what in the server. [`server`]: what a backend does with a query. [`client`]: what
//! the keeper of a client does with an answer, an end, or silence. [`protocol`]: what may happen when, and what must
//! hold.

mod client;
mod fault;
mod protocol;
mod server;
mod state;
pub mod suite;
