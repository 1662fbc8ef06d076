//! Conditions: to release a lock and wait for a notification in one step, and to hold the lock again afterwards.
//!
//! The waiter is queued before the lock is free, so that whoever takes it and notifies finds it there.
//! A notification is the waiter's only once it holds the lock again: until then the end of its thread passes it on.

use std::sync::Arc;

use crate::agents::Agent;
use crate::engine::{
    Caller, Client, Corrupt, Engine, EventLoop, Failure, Hold, Limit, Outcome, Primitive, Reply, ReplyError, Request,
};
use crate::memory::Place;
use crate::primitives::futex::FUTEX;

/// Why a wait for a condition ended without the lock being held again.
#[derive(Debug)]
pub enum ConditionFailure {
    /// The agent did not hold the lock so; nothing was changed.
    NotHeld,
    /// The lock's words hold what this package did not write; nothing was changed.
    Corrupt,
    /// The lock could not be taken again.
    NotLocked(Failure),
}

/// The lock that a waiter for a condition has before and afterwards.
#[derive(Clone, Copy)]
pub struct ConditionLock {
    /// The lock.
    pub primitive: &'static dyn Primitive,
    /// Its place.
    pub place: Place,
    /// The hold that the waiter has of it.
    pub hold: Hold,
}

impl ConditionLock {
    fn release(self, engine: &Engine, agent: &Arc<Agent>) -> Result<bool, Corrupt> {
        engine.release(agent, self.primitive, self.place, self.hold)
    }

    /// Releases the hold, which `agent` has, waits for a notification at `place`, and takes the lock again. Returns whether it was
    /// notified, and how the lock was acquired.
    ///
    /// `limit` is for the notification; to take the lock again takes as long as it takes. The rest is as for [`Engine::wait`] and
    /// [`Engine::release`].
    pub fn wait(
        self,
        engine: &Engine,
        agent: &Arc<Agent>,
        place: Place,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<(bool, Outcome), ConditionFailure> {
        let early = fault!(ConditionReleasesFirst).then(|| self.release(engine, agent));
        let wait = engine.queue_for_notification(agent, &FUTEX, place, limit);
        let released = early.unwrap_or_else(|| self.release(engine, agent));
        if released != Ok(true) {
            wait.drop();
            return Err(released.map_or(ConditionFailure::Corrupt, |_| ConditionFailure::NotHeld));
        }
        let settlement = engine.blocked(agent, place, || wait.sleep_until_settled(caller));
        let settlement = settlement.map_err(ConditionFailure::NotLocked)?;
        match engine.wait(agent, self.primitive, self.place, Request::Hold(self.hold), Limit::Endless, caller) {
            Ok(outcome) => {
                // The end of the thread may have begun since its last slice: then its code has neither the lock nor the
                // notification.
                if !caller.goes_on() {
                    if let Outcome::Granted { abandoned_by, .. } = outcome
                        && !fault!(ConditionKeepsLockWhileEnding)
                    {
                        engine.give_back(agent, self.primitive, self.place, self.hold, abandoned_by);
                    }
                    if let Some(settlement) = settlement {
                        engine.refuse(&FUTEX, place, None, agent.id, settlement);
                    }
                    return Err(ConditionFailure::NotLocked(Failure::Interrupted));
                }
                if let Some(settlement) = settlement {
                    engine.learned(&FUTEX, place, settlement);
                }
                Ok((settlement.is_some(), outcome))
            }
            Err(failure) => {
                if let Some(settlement) = settlement.filter(|_| !fault!(ConditionKeepsNotification)) {
                    engine.refuse(&FUTEX, place, None, agent.id, settlement);
                }
                Err(ConditionFailure::NotLocked(failure))
            }
        }
    }

    /// Releases the hold, which the thread of `waits` has, and waits for a notification at `place`, in one step; see
    /// [`Engine::release`]. Once the wait is settled, the thread's code takes the lock again and then calls [`EventLoop::accept`].
    pub fn wait_async<C: Client>(
        self,
        waits: &mut EventLoop<'_, C>,
        place: Place,
        limit: Limit,
    ) -> Result<Reply, ReplyError> {
        // Queued before it is released, so that whoever takes the lock and notifies finds it there.
        let reply = waits.wait(&FUTEX, place, Request::Notification, limit)?;
        let Reply::Pending { token, .. } = reply else { return Err(ReplyError::NotHeld) };
        waits.keep(token);
        let released = self.release(waits.engine(), waits.agent());
        if released != Ok(true) {
            waits.drop_wait(token);
            return Err(released.map_or(ReplyError::Corrupt, |_| ReplyError::NotHeld));
        }
        Ok(reply)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::ptr::NonNull;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::engine::clock::Clock;
    use crate::engine::{HoldOwner, Patience, Space};
    use crate::primitives::mutex::MUTEX;
    use crate::sync::AtomicU32;

    struct World {
        engine: Engine,
        words: [AtomicU32; 2],
    }

    impl World {
        fn new() -> Self {
            let clock = Box::new(Clock::new(|| unreachable!("no time is kept")));
            Self { engine: Engine::new(1, 70_000, Patience::default(), clock), words: Default::default() }
        }

        fn place(&self, index: usize) -> Place {
            // SAFETY: aligned atomics that outlive all waits, which end inside the test.
            unsafe { Place::new(NonNull::from(&self.words[index]), 4 * index) }
        }

        /// The mutex, locked by this agent.
        fn locked(&self, agent: &Arc<Agent>) -> ConditionLock {
            let hold = Hold::exclusive(HoldOwner::Thread);
            let (primitive, place): (&'static dyn Primitive, _) = (&MUTEX, self.place(0));
            let locked = self.engine.wait(agent, primitive, place, Request::Hold(hold), Limit::Once, &mut || true);
            assert!(matches!(locked, Ok(Outcome::Granted { .. })));
            ConditionLock { primitive, place, hold }
        }

        /// Notifies the one that waits, once another waits behind it, which stays.
        fn notify_one_of_two(&self) -> EventLoop<'_> {
            let end = Instant::now() + Duration::from_secs(20);
            while self.engine.waiting(self.place(1)) == 0 {
                assert!(Instant::now() < end, "nobody waits");
                thread::yield_now();
            }
            let mut stays = EventLoop::new(&self.engine, self.engine.agents.add(1).unwrap());
            stays.wait(&FUTEX, self.place(1), Request::Notification, Limit::Endless).unwrap();
            assert_eq!(self.engine.notify(self.place(1), 1), 1);
            stays
        }

        fn unlearned(&self) -> usize {
            let address = self.place(1).address();
            let mut contents = self.engine.contents(Space::Notifications, address);
            contents.queue(address).expect("somebody stays").0.unlearned()
        }
    }

    #[test]
    fn a_notification_is_remembered_until_its_code_knows_of_it_and_no_longer() {
        for has_lock in [false, true] {
            let world = &World::new();
            let agent = world.engine.agents.add(0).unwrap();
            thread::scope(|scope| {
                let blocked = scope.spawn(|| {
                    let (place, limit, mut caller) = (world.place(1), Limit::Endless, || true);
                    if has_lock {
                        world.locked(&agent).wait(&world.engine, &agent, place, limit, &mut caller).unwrap();
                    } else {
                        world.engine.wait(&agent, &FUTEX, place, Request::Notification, limit, &mut caller).unwrap();
                    }
                });
                let stays = world.notify_one_of_two();
                blocked.join().unwrap();
                assert_eq!(world.unlearned(), 0, "a blocked thread, with a lock: {has_lock}");
                stays.end();
            });

            let world = World::new();
            let mut waits = EventLoop::new(&world.engine, world.engine.agents.add(0).unwrap());
            let reply = if has_lock {
                let lock = world.locked(&Arc::clone(waits.agent()));
                lock.wait_async(&mut waits, world.place(1), Limit::Endless)
            } else {
                waits.wait(&FUTEX, world.place(1), Request::Notification, Limit::Endless)
            };
            let Ok(Reply::Pending { token, .. }) = reply else { panic!("{reply:?}") };
            let stays = world.notify_one_of_two();
            assert_eq!(waits.next_settled().map(|settled| settled.token), Some(token));
            assert_eq!(world.unlearned(), 1, "a promise, with a lock: {has_lock}");
            if has_lock {
                waits.accept(token);
            }
            assert_eq!(waits.next_settled(), None);
            assert_eq!(world.unlearned(), 0, "a promise, with a lock: {has_lock}");
            stays.end();
        }
    }
}
