//! A call that blocks a thread in the kernel, and can be ended by others.

use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::system;

/// What a thread that waits for files shares with those who may end its wait.
#[derive(Debug, Default)]
pub struct Interrupt(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// While it is in the kernel: it takes the mutex before it goes on, so that it lives as long as somebody sees this.
    blocked: Option<system::Blocked>,
    is_over: bool,
}

impl Interrupt {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the thread waits again.
    pub fn arm(&self) {
        self.lock().is_over = false;
    }

    /// Runs a call that blocks; false if it was ended by [`Self::interrupt`].
    pub fn run(&self, file: &File, mut call: impl FnMut() -> io::Result<()>) -> io::Result<bool> {
        loop {
            {
                let mut state = self.lock();
                if state.is_over {
                    return Ok(false);
                }
                state.blocked = Some(system::Blocked::here(file));
            }
            let result = call();
            self.lock().blocked = None;
            match result {
                Err(error) if system::is_interruption(&error) => {}
                result => return result.map(|()| true),
            }
        }
    }

    /// Ends the call. False if it has to be asked for again, since the thread may have been on its way into the kernel.
    pub fn interrupt(&self) -> bool {
        let mut state = self.lock();
        state.is_over = true;
        match &state.blocked {
            // Where that is impossible, the wait stays; granted, it is given back.
            Some(blocked) if system::can_interrupt() => {
                blocked.interrupt();
                false
            }
            _ => true,
        }
    }

    /// The same, once more, unless the thread waits again by now.
    pub fn interrupt_again(&self) -> bool {
        let is_over = self.lock().is_over;
        !is_over || self.interrupt()
    }
}
