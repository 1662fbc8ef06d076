//! What stands on the engine and its primitives: each a way to wait that is more than one request to one primitive.

pub mod condition;
mod futex;
mod names;
