//! The hook for what stands on the engine: a wait carries whose it is, and that client is asked once it is over.

use std::sync::Arc;

use super::reply::Settled;
use crate::agents::{Agent, Message};

/// A client makes more of waits than to wait: several one after the other, or one that belongs to a request. It lives in an
/// [`super::EventLoop`], and is asked on that thread.
pub trait Client {
    /// Whose a wait is; by default that of the code that waits, for which nobody is asked.
    type Of: Copy + Default;

    /// A wait is over. True: what it was granted is the client's, until it is accepted or refused; else it goes back by itself
    /// if it is refused.
    fn settled(&mut self, _: &Arc<Agent>, _: Self::Of, _: &Settled) -> bool {
        false
    }

    /// A wait was taken back, its thread ended, or what it was granted has gone back.
    fn left(&mut self, _: &Arc<Agent>, _: Self::Of, _: u32) {}

    /// The thread's code knows of the wait whose grant was the client's.
    fn accepted(&mut self, _: &Arc<Agent>) {}

    /// The wait's purpose is not wanted any more.
    fn refused(&mut self, _: &Arc<Agent>) {}

    /// Whether a wait that was granted can be taken back for as long as the thread's code does not know.
    fn takes_back_granted(&self, _: Self::Of) -> bool {
        false
    }

    /// Its part on another thread has left a message.
    fn message(&mut self, _: Message) {}

    /// The thread has ended, and its waits are gone.
    fn ended(&mut self, _: &Arc<Agent>) {}
}

/// No client.
impl Client for () {
    type Of = ();
}
