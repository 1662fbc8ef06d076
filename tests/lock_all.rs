//! Several locks at once: all or none, step by step.
#![cfg(not(loom))]

mod common;

use common::Locks as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use common::{PROMPT, World, slot};
use sablock::agents::{Agent, Notice};
use sablock::clients::{ClientLoop, Clients, LockSet, Names};
use sablock::engine::{
    Caller, Corrupt, Failure, Hold, HoldOwner, Limit, Outcome, Primitive, Reply, ReplyError, Request,
};
use sablock::memory::Place;
use sablock::primitives::mutex::MUTEX;
use sablock::primitives::rwlock::RWLOCK;
use sablock::primitives::semaphore::FAIR_SEMAPHORE;

const GRANTED: Outcome = Outcome::GRANTED;
const GUARD: Hold = Hold::exclusive(HoldOwner::Guard);

/// Words of their own, in one row.
struct Row(&'static [AtomicU32; 8]);

impl Row {
    fn new() -> Self {
        Self(Box::leak(Box::default()))
    }

    fn place(&self, index: usize) -> Place {
        // SAFETY: aligned, zero, and never freed.
        unsafe { Place::new((&self.0[index]).into(), 4 * index) }
    }

    fn set(&self, indices: &[usize]) -> LockSet {
        LockSet::new(indices.iter().map(|index| (&MUTEX as &'static dyn Primitive, self.place(*index), GUARD)))
    }

    fn owners(&self) -> [u32; 4] {
        [0, 1, 2, 3].map(|index| MUTEX.owner(MUTEX.read(self.place(index))))
    }
}

fn event_loop<'w>(world: &'w World, agent: &Arc<Agent>) -> ClientLoop<'w> {
    let names = Box::leak(Box::new(Names::new(&world.engine)));
    ClientLoop::with_clients(&world.engine, Arc::clone(agent), Clients::new(names))
}

fn lock(world: &World, agent: &Arc<Agent>, row: &Row, index: usize) {
    assert_eq!(
        world.engine.lock(agent, row.place(index), HoldOwner::Thread, Limit::Once, &mut || true).unwrap(),
        GRANTED
    );
}

fn unlock(world: &World, agent: &Arc<Agent>, row: &Row, index: usize) {
    assert!(world.engine.unlock(agent, row.place(index), HoldOwner::Thread).unwrap());
}

#[test]
fn all_are_held_once_whatever_the_order_and_the_number_of_their_names() {
    let (world, row) = (World::new(false), Row::new());
    let me = world.agent(0);
    let mut set = row.set(&[3, 1, 3, 0, 1]);
    assert_eq!(set.indices().collect::<Vec<_>>(), [3, 1, 0], "by address, each by its first name");
    assert_eq!(set.lock(&world.engine, &me, Limit::Once, &mut || true).unwrap(), GRANTED);
    assert_eq!(row.owners(), [me.id, me.id, 0, me.id]);
    set.give_back(&world.engine, &me);
    assert_eq!(row.owners(), [0; 4]);
}

#[test]
fn to_read_and_to_write_one_lock_is_to_write_it() {
    let (world, row) = (World::new(false), Row::new());
    let me = world.agent(0);
    let rwlock: &'static dyn Primitive = &RWLOCK;
    let holds = [Hold::shared(HoldOwner::Guard), GUARD, Hold::shared(HoldOwner::Guard)];
    let mut set = LockSet::new(holds.map(|hold| (rwlock, row.place(0), hold)));
    assert_eq!(set.indices().collect::<Vec<_>>(), [1]);
    assert_eq!(set.lock(&world.engine, &me, Limit::Once, &mut || true).unwrap(), GRANTED);
    assert_eq!(RWLOCK.owner(RWLOCK.read(row.place(0))), me.id);
    set.give_back(&world.engine, &me);
    assert_eq!(row.0[0].load(Ordering::SeqCst), 0);
    // Locks of two kinds at one place are not one lock: the second cannot be had.
    let mut set =
        LockSet::new([(&MUTEX as &'static dyn Primitive, row.place(0), GUARD), (rwlock, row.place(0), GUARD)]);
    assert_eq!(set.lock(&world.engine, &me, Limit::Once, &mut || true).unwrap(), Outcome::TimedOut);
    assert_eq!(row.0[0].load(Ordering::SeqCst), 0);
}

#[test]
fn without_one_of_them_none_is_held() {
    let (world, row) = (World::with_slices(false), Row::new());
    let [me, other] = [0, 1].map(|thread| world.agent(thread));
    lock(&world, &other, &row, 2);
    let mut set = row.set(&[3, 2, 1]);
    assert_eq!(set.lock(&world.engine, &me, Limit::Once, &mut || true).unwrap(), Outcome::TimedOut);
    assert_eq!((set.stopped_at, row.owners()), (Some(1), [0, 0, other.id, 0]));
    let failure = row.set(&[3, 2, 1]).lock(&world.engine, &me, Limit::Endless, &mut || false).unwrap_err();
    assert!(matches!(failure, Failure::Interrupted), "{failure:?}");
    assert_eq!(row.owners(), [0, 0, other.id, 0]);
    lock(&world, &me, &row, 3);
    unlock(&world, &other, &row, 2);
    let failure = row.set(&[3, 2, 1]).lock(&world.engine, &me, Limit::Endless, &mut || true).unwrap_err();
    assert!(matches!(failure, Failure::Deadlock(_)), "{failure:?}");
    assert_eq!(row.owners(), [0, 0, 0, me.id]);
}

#[test]
fn a_loop_holds_what_it_has_while_it_waits_for_the_next() {
    let (world, row) = (World::new(false), Row::new());
    let [me, other] = [0, 1].map(|thread| world.agent(thread));
    let mut waits = event_loop(&world, &me);
    lock(&world, &other, &row, 1);
    lock(&world, &other, &row, 3);
    let Ok(Reply::Pending { token, .. }) = waits.lock_all(&mut row.set(&[0, 1, 2, 3]), Limit::Endless) else {
        panic!()
    };
    assert_eq!(waits.look_at_set(Some(token), |set| set.stopped_at), Some(Some(1)));
    assert_eq!(row.owners(), [me.id, other.id, 0, other.id]);
    unlock(&world, &other, &row, 1);
    assert_eq!(waits.next_settled().unwrap().outcome, Ok(GRANTED));
    let Some(Ok(Reply::Pending { .. })) = waits.go_on() else { panic!() };
    assert_eq!(row.owners(), [me.id, me.id, me.id, other.id]);
    assert_eq!(waits.next_settled(), None);
    unlock(&world, &other, &row, 3);
    assert_eq!(waits.next_settled().unwrap().outcome, Ok(GRANTED));
    assert!(matches!(waits.go_on(), Some(Ok(Reply::Now(GRANTED)))));
    assert_eq!(waits.look_at_set(None, |set| set.indices().count()), Some(4), "its code may ask which they are");
    assert_eq!(waits.next_settled(), None, "its code knows of them");
    assert_eq!(row.owners(), [me.id; 4]);
    assert!(!world.engine.inspect(&MUTEX, row.place(2)).owner_has_ended);
    waits.end();
    assert!(world.engine.inspect(&MUTEX, row.place(2)).owner_has_ended, "what its code held is marked");
}

/// However the wait of a set ends, what it had is free, and unmarked.
#[test]
fn a_set_that_is_not_complete_is_given_back_unmarked() {
    type End = fn(ClientLoop<'_>, u32);
    let ends: [(&str, End); 5] = [
        ("cancelled", |mut waits, token| assert!(waits.cancel(token).is_some())),
        ("its thread ends", |waits, _| waits.end()),
        ("its thread ends when it was granted", |mut waits, _| {
            unlock_third();
            assert!(waits.next_settled().is_some());
            waits.end();
        }),
        ("refused", |mut waits, _| {
            unlock_third();
            assert!(waits.next_settled().is_some());
            waits.refuse();
        }),
        ("its code does not go on", |mut waits, _| {
            unlock_third();
            assert!(waits.next_settled().is_some());
            assert_eq!(waits.next_settled(), None);
        }),
    ];
    thread_local! {
        static UNLOCK: std::cell::RefCell<Option<Box<dyn FnOnce()>>> = const { std::cell::RefCell::new(None) };
    }
    fn unlock_third() {
        UNLOCK.take().expect("set before")();
    }
    for (name, end) in ends {
        let (world, row): (&'static World, _) = (Box::leak(Box::new(World::new(false))), Row::new());
        let [me, other] = [0, 1].map(|thread| world.agent(thread));
        let mut waits = event_loop(world, &me);
        lock(world, &other, &row, 2);
        lock(world, &other, &row, 3);
        let Ok(Reply::Pending { token, .. }) = waits.lock_all(&mut row.set(&[3, 1, 2, 0]), Limit::Endless) else {
            panic!()
        };
        assert_eq!(row.owners(), [me.id, me.id, other.id, other.id], "{name}");
        let (row_of_unlock, holder) = (Row(row.0), Arc::clone(&other));
        UNLOCK.set(Some(Box::new(move || unlock(world, &holder, &row_of_unlock, 2))));
        end(waits, token);
        let third = row.owners()[2];
        assert_eq!((row.owners()[..2].to_vec(), third == 0 || third == other.id), (vec![0, 0], true), "{name}");
        assert_eq!(row.0[0].load(Ordering::SeqCst) | row.0[1].load(Ordering::SeqCst), 0, "{name}: unmarked");
    }
}

#[test]
fn what_ended_inside_is_still_to_be_reported_after_a_set_was_given_back() {
    let (world, row) = (World::new(false), Row::new());
    let [me, dead, other] = [0, 1, 2].map(|thread| world.agent(thread));
    lock(&world, &dead, &row, 0);
    lock(&world, &other, &row, 2);
    world.engine.thread_ended(dead.id);
    let mut set = row.set(&[0, 2]);
    assert_eq!(set.lock(&world.engine, &me, Limit::Once, &mut || true).unwrap(), Outcome::TimedOut);
    unlock(&world, &other, &row, 2);
    let mut set = row.set(&[2, 0]);
    assert_eq!(set.lock(&world.engine, &me, Limit::Once, &mut || true).unwrap(), GRANTED);
    assert_eq!(set.reports().collect::<Vec<_>>(), [(1, dead.id)]);
}

#[test]
fn a_wait_that_was_granted_cannot_be_taken_back_whether_a_set_or_code_waits() {
    for is_set in [true, false] {
        let (world, row) = (World::new(false), Row::new());
        let ([me, other], place) = ([0, 1].map(|thread| world.agent(thread)), row.place(0));
        let (hold, permit) = (Hold::permits(1, 1), Request::Hold(Hold::permits(1, 1)));
        assert_eq!(
            world.engine.wait(&other, &FAIR_SEMAPHORE, place, permit, Limit::Once, &mut || true).unwrap(),
            GRANTED
        );
        let mut waits = event_loop(&world, &me);
        let reply = if is_set {
            let semaphore: &'static dyn Primitive = &FAIR_SEMAPHORE;
            waits.lock_all(&mut LockSet::new([(semaphore, place, hold)]), Limit::Endless)
        } else {
            waits.wait(&FAIR_SEMAPHORE, place, permit, Limit::Endless)
        };
        let Ok(Reply::Pending { token, .. }) = reply else { panic!() };
        assert!(world.engine.release(&other, &FAIR_SEMAPHORE, place, hold).unwrap());
        assert_eq!(waits.cancel(token), None);
        assert_eq!(waits.next_settled().unwrap().outcome, Ok(GRANTED));
    }
}

/// A thread that blocks: what it does between two slices, whether it goes on, and whom it has waited for.
struct Blocked<'c> {
    pause: &'c mut dyn FnMut() -> bool,
    goes_on: bool,
    queued_for: Vec<u32>,
}

impl Caller for Blocked<'_> {
    fn pause(&mut self) -> bool {
        (self.pause)()
    }

    fn goes_on(&mut self) -> bool {
        self.goes_on
    }

    fn queued(&mut self, owner: u32, _: u32, _: Instant) {
        self.queued_for.push(owner);
    }
}

#[test]
fn who_blocks_for_a_set_pauses_is_told_whom_it_waits_for_and_may_end_at_a_grant() {
    for goes_on in [true, false] {
        let (world, row) = (World::with_slices(false), Row::new());
        let [me, other] = [0, 1].map(|thread| world.agent(thread));
        lock(&world, &other, &row, 2);
        let mut is_held = true;
        let mut pause = || {
            if std::mem::take(&mut is_held) {
                unlock(&world, &other, &row, 2);
            }
            true
        };
        let mut blocked = Blocked { pause: &mut pause, goes_on, queued_for: Vec::new() };
        let mut set = row.set(&[1, 2, 3]);
        let outcome = set.lock(&world.engine, &me, Limit::Endless, &mut blocked);
        assert_eq!(blocked.queued_for, [other.id]);
        assert_eq!(set.waits.iter().map(|wait| (wait.index, wait.owner)).collect::<Vec<_>>(), [(1, other.id)]);
        if goes_on {
            assert_eq!((outcome.unwrap(), row.owners()), (GRANTED, [0, me.id, me.id, me.id]));
        } else {
            assert!(matches!(outcome, Err(Failure::Interrupted)), "{outcome:?}");
            assert_eq!(row.owners(), [0; 4]);
        }
    }
}

#[test]
fn a_set_that_is_out_of_time_holds_nothing_when_its_code_learns_of_it() {
    let (world, row) = (World::new(false), Row::new());
    let [me, other] = [0, 1].map(|thread| world.agent(thread));
    let mut waits = event_loop(&world, &me);
    lock(&world, &other, &row, 2);
    let reply = waits.lock_all(&mut row.set(&[1, 2]), Limit::after(PROMPT));
    assert!(matches!(reply, Ok(Reply::Pending { .. })));
    assert_eq!(row.owners(), [0, me.id, other.id, 0]);
    world.clock.expire(&world.engine);
    assert_eq!(waits.next_settled().map(|settled| settled.outcome), Some(Ok(Outcome::TimedOut)));
    assert_eq!(row.owners(), [0, 0, other.id, 0]);
}

#[test]
fn what_a_set_had_is_given_back_once_if_the_next_was_overwritten() {
    for is_awaited in [true, false] {
        let (world, row) = (World::new(false), Row::new());
        let [me, other] = [0, 1].map(|thread| world.agent(thread));
        let mut waits = event_loop(&world, &me);
        lock(&world, &other, &row, 2);
        assert!(matches!(waits.lock_all(&mut row.set(&[1, 2, 3]), Limit::Endless), Ok(Reply::Pending { .. })));
        if is_awaited {
            row.0[2].store(3, Ordering::SeqCst);
            me.notify(Notice::Offer(row.place(2).address()));
            assert_eq!(waits.next_settled().map(|settled| settled.outcome), Some(Err(Corrupt)));
        } else {
            row.0[3].store(3, Ordering::SeqCst);
            unlock(&world, &other, &row, 2);
            assert_eq!(waits.next_settled().map(|settled| settled.outcome), Some(Ok(GRANTED)));
            assert!(matches!(waits.go_on(), Some(Err(ReplyError::Corrupt))));
        }
        assert_eq!(row.owners()[1], 0);
        // Its code may lock it before the loop looks for more.
        assert_eq!(waits.wait(&MUTEX, row.place(1), Request::Hold(GUARD), Limit::Once).unwrap(), Reply::Now(GRANTED));
        assert_eq!(waits.next_settled(), None);
        assert_eq!(row.owners()[1], me.id, "awaited: {is_awaited}");
    }
}

#[test]
fn a_lock_that_is_free_after_one_that_was_awaited_was_not_awaited() {
    let (world, row) = (World::with_slices(false), Row::new());
    let [me, other] = [0, 1].map(|thread| world.agent(thread));
    lock(&world, &other, &row, 0);
    let read = Hold::shared(HoldOwner::Guard);
    // Beside another reader the core looks itself.
    let reads = world.engine.wait(&other, &RWLOCK, row.place(2), Request::Hold(read), Limit::Once, &mut || true);
    assert_eq!(reads.unwrap(), GRANTED);
    let mut set = LockSet::new([
        (&MUTEX as &'static dyn Primitive, row.place(0), GUARD),
        (&RWLOCK as &'static dyn Primitive, row.place(2), read),
    ]);
    let mut is_held = true;
    let outcome = set.lock(&world.engine, &me, Limit::Endless, &mut || {
        if std::mem::take(&mut is_held) {
            unlock(&world, &other, &row, 0);
        }
        true
    });
    assert_eq!(outcome.unwrap(), GRANTED);
    assert_eq!(set.waits.iter().map(|wait| (wait.index, wait.owner)).collect::<Vec<_>>(), [(0, other.id)]);
}

#[test]
fn what_was_acquired_a_moment_ago_is_taken_back_with_what_was_not_reported() {
    let (world, row) = (World::new(false), Row::new());
    let [me, dead] = [0, 1].map(|thread| world.agent(thread));
    lock(&world, &dead, &row, 0);
    lock(&world, &dead, &row, 1);
    world.engine.thread_ended(dead.id);
    let mut set = row.set(&[2, 1, 0]);
    assert_eq!(set.places().map(Place::address).collect::<Vec<_>>(), [0, 1, 2].map(|index| row.place(index).address()));
    assert_eq!(set.lock(&world.engine, &me, Limit::Once, &mut || true).unwrap(), GRANTED);
    assert_eq!(set.reports().collect::<Vec<_>>(), [(2, dead.id), (1, dead.id)]);
    // The first is reported, and its code hears of an error before it hears of the second.
    let mut held = row.set(&[2, 1, 0]).all_held(&[(1, dead.id)]);
    held.give_back(&world.engine, &me);
    let mut set = row.set(&[0, 1, 2]);
    assert_eq!(set.lock(&world.engine, &me, Limit::Once, &mut || true).unwrap(), GRANTED);
    assert_eq!(set.reports().collect::<Vec<_>>(), [(1, dead.id)]);
}

#[test]
fn what_ended_inside_is_reported_with_the_set_of_a_loop_or_passes_on_with_what_goes_back() {
    for is_late in [false, true] {
        let (world, row) = (World::new(false), Row::new());
        let [me, dead, dies] = [0, 1, 2].map(|thread| world.agent(thread));
        let mut waits = event_loop(&world, &me);
        for index in [0, 1] {
            lock(&world, &dead, &row, index);
        }
        lock(&world, &dies, &row, 2);
        world.engine.thread_ended(dead.id);
        let reply = waits.lock_all(&mut row.set(&[2, 1, 0]), Limit::after(PROMPT));
        let Ok(Reply::Pending { token, .. }) = reply else { panic!("{reply:?}") };
        let reports = waits.look_at_set(Some(token), |set| set.reports().collect::<Vec<_>>());
        assert_eq!(reports, Some(vec![(2, dead.id), (1, dead.id)]));
        if is_late {
            world.clock.expire(&world.engine);
            assert_eq!(row.owners(), [dead.id, dead.id, dies.id, 0], "all as it was, though its loop has not turned");
            let mut next = row.set(&[0, 1]);
            assert_eq!(next.lock(&world.engine, &dies, Limit::Once, &mut || true).unwrap(), GRANTED);
            assert_eq!(next.reports().collect::<Vec<_>>(), [(0, dead.id), (1, dead.id)]);
            continue;
        }
        world.engine.thread_ended(dies.id);
        let granted = waits.next_settled().map(|settled| settled.outcome);
        assert_eq!(granted, Some(Ok(Outcome::granted(Some(dies.id)))));
        assert!(matches!(waits.go_on(), Some(Ok(Reply::Now(GRANTED)))));
        let reports = waits.look_at_set(None, |set| set.reports().collect::<Vec<_>>());
        assert_eq!(reports, Some(vec![(2, dead.id), (1, dead.id), (0, dies.id)]));
    }
}

/// A set that has a shared hold, and waits for a mutex; another follows.
struct Sharing<'w> {
    world: &'w World,
    row: Row,
    me: Arc<Agent>,
    /// Holds the mutex.
    other: Arc<Agent>,
}

impl<'w> Sharing<'w> {
    const MUTEX_AT: usize = 2;

    fn set(&self) -> LockSet {
        let read = Hold::shared(HoldOwner::Guard);
        let rwlock: &'static dyn Primitive = &RWLOCK;
        let [awaited, last] = [Self::MUTEX_AT, Self::MUTEX_AT + 1].map(|index| self.row.place(index));
        LockSet::new([(rwlock, self.row.place(0), read), (&MUTEX, awaited, GUARD), (&MUTEX, last, GUARD)])
    }

    fn free_mutex(&self) {
        unlock(self.world, &self.other, &self.row, Self::MUTEX_AT);
    }

    /// The loop, once it waits for the mutex, and the token of that wait.
    fn pending(&self) -> (ClientLoop<'w>, u32) {
        let mut waits = event_loop(self.world, &self.me);
        let reply = waits.lock_all(&mut self.set(), Limit::after(PROMPT));
        let Ok(Reply::Pending { token, .. }) = reply else { panic!("{reply:?}") };
        self.is_registered(1, "while it waits");
        (waits, token)
    }

    /// The loop, once the mutex was granted to it, which does not go on.
    fn granted(&self) -> ClientLoop<'w> {
        let (mut waits, _) = self.pending();
        self.free_mutex();
        assert_eq!(waits.next_settled().map(|settled| settled.outcome), Some(Ok(GRANTED)));
        self.is_registered(1, "when it was granted");
        waits
    }

    /// The loop, once it has gone on to wait for the last mutex, which the other holds too, and the token of that wait.
    fn at_the_last(&self) -> (ClientLoop<'w>, u32) {
        lock(self.world, &self.other, &self.row, Self::MUTEX_AT + 1);
        let mut waits = self.granted();
        let reply = waits.go_on();
        let Some(Ok(Reply::Pending { token, .. })) = reply else { panic!("{reply:?}") };
        self.is_registered(1, "while it waits for the last");
        (waits, token)
    }

    fn is_registered(&self, count: u32, when: &str) {
        let registered = self.world.engine.holders(&RWLOCK, self.row.place(0)).registered;
        let mine = registered.iter().find(|(thread, _)| *thread == self.me.thread).map_or(0, |(_, count)| *count);
        assert_eq!(mine, count, "{when}");
    }
}

#[test]
fn what_a_set_shares_is_registered_while_it_is_held_and_no_longer_however_the_set_ends() {
    type End = fn(&Sharing<'_>);
    let ends: [(&str, End); 12] = [
        ("one cannot be had", |it| {
            let outcome = it.set().lock(&it.world.engine, &it.me, Limit::Once, &mut || true);
            assert_eq!(outcome.unwrap(), Outcome::TimedOut);
        }),
        ("given back at once", |it| {
            it.free_mutex();
            let mut set = it.set();
            assert_eq!(set.lock(&it.world.engine, &it.me, Limit::Once, &mut || true).unwrap(), GRANTED);
            it.is_registered(1, "when it is held");
            set.give_back(&it.world.engine, &it.me);
        }),
        ("one cannot be had by a loop", |it| {
            let mut waits = event_loop(it.world, &it.me);
            let reply = waits.lock_all(&mut it.set(), Limit::Once);
            assert!(matches!(reply, Ok(Reply::Now(Outcome::TimedOut))), "{reply:?}");
        }),
        ("cancelled", |it| {
            let (mut waits, token) = it.pending();
            assert!(waits.cancel(token).is_some());
        }),
        ("out of time", |it| {
            let (mut waits, _) = it.pending();
            it.world.clock.expire(&it.world.engine);
            it.is_registered(0, "before its loop turns");
            assert_eq!(waits.next_settled().map(|settled| settled.outcome), Some(Ok(Outcome::TimedOut)));
        }),
        ("refused", |it| it.granted().refuse()),
        ("its code does not go on", |it| assert_eq!(it.granted().next_settled(), None)),
        ("its thread ends", |it| it.pending().0.end()),
        ("cancelled in its second wait", |it| {
            let (mut waits, token) = it.at_the_last();
            assert!(waits.cancel(token).is_some());
        }),
        ("out of time in its second wait", |it| {
            let (mut waits, _) = it.at_the_last();
            it.world.clock.expire(&it.world.engine);
            it.is_registered(0, "before its loop turns");
            assert_eq!(waits.next_settled().map(|settled| settled.outcome), Some(Ok(Outcome::TimedOut)));
        }),
        ("its thread ends in its second wait", |it| it.at_the_last().0.end()),
        ("given back after its second wait", |it| {
            let (mut waits, _) = it.at_the_last();
            unlock(it.world, &it.other, &it.row, Sharing::MUTEX_AT + 1);
            assert_eq!(waits.next_settled().map(|settled| settled.outcome), Some(Ok(GRANTED)));
            assert!(matches!(waits.go_on(), Some(Ok(Reply::Now(Outcome::Granted { .. })))));
            it.is_registered(1, "when it is held");
            it.set().all_held(&[]).give_back(&it.world.engine, &it.me);
        }),
    ];
    for (name, end) in ends {
        for is_shared_already in [false, true] {
            let world = World::new(false);
            let [me, other] = [0, 1].map(|thread| world.agent(thread));
            let it = Sharing { world: &world, row: Row::new(), me, other };
            let place = it.row.place(0);
            world.engine.add_slot(&RWLOCK, place, slot(&it.me).0);
            let read = Hold::shared(HoldOwner::Thread);
            if is_shared_already {
                let reads =
                    world.engine.wait(&it.other, &RWLOCK, place, Request::Hold(read), Limit::Once, &mut || true);
                assert_eq!(reads.unwrap(), GRANTED);
            }
            lock(&world, &it.other, &it.row, Sharing::MUTEX_AT);
            end(&it);
            it.is_registered(0, name);
            // Nothing of the other's goes back with the thread's end.
            world.engine.thread_ended(it.me.id);
            let readers = sablock::primitives::rwlock::Word(it.row.0[0].load(Ordering::SeqCst)).readers();
            assert_eq!(readers, u32::from(is_shared_already), "{name}");
        }
    }
}
