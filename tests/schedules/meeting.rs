//! A place where some actors come once: a latch, a barrier, a once, or an exchanger. It knows who may pass.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32 as Count, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sablock::agents::Agent;
use sablock::engine::{Change, Hold, HoldOwner, Limit, Outcome, Primitive, Request};
use sablock::memory::Place;
use sablock::primitives::barrier::BARRIER;
use sablock::primitives::exchanger::EXCHANGER;
use sablock::primitives::latch::LATCH;
use sablock::primitives::mutex::Word;
use sablock::primitives::once::ONCE;

use super::actor::{Actor, Ends};
use super::reached::{Reached, reached};
use super::world::{MEETING, World, place};
use super::{below, dawdle, one_in, trace};

/// To run what is to be done once.
const RUN: Hold = Hold::exclusive(HoldOwner::Thread);

/// The place, of one kind in each program.
pub struct Meeting {
    pub primitive: &'static dyn Primitive,
    /// Whether each actor comes.
    pub comes: Vec<bool>,
    /// The number of these that live, and have not come yet.
    comers: Count,
    known: Mutex<Known>,
}

/// The state of the place, as its visitors know it.
#[derive(Default, Debug)]
struct Known {
    /// Entries of the latch, and how often there were none any more. Never more than there are: an entry is counted after it was
    /// made, and no more before it goes.
    entries: u32,
    zeroes: u64,
    /// Parties that have asked, that passed, and that were refused or left. Of those that ended nobody knows whether they had passed.
    asked: usize,
    passed: usize,
    turned_away: usize,
    /// The state of what is done once: somebody runs; a runner has ended; it is done.
    is_running: bool,
    has_ended: bool,
    is_done: bool,
    /// The value that each who has met somebody brought, and the one that it got.
    exchanged: BTreeMap<u32, u32>,
    values: u32,
}

/// The purpose of one actor's visit.
#[derive(Clone, Copy, Debug)]
pub enum Visit {
    /// With an entry of the latch that there was then, and after so many times without.
    Passage {
        has_entries: bool,
        zeroes: u64,
    },
    Party,
    Run,
    Value(u32),
}

impl Meeting {
    pub fn random(actors: usize) -> Self {
        let kinds: [&'static dyn Primitive; 4] = [&LATCH, &BARRIER, &ONCE, &EXCHANGER];
        let comes: Vec<_> = (0..actors).map(|_| one_in(2)).collect();
        let comers = Count::new(comes.iter().filter(|comes| **comes).count() as u32);
        Self { primitive: kinds[below(4)], comes, comers, known: Mutex::default() }
    }

    pub fn place(&self) -> Place {
        place(MEETING)
    }

    fn know<T>(&self, learn: impl FnOnce(&mut Known) -> T) -> T {
        learn(&mut self.known.lock().unwrap())
    }

    fn parties(&self) -> usize {
        self.comes.iter().filter(|comes| **comes).count()
    }

    /// Returns the next visit, and what it requests.
    pub fn visit(&self) -> (Visit, Request) {
        self.know(|known| {
            let (visit, hold) = if self.primitive.is(&LATCH) {
                (Visit::Passage { has_entries: known.entries > 0, zeroes: known.zeroes }, Hold::PASSAGE)
            } else if self.primitive.is(&BARRIER) {
                known.asked += 1;
                (Visit::Party, Hold::party(self.parties() as u32))
            } else if self.primitive.is(&ONCE) {
                (Visit::Run, RUN)
            } else {
                known.values += 1;
                (Visit::Value(known.values), Hold::exchange(known.values))
            };
            (visit, Request::Hold(hold))
        })
    }

    /// Returns the time that such a visit may take.
    pub fn random_limit(&self) -> Limit {
        match below(4) {
            0 => Limit::after(Duration::from_micros([100, 2_000, 30_000][below(3)])),
            _ => Limit::Endless,
        }
    }

    /// It comes no more.
    pub fn is_left(&self) {
        self.comers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether somebody is yet to meet another.
    pub fn wants_partner(&self) -> bool {
        self.primitive.is(&EXCHANGER) && self.comers.load(Ordering::Relaxed) > 0
    }

    /// A visit was taken back.
    pub fn taken_back(&self, visit: Visit) {
        self.know(|known| known.turned_away += usize::from(matches!(visit, Visit::Party)));
    }

    /// The entry of an actor is no more from now on.
    fn exit(&self) {
        self.know(|known| {
            known.entries -= 1;
            known.zeroes += u64::from(known.entries == 0);
        });
    }

    /// The run of an actor is over from now on.
    fn stop(&self, learn: impl FnOnce(&mut Known)) {
        self.know(|known| {
            known.is_running = false;
            learn(known);
        });
    }

    /// The thread ends that runs what is done once.
    pub fn ended_inside(&self) {
        self.stop(|known| known.has_ended = true);
    }

    /// A visit is over. Returns whether the visitor has to run what is done once.
    pub fn over(&self, agent: &Agent, visit: Visit, outcome: Outcome) -> bool {
        let name = self.primitive.name();
        trace(agent, || format!("came for {visit:?}: {outcome:?}"));
        // Before the lock below, under which no thread may be let run.
        let is_marked = Word(self.place().word().load(Ordering::SeqCst)).is_abandoned();
        self.know(|known| match (visit, outcome) {
            (Visit::Passage { has_entries, zeroes }, Outcome::Granted { .. }) => {
                assert!(!has_entries || known.zeroes > zeroes, "nobody opened the {name}: {known:?}");
                reached(Reached::PassedLatch, u64::from(has_entries));
            }
            (Visit::Party, Outcome::Granted { .. }) => {
                known.passed += 1;
                reached(Reached::PassedBarrier, 1);
            }
            (Visit::Party, Outcome::Refused { found }) => {
                assert_eq!(found, 0, "all are of as many parties");
                known.turned_away += 1;
                reached(Reached::FoundBroken, 1);
            }
            (Visit::Run, Outcome::Granted { abandoned_by, .. }) => {
                assert!(!known.is_running && !known.is_done, "a second runs: {known:?}");
                // One reports the end, and all who run know of it.
                assert_eq!(is_marked, known.has_ended, "{known:?}");
                assert!(abandoned_by.is_none() || known.has_ended, "{abandoned_by:?}: {known:?}");
                known.is_running = true;
            }
            (Visit::Run, Outcome::Refused { .. }) => assert!(known.is_done, "it is not done: {known:?}"),
            (Visit::Value(own), Outcome::Granted { found, .. }) => {
                assert_eq!(known.exchanged.insert(own, found), None);
                reached(Reached::Exchanged, 1);
            }
            (_, Outcome::TimedOut) => known.turned_away += 1,
            other => panic!("at the {name}: {other:?}"),
        });
        matches!((visit, outcome), (Visit::Run, Outcome::Granted { .. }))
    }

    /// All have ended: nobody was let in alone, and each value went to one.
    pub fn expect_rest(&self) {
        self.know(|known| {
            let is_whole = known.passed == 0 || known.asked == self.parties() && known.turned_away == 0;
            assert!(is_whole, "{} parties: {known:?}", self.parties());
            for (own, other) in &known.exchanged {
                let back = known.exchanged.get(other);
                assert!(own != other && back.is_none_or(|back| back == own), "{own} met {other}: {known:?}");
            }
            let mut got: Vec<_> = known.exchanged.values().collect();
            got.sort_unstable();
            got.dedup();
            assert_eq!(got.len(), known.exchanged.len(), "a value went to two: {known:?}");
        });
    }
}

impl Actor<'_> {
    /// Does what an actor does at the meeting's place before it comes, and what keeps nobody waiting.
    pub fn join(&mut self) {
        let meeting = &self.world.meeting;
        if meeting.primitive.is(&BARRIER) {
            self.enroll(Hold::MEMBER);
        }
    }

    /// Has something that goes back when the thread ends.
    fn enroll(&mut self, hold: Hold) {
        let (meeting, engine) = (&self.world.meeting, self.world.engine);
        self.add_slot_of_meeting();
        let entered =
            engine
                .wait(&self.agent, meeting.primitive, meeting.place(), Request::Hold(hold), Limit::Once, &mut || true);
        assert!(matches!(entered, Ok(Outcome::Granted { .. })), "{entered:?}");
    }

    /// Keeps others from passing the latch for a while.
    fn close_latch(&mut self) -> Result<(), Ends> {
        let meeting = &self.world.meeting;
        self.enroll(Hold::entries(1));
        meeting.know(|known| known.entries += 1);
        dawdle(80);
        let ends = self.ends();
        meeting.exit();
        if ends {
            return Err(Ends);
        }
        let released = self.world.engine.release(&self.agent, &LATCH, meeting.place(), Hold::entries(1));
        assert_eq!(released, Ok(true));
        Ok(())
    }

    /// Runs what is done once: it ends inside, fails, or has done it.
    pub fn run_once(&mut self) -> Result<(), Ends> {
        let (meeting, engine) = (&self.world.meeting, self.world.engine);
        dawdle(6);
        if self.ends() {
            meeting.ended_inside();
            return Err(Ends);
        }
        if one_in(2) {
            meeting.stop(|_| ());
            assert_eq!(engine.release(&self.agent, &ONCE, meeting.place(), RUN), Ok(true));
        } else {
            meeting.stop(|known| known.is_done = true);
            let done = engine.change(&self.agent, &ONCE, meeting.place(), Change::Finish);
            assert!(matches!(done, Ok(Some(_))), "{done:?}");
            reached(Reached::DoneOnce, 1);
        }
        Ok(())
    }

    /// Has come, and needs no place any more.
    pub fn has_met(&mut self) {
        if self.comes_no_more() && self.world.meeting.primitive.is(&BARRIER) && one_in(2) {
            let released = self.world.engine.release(&self.agent, &BARRIER, self.world.meeting.place(), Hold::MEMBER);
            assert_eq!(released, Ok(true));
        }
    }

    /// Whether it only keeps others from passing, and has done so.
    pub fn only_closes(&mut self) -> Result<bool, Ends> {
        let closes = self.world.meeting.primitive.is(&LATCH) && one_in(2);
        if closes {
            self.comes_no_more();
            self.close_latch()?;
        }
        Ok(closes)
    }

    /// Comes, and blocks there.
    pub fn meet(&mut self) -> Result<(), Ends> {
        if self.only_closes()? {
            return Ok(());
        }
        let (meeting, engine) = (&self.world.meeting, self.world.engine);
        let (visit, request) = meeting.visit();
        let limit = meeting.random_limit();
        trace(&self.agent, || format!("comes for {visit:?}, {limit:?}"));
        match engine.wait(&self.agent, meeting.primitive, meeting.place(), request, limit, &mut self.caller()) {
            Ok(outcome) => {
                let runs = meeting.over(&self.agent, visit, outcome);
                self.has_met();
                if runs { self.run_once() } else { Ok(()) }
            }
            Err(failure) => self.failed(failure, false),
        }
    }
}

/// The main thread meets one who waits for a partner.
pub fn meet_one(world: &World, agent: &Arc<Agent>) {
    let meeting = &world.meeting;
    if !meeting.wants_partner() {
        return;
    }
    let (visit, request) = meeting.visit();
    let met = world.engine.wait(agent, &EXCHANGER, meeting.place(), request, Limit::Once, &mut || true);
    meeting.over(agent, visit, met.unwrap());
}
