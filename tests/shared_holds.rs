//! Holds that many have at once, by a primitive that exists here only: loops and threads enter together, and pass no writer.
#![cfg(not(loom))]

mod common;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::thread;

use common::{PROMPT, World, pending};
use sablock::agents::{Agent, AgentId, Notice};
use sablock::engine::{
    Blockers, Corrupt, Entry, EventLoop, Facts, Hold, HoldOwner, Limit, Mode, Order, Outcome, Primitive, Request, State,
};
use sablock::memory::Place;

const GRANTED: Outcome = Outcome::GRANTED;

/// Many readers, counted in the word, or one writer; W is bit 31, a reservation bit 29.
struct Shared;

static SHARED: Shared = Shared;
const WRITER: u32 = 1 << 30;
const KEPT: u32 = 1 << 29;
const QUEUED: u32 = 1 << 31;

fn word_of(State(state): State) -> u32 {
    state as u32
}

impl Primitive for Shared {
    fn name(&self) -> &'static str {
        "shared"
    }
    fn order(&self) -> Order {
        Order::Barging
    }
    fn freeze(&self, place: Place, _: &Facts<'_>) -> Result<State, Corrupt> {
        Ok(State(u64::from(place.word().fetch_or(QUEUED, Ordering::Acquire))))
    }
    fn thaw(&self, place: Place, _: State, state: State, is_queued: bool) {
        let word = word_of(state) & !QUEUED;
        place.word().store(if is_queued { word | QUEUED } else { word }, Ordering::Release);
    }
    fn read(&self, place: Place) -> State {
        State(u64::from(place.word().load(Ordering::Acquire)))
    }
    fn enter(&self, state: State, request: Request, agent: AgentId, is_queued: bool) -> Entry {
        let Request::Hold(hold) = request else { return Entry::Refused };
        // A reader that comes while somebody waits queues behind.
        let may_enter = hold.mode == Mode::Exclusive || !is_queued;
        may_enter.then(|| self.grant(state, hold, agent)).flatten().map_or(Entry::Wait, Entry::Granted)
    }
    fn grant(&self, state: State, hold: Hold, _: AgentId) -> Option<State> {
        let word = word_of(state) & !QUEUED;
        let next = match hold.mode {
            Mode::Shared if word & WRITER == 0 => (word & !KEPT) + 1,
            Mode::Exclusive if word == 0 => WRITER,
            _ => return None,
        };
        Some(State(u64::from(next | word_of(state) & QUEUED)))
    }
    fn release(&self, state: State, hold: Hold, _: AgentId) -> Option<State> {
        let less = if hold.mode == Mode::Shared { 1 } else { WRITER };
        Some(State(u64::from(word_of(state) - less)))
    }
    fn is_waiting(&self, state: State) -> bool {
        word_of(state) & QUEUED != 0
    }
    fn reserve(&self, state: State, hold: Hold) -> Option<State> {
        (hold.mode == Mode::Exclusive).then(|| State(u64::from(word_of(state) | KEPT)))
    }
    fn unreserve(&self, state: State) -> State {
        State(u64::from(word_of(state) & !KEPT))
    }
    fn blockers(&self, _: State) -> Blockers {
        Blockers::Anybody
    }
}

const READ: Request = Request::Hold(Hold::shared(HoldOwner::Thread));
const WRITE: Request = Request::Hold(Hold::exclusive(HoldOwner::Thread));

impl World {
    fn enter(&self, agent: &Arc<Agent>, request: Request, limit: Limit) -> Outcome {
        self.engine.wait(agent, &SHARED, self.place(), request, limit, &mut || true).unwrap()
    }

    fn exit(&self, agent: &Arc<Agent>, request: Request) {
        self.engine.release(agent, &SHARED, self.place(), request.hold().unwrap()).unwrap();
    }

    fn readers(&self) -> u32 {
        self.word.load(Ordering::SeqCst) & !(QUEUED | KEPT)
    }
}

fn pend(waits: &mut EventLoop<'_>, world: &World, request: Request) -> u32 {
    pending(waits.wait(&SHARED, world.place(), request, Limit::Endless).unwrap())
}

#[test]
fn blocked_readers_go_in_together_and_the_writer_behind_them_waits() {
    let world = &World::new(false);
    let [all_in, has_tried] = &[(); 2].map(|()| Barrier::new(4));
    let writer = world.agent(0);
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), GRANTED);
    thread::scope(|scope| {
        for readers in 1..=3 {
            scope.spawn(|| {
                let agent = world.agent(0);
                assert_eq!(world.enter(&agent, READ, Limit::after(PROMPT)), GRANTED);
                all_in.wait();
                has_tried.wait();
                world.exit(&agent, READ);
            });
            world.until_waiting(&SHARED, readers);
        }
        let behind = scope.spawn(|| {
            let agent = world.agent(0);
            assert_eq!(world.enter(&agent, WRITE, Limit::after(PROMPT)), GRANTED);
            assert_eq!(world.readers(), WRITER, "alone");
            world.exit(&agent, WRITE);
        });
        world.until_waiting(&SHARED, 4);
        world.exit(&writer, WRITE);
        all_in.wait();
        assert_eq!(world.readers(), 3);
        assert_eq!(world.enter(&writer, READ, Limit::Once), Outcome::TimedOut, "a writer waits");
        has_tried.wait();
        behind.join().unwrap();
    });
    assert_eq!(world.value(), 0);
}

#[test]
fn loops_that_come_for_shared_holds_enter_beside_those_who_are_in() {
    let world = World::new(false);
    let writer = world.agent(0);
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), GRANTED);
    let mut loops = [world.event_loop(), world.event_loop()];
    let tokens = [0, 1].map(|index| pend(&mut loops[index], &world, READ));
    world.exit(&writer, WRITE);
    for (waits, token) in loops.iter_mut().zip(tokens) {
        assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
    }
    assert_eq!(world.readers(), 2);
}

#[test]
fn readers_do_not_pass_a_writer_of_a_loop_that_came_in_vain() {
    let world = &World::new(false);
    let reader = world.agent(0);
    assert_eq!(world.enter(&reader, READ, Limit::Once), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, world, WRITE);
    thread::scope(|scope| {
        let behind = scope.spawn(|| {
            let agent = world.agent(0);
            assert_eq!(world.enter(&agent, READ, Limit::after(PROMPT)), GRANTED);
            world.exit(&agent, READ);
        });
        world.until_waiting(&SHARED, 2);
        // It comes, finds a reader in, and is remembered.
        waits.agent().notify(Notice::Offer(world.place().address()));
        assert_eq!(waits.next_settled(), None);
        world.exit(&reader, READ);
        assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
        assert_eq!(world.readers(), WRITER);
        let agent = Arc::clone(waits.agent());
        world.exit(&agent, WRITE);
        behind.join().unwrap();
    });
    assert_eq!(world.readers(), 0);
}

#[test]
fn readers_do_not_pass_a_writer_that_came_in_vain_while_others_are_in() {
    let world = &World::new(false);
    let [first, second] = [0, 1].map(|thread| world.agent(thread));
    for reader in [&first, &second] {
        assert_eq!(world.enter(reader, READ, Limit::Once), GRANTED);
    }
    let mut waits = world.event_loop();
    let token = pend(&mut waits, world, WRITE);
    thread::scope(|scope| {
        let behind = scope.spawn(|| {
            let agent = world.agent(0);
            assert_eq!(world.enter(&agent, READ, Limit::after(PROMPT)), GRANTED);
            world.exit(&agent, READ);
        });
        world.until_waiting(&SHARED, 2);
        waits.agent().notify(Notice::Offer(world.place().address()));
        assert_eq!(waits.next_settled(), None);
        world.exit(&first, READ);
        let waiting = world.engine.inspect(&SHARED, world.place()).waiters.len();
        assert_eq!(waiting, 2, "nobody has passed the writer");
        world.exit(&second, READ);
        assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
        let agent = Arc::clone(waits.agent());
        world.exit(&agent, WRITE);
        behind.join().unwrap();
    });
}
