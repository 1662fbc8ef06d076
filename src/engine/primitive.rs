//! A primitive, as the engine sees it: a pure state machine, which names no queue, no thread and no clock.
//!
//! The engine freezes a primitive's words (see [`super::section`]), asks what becomes of them, and thaws them.
//! A primitive is written in `primitives/`, as a table of transitions, and tested without threads.

use crate::agents::{AgentId, Agents};
use crate::memory::Place;
use crate::sync::Ordering;

pub use super::hold::{Counts, Hold, HoldOwner, ListedHold, Mode};

/// In which order those who wait are let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// A newcomer may take what is free, within bounds that keep it fair; an event loop that is busy holds nobody up.
    Barging,
    /// First come, first served, event loops included: a grant to a loop is final, and those behind it wait until it comes.
    Strict,
    /// A waiter is let in by a notification only, which is for the first in the queue.
    Notified,
}

/// Which of the tables of queues a primitive's waiters are in. Waiting for a notification never delays locking, and
/// threads may wait for a notification at a lock's own word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// The table of primitives with words of their own.
    Words,
    /// The table of places at which threads wait for a notification.
    Notifications,
    /// The table of primitives whose words belong to the core: it lists each hold (see [`super::listed`]).
    Listed,
    /// The table of waits that an outsider settles (see [`super::settle`]).
    Outer,
}

impl Space {
    /// All of them.
    #[cfg(feature = "audit")]
    pub(super) const ALL: [Self; 4] = [Self::Words, Self::Notifications, Self::Listed, Self::Outer];
}

/// The request of an agent that comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// To hold.
    Hold(Hold),
    /// A notification.
    Notification,
    /// A notification, unless the value is another than this.
    NotificationWhile(i64),
}

impl Request {
    /// The hold that a grant of this gives.
    pub fn hold(self) -> Option<Hold> {
        match self {
            Self::Hold(hold) => Some(hold),
            Self::Notification | Self::NotificationWhile(_) => None,
        }
    }
}

/// A snapshot of a primitive's words. Only the primitive reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State(pub u64);

/// The words hold what this package did not write, or waiters of another primitive are queued for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corrupt;

/// The decision on a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It is granted, and this is the state now.
    Granted(State),
    /// It has to wait.
    Wait,
    /// There is nothing to wait for.
    Refused,
}

/// The facts that the engine knows of a primitive, by which the primitive can tell values that it never wrote.
pub struct Facts<'a> {
    /// Whether anybody is queued.
    pub is_queued: bool,
    /// Whether it is reserved for an event loop.
    pub is_reserved: bool,
    /// The agents that live, and that ever lived.
    pub agents: &'a Agents,
}

/// The state as a thread that spins sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Glance {
    /// Whether one compare-exchange could take it.
    pub is_free: bool,
    /// Whether those who share it are in: a section lets another of them in, or tells it to queue.
    pub is_shared: bool,
    /// The same for as long as nobody takes or releases it: who holds it alone, or how much of it is held; 0 for nobody.
    pub held: u32,
    /// Whether a release must look at the queue.
    pub is_waiting: bool,
    /// Whether it is kept for an event loop; never, if the words do not tell.
    pub is_reserved: bool,
}

/// The agents that a waiter waits for, as the deadlock search sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blockers {
    /// The agent whose id the words have; 0 for nobody.
    Owner(AgentId),
    /// The agents in whose registers of holds it stands, and the waiters ahead.
    Holders,
    /// Anybody may end the wait.
    Anybody,
}

/// The properties of a primitive, whatever its state.
#[derive(Debug)]
pub struct About {
    /// The name of its class, in messages.
    pub name: &'static str,
    /// In which order its waiters are let in.
    pub order: Order,
    /// In which table they are.
    pub space: Space,
    /// The mode, in messages, of holds whose holders are in the register of holds, and not in the words.
    pub registered: Option<&'static str>,
}

/// A change of a state beside requests and releases. Each primitive knows some of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// A newcomer may pass.
    Set,
    /// As it was in the beginning.
    Reset,
    /// The waiters and newcomers are refused, if so many were to come.
    Break(u32),
    /// Adds so many of what is counted; takes them away, if negative.
    Add {
        /// The number of them.
        count: i32,
        /// The number that there are in all, as whoever adds has it.
        of: u32,
    },
    /// The agent has done what it runs.
    Finish,
    /// The agent's exclusive hold is shared from now on.
    Downgrade(HoldOwner),
    /// The agent's shared hold, the only one, is exclusive from now on.
    Upgrade(HoldOwner),
    /// The mark that a holder's thread ended inside goes.
    MarkConsistent,
}

/// A state machine that the engine drives. Its states hold W, the bit that makes every fast path fail, as it was before
/// the section.
pub trait Primitive: Sync {
    /// Returns its properties. Two primitives are the same if these are.
    fn about(&self) -> &'static About;

    /// Reads the words and makes every fast path fail until [`Primitive::thaw`]; leaves alone what it did not write.
    /// Acquire: pairs with the release by which the value was written.
    fn freeze(&self, place: Place, facts: &Facts<'_>) -> Result<State, Corrupt>;

    /// Writes the words; fast paths work again, unless somebody is queued whom they may not pass by.
    /// Release: what was written under the section is seen by the next to get in.
    fn thaw(&self, place: Place, frozen: State, state: State, is_queued: bool);

    /// Reads the words, which may change at once: the first, unless a primitive has more.
    fn read(&self, place: Place) -> State {
        State(u64::from(place.word().load(Ordering::Acquire)))
    }

    /// The state once somebody is queued for whom `enter` decided so.
    fn queued(&self, state: State, _: Option<Hold>) -> State {
        state
    }

    /// The state once a waiter has left without what it waited for.
    fn left(&self, state: State) -> State {
        state
    }

    /// Whether there is nothing to wait for any more: all waiters are refused.
    fn refuses(&self, _: State) -> bool {
        false
    }

    /// Decides on a request of `agent`, which comes now. In strict order nobody who would have to wait overtakes those who
    /// are queued.
    fn enter(&self, state: State, request: Request, agent: AgentId, _is_queued: bool) -> Decision {
        match request {
            Request::Hold(hold) if !self.refuses(state) => {
                self.grant(state, hold, agent).map_or(Decision::Wait, Decision::Granted)
            }
            _ => Decision::Refused,
        }
    }

    /// The state in which the waiter `agent` has what it asked for; `None` if it has to wait on.
    fn grant(&self, state: State, hold: Hold, agent: AgentId) -> Option<State>;

    /// The state after a release; `None` if `agent` does not hold it so.
    fn release(&self, state: State, hold: Hold, agent: AgentId) -> Option<State>;

    /// Whether newcomers and several waiters may each get a part of what is free: the words do not tell whether it is enough for
    /// those who wait, nor whether a part is kept for an event loop.
    fn is_divided(&self) -> bool {
        false
    }

    /// Whether others can have released what is registered already: then whoever gives it up has it no more, though `release` finds
    /// nothing.
    fn may_be_gone(&self) -> bool {
        false
    }

    /// Returns the agent that holds it alone; 0 for nobody, or if the words do not tell.
    fn owner(&self, _: State) -> AgentId {
        0
    }

    /// The state after a change by `agent`; `None` if that cannot be.
    fn change(&self, _: State, _: Change, _: AgentId) -> Option<State> {
        None
    }

    /// Two numbers that a state shows to whoever comes, queues, is refused, or is let in: such as how many have come, and how many
    /// are to come. Who is let in finds the state as it was before that.
    fn found(&self, _: State) -> [u32; 2] {
        [0; 2]
    }

    /// The state once the thread of somebody with these holds in its register has ended.
    fn given_back(&self, state: State, _: Counts) -> State {
        state
    }

    /// The state once the thread of the owner has ended inside.
    fn ended(&self, state: State) -> State {
        state
    }

    /// The state by which the next to come knows that the thread of `agent` ended inside, when nobody waits who could report it.
    fn remember_ended(&self, state: State, _: AgentId) -> State {
        state
    }

    /// Returns the agent that loses it, and is reported, if its thread has ended: the owner, or the one that
    /// [`Primitive::remember_ended`] left.
    fn remembered(&self, state: State) -> AgentId {
        self.owner(state)
    }

    /// Whether W was set: then nothing but a section can have changed the owner since the last one.
    fn is_waiting(&self, state: State) -> bool;

    /// The state in which it is kept for an event loop that will come for `hold`; `None` if that would help nobody.
    fn reserve(&self, _: State, _: Hold) -> Option<State> {
        None
    }

    /// The state without the reservation for `hold`.
    fn unreserve(&self, state: State, _: Hold) -> State {
        state
    }

    /// For a thread that spins before it queues for `hold`; `None` if that never pays.
    fn glance(&self, _: Place, _: Hold) -> Option<Glance> {
        None
    }

    /// The fast path of `enter`: one compare-exchange.
    fn try_enter(&self, _: Place, _: Request, _: AgentId) -> bool {
        false
    }

    /// Returns the agents that a waiter waits for. A lock, which only its holders can free, says who they are.
    fn blockers(&self, _: State) -> Blockers {
        Blockers::Anybody
    }
}

impl dyn Primitive + '_ {
    /// The name of its class, in messages.
    pub fn name(&self) -> &'static str {
        self.about().name
    }

    /// In which order its waiters are let in.
    pub fn order(&self) -> Order {
        self.about().order
    }

    /// In which table they are.
    pub fn space(&self) -> Space {
        self.about().space
    }

    /// Whether it is the same as the other.
    pub fn is(&self, other: &dyn Primitive) -> bool {
        std::ptr::eq(self.about(), other.about())
    }

    /// Whether the register of holds says who has such a hold: the words tell of those that nobody else can have meanwhile.
    pub fn is_registered(&self, hold: Hold) -> bool {
        self.about().registered.is_some() && !hold.is_exclusive() && !hold.is_passage()
    }

    /// The mode of what a waiter asks for, in messages.
    pub fn mode_of(&self, hold: Option<Hold>) -> &'static str {
        match hold {
            Some(hold) if hold.is_exclusive() => "exclusive",
            Some(hold) if hold.is_shared() => "shared",
            Some(Hold::Counted { .. }) => self.about().registered.unwrap_or_default(),
            _ => "passage",
        }
    }
}
