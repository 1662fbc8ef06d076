//! Locks in a store by leases (Redis, etcd): one name, a queue of tickets in the server, clients that may stall at any step, and
//! messages that are delayed, doubled and lost.
//!
//! Time is a small number that goes on at any moment, so that a lease may end during each step. [`state`]: the server, the clients,
//! what is on its way. [`protocol`]: what may happen, and what must hold.

mod fault;
mod protocol;
mod state;
pub mod suite;
