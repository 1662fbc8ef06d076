//! The hook for what stands on the engine: a wait carries whose it is, and that client is asked once it is over.

use std::sync::Arc;

use super::primitive::Hold;
use super::reply::Settled;
use crate::agents::{Agent, WaitId};

/// What makes more of waits than to wait: several one after the other, or one that belongs to a request. It lives in an
/// [`super::EventLoop`], and is asked on that thread.
pub trait Client {
    /// Whose a wait is; by default that of the code that waits, for which nobody is asked.
    type Of: Copy + Default;

    /// A wait is over. True: what it was granted is the client's, until it is accepted or refused; else it goes back by itself
    /// if it is refused.
    fn settled(&mut self, here: &Arc<Agent>, of: Self::Of, hold: Option<Hold>, settled: &Settled) -> bool {
        let _ = (here, of, hold, settled);
        false
    }

    /// A wait was taken back, its thread ended, or what it was granted has gone back.
    fn left(&mut self, here: &Arc<Agent>, of: Self::Of, token: u32, hold: Option<Hold>) {
        let _ = (here, of, token, hold);
    }

    /// The thread's code knows of the wait whose grant was the client's.
    fn accepted(&mut self, here: &Arc<Agent>) {
        let _ = here;
    }

    /// Nobody wants what that wait was for.
    fn refused(&mut self, here: &Arc<Agent>) {
        let _ = here;
    }

    /// Whether a wait that was granted can be taken back for as long as the thread's code does not know.
    fn takes_back_granted(&self, of: Self::Of) -> bool {
        let _ = of;
        false
    }

    /// Its part on another thread has left a message.
    fn message(&mut self, message: WaitId) {
        let _ = message;
    }

    /// The thread has ended, and its waits are gone.
    fn ended(&mut self, here: &Arc<Agent>) {
        let _ = here;
    }
}

/// Nobody.
impl Client for () {
    type Of = ();
}
