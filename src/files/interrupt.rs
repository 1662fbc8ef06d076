//! A call that blocks a thread in the kernel, and can be ended by others.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::system;

/// A call of a thread that waits for files, as it shares it with those that may end the wait.
#[derive(Debug, Default)]
pub struct Interrupt(Mutex<InterruptState>);

#[derive(Debug, Default)]
struct InterruptState {
    /// While it is in the kernel: it takes the mutex before it goes on, so that it lives as long as somebody sees this.
    blocked: Option<system::BlockedThread>,
    is_over: bool,
    /// Whether the kernel may have granted something that the thread has not passed on yet.
    may_have: bool,
    /// The waiters that want to know when it has.
    leaving: Vec<Arc<Left>>,
}

/// An act for the time when nothing of a withdrawn wait is left, neither in the kernel nor on its way from there: when the
/// last thread that keeps this drops it.
pub struct Left(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Left {
    /// Does this then.
    pub fn new(then: impl FnOnce() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self(Some(Box::new(then))))
    }

    /// Whether nobody else keeps it. Then it is not done, since the caller knows.
    pub fn is_so(left: Arc<Self>) -> bool {
        Arc::into_inner(left).is_some_and(|mut left| left.0.take().is_some())
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        if let Some(then) = self.0.take() {
            then();
        }
    }
}

impl std::fmt::Debug for Left {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Left")
    }
}

impl Interrupt {
    fn lock(&self) -> MutexGuard<'_, InterruptState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the thread waits again.
    pub fn arm(&self) {
        self.lock().is_over = false;
    }

    /// The thread has passed on what it was granted. The caller drops what is returned, under no lock.
    #[must_use]
    pub fn rest(&self) -> Vec<Arc<Left>> {
        self.lock().may_have = false;
        self.forget()
    }

    /// Its outcome is not wanted any more; else as [`Self::rest`].
    #[must_use]
    pub fn forget(&self) -> Vec<Arc<Left>> {
        std::mem::take(&mut self.lock().leaving)
    }

    /// A caller that has withdrawn the wait keeps `left` until the thread has passed on what it may have been granted. Where its
    /// call cannot be ended that may take for ever: nobody waits for it there.
    pub fn leave(&self, left: &Arc<Left>) {
        let mut state = self.lock();
        if state.may_have && system::can_interrupt() && !fault!(WithdrawnBeforeItsThreadLeft) {
            state.leaving.push(Arc::clone(left));
        }
    }

    /// Runs a call that blocks; false if it was ended by [`Self::interrupt`].
    pub fn run(&self, file: &File, mut call: impl FnMut() -> io::Result<()>) -> io::Result<bool> {
        loop {
            {
                let mut state = self.lock();
                if state.is_over {
                    return Ok(false);
                }
                state.may_have = true;
                state.blocked = Some(system::BlockedThread::here(file));
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
            // If that is impossible, the wait stays; granted, it is given back.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn whoever_withdraws_a_wait_learns_when_nothing_of_it_is_left() {
        if !system::can_interrupt() {
            return;
        }
        let interrupt = &Interrupt::default();
        let (is_in, inside) = channel();
        let (grants, granted) = channel();
        let (passes_on, passed_on) = channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let file = File::open(std::env::current_exe().unwrap()).unwrap();
                let call = || {
                    is_in.send(()).unwrap();
                    granted.recv().map_err(io::Error::other)
                };
                assert!(interrupt.run(&file, call).unwrap(), "it was granted all the same");
                passed_on.recv().unwrap();
                drop(interrupt.rest());
            });
            inside.recv().unwrap();
            interrupt.interrupt();
            let (says, said) = channel();
            let left = Left::new(move || says.send(()).unwrap_or_default());
            interrupt.leave(&left);
            grants.send(()).unwrap();
            assert!(!Left::is_so(left), "the thread has it, or may get it");
            assert!(said.try_recv().is_err());
            passes_on.send(()).unwrap();
            said.recv_timeout(Duration::from_secs(20)).expect("it says so");
            let next = Left::new(|| panic!("the caller knows"));
            interrupt.leave(&next);
            assert!(Left::is_so(next), "nothing is on its way any more");
        });
    }
}
