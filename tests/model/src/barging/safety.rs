//! The properties that must hold in every state.

use stateright::Property;

use super::agent::{At, Hold, Id, Life, NOBODY, Stage};
use super::queue::{Waiter, Way};
use super::setting::Barging;
use super::state::{State, Wrong};

pub fn properties() -> Vec<Property<Barging>> {
    vec![
        Property::always("exclusion", |_, s: &State| exclusion(s)),
        Property::always("the flags mean what they say", |_, s: &State| s.bucket.is_some() || flags(s)),
        Property::always("no lost wake-up", |p, s| Wakeups::of(p, s).is_none_or(|w| w.somebody_comes())),
        Property::always("a busy loop holds no blocked waiter back", |p, s| {
            Wakeups::of(p, s).is_none_or(|w| w.blocked_are_served())
        }),
        Property::always("a busy loop holds no other loop back", |p, s| {
            Wakeups::of(p, s).is_none_or(|w| w.loops_are_served())
        }),
        Property::always("no offer is lost", |p, s| !p.scenario.split_offers || offers_arrive(s)),
        Property::always("nothing counts on one who is away", |_, s: &State| away_alone(s)),
        Property::always("abandonment is reported when due", |_, s: &State| abandonment(s)),
        Property::always("one warning for each death inside", |_, s: &State| warnings(s)),
        Property::always("a loop never sleeps for its own word", |_, s: &State| sleeps_for_others(s)),
        Property::always("nothing is left to the dead", |_, s: &State| no_remains(s)),
        Property::always("nobody changes places", |_, s: &State| s.ghost.wrong != Some(Wrong::WaitersChangedPlaces)),
        Property::always("lockAsync waits behind its own thread", |_, s: &State| {
            s.ghost.wrong != Some(Wrong::AsyncOvertookItsOwn)
        }),
    ]
}

/// The owner, if it runs, is the one agent that has the lock, knows it or is about to, and no longer waits for it.
fn exclusion(s: &State) -> bool {
    s.ids().filter(|id| s.agent(*id).is_running()).all(|id| {
        let agent = s.agent(id);
        let owns = s.word.owner == id;
        let granted_in_queue = agent.hold == Hold::Granted && agent.is_in_lock() && waits_blocked(s, id);
        owns == (agent.hold != Hold::No) && !granted_in_queue
    })
}

fn waits_blocked(s: &State, id: Id) -> bool {
    s.queue.find(id, Way::Blocked).is_some()
}

fn flags(s: &State) -> bool {
    let word = s.word;
    let waited_for = !s.queue.is_empty();
    let needs_flag = word.closed(true).waiters;
    // W: somebody waits, and it is not left to the fast paths.
    let waiters = !word.waiters || waited_for && needs_flag;
    // A free word that no fast path can take has W, or the one who takes it would not see the queue.
    let missed = waited_for && !word.waiters && word.owner == NOBODY && needs_flag;
    let fence = if word.reserved {
        word.owner == NOBODY && s.queue.group_size(s.reserved_for) > 0
    } else {
        s.reserved_for == NOBODY
    };
    let claims = s.ids().all(|id| !s.agent(id).group.claimed || s.queue.group_size(id) > 0);
    waiters && !missed && fence && claims
}

/// A state in which no unlock will look at the queue, so that somebody must be on the way already.
struct Wakeups<'a> {
    protocol: &'a Barging,
    state: &'a State,
}

impl<'a> Wakeups<'a> {
    fn of(protocol: &'a Barging, state: &'a State) -> Option<Self> {
        let word = state.word;
        let unseen = word.owner == NOBODY || !word.waiters || state.owner_is_marked_dead();
        let reserved = word.reserved; // its lease ends
        let queued = !state.queue.is_empty();
        let w = Wakeups { protocol, state };
        (unseen && !reserved && queued && state.bucket.is_none() && !w.a_death_is_to_follow()).then_some(w)
    }

    /// A dying agent that still waits or owns the word will hand it on as it leaves.
    fn a_death_is_to_follow(&self) -> bool {
        self.state.ids().any(|id| match self.state.agent(id).life {
            Life::Dying(Stage::Leave) => self.state.word.owner == id || self.state.queue.any_of(id).is_some(),
            Life::Dying(_) => self.state.word.owner == id,
            Life::Running | Life::Gone => false,
        })
    }

    /// A waiter that would take the lock if it were woken.
    fn is_ready(&self, waiter: &Waiter) -> bool {
        let agent = self.state.agent(waiter.agent);
        if waiter.is_blocked() { agent.is_running() && !waiter.away } else { agent.turns() }
    }

    fn is_offered(&self, id: Id) -> bool {
        if self.state.agent(id).group.parked {
            return true; // its sleep ends, and it looks
        }
        let arrives = !self.protocol.scenario.split_offers || self.state.offer_is_in_flight(id);
        self.state.agent(id).group.offered && arrives
    }

    fn blocked_comes(&self) -> bool {
        self.state.queue.iter().any(|w| w.woken && self.is_ready(w))
    }

    fn somebody_comes(&self) -> bool {
        let loop_comes = |w: &Waiter| !w.is_blocked() && self.is_ready(w) && self.is_offered(w.agent);
        let waits = self.state.queue.iter().any(|w| self.is_ready(w));
        !waits || self.blocked_comes() || self.state.queue.iter().any(loop_comes)
    }

    fn blocked_are_served(&self) -> bool {
        let waits = self.state.queue.iter().any(|w| w.is_blocked() && self.is_ready(w));
        !waits || self.blocked_comes()
    }

    fn loops_are_served(&self) -> bool {
        let left_out = |w: &Waiter| !w.is_blocked() && self.is_ready(w) && !self.is_offered(w.agent);
        self.blocked_comes() || !self.state.queue.iter().any(left_out)
    }
}

fn sleeps_for_others(s: &State) -> bool {
    s.ids().all(|id| !s.agent(id).group.parked || s.word.owner != id)
}

fn offers_arrive(s: &State) -> bool {
    s.bucket.is_some()
        || s.ids().all(|id| {
            let agent = s.agent(id);
            !agent.is_running() || !agent.group.offered || s.offer_is_in_flight(id)
        })
}

/// Neither a wake-up nor a grant goes to a thread that is in JavaScript between its slices.
fn away_alone(s: &State) -> bool {
    let granted = |w: &Waiter| s.agent(w.agent).hold == Hold::Granted;
    let counts = |w: &Waiter| w.woken || granted(w) && s.agent(w.agent).is_running();
    s.queue.iter().all(|w| !w.away || !counts(w))
        && s.ids().all(|id| s.agent(id).at != At::Away || s.agent(id).hold != Hold::Granted)
}

/// A is set exactly while data that a holder left in the middle of its work has not been repaired. (While a dead owner's
/// id stands in the word, that is the mark.)
fn abandonment(s: &State) -> bool {
    let owner_ended = s.word.owner != NOBODY && !s.agent(s.word.owner).is_running();
    owner_ended || s.word.abandoned == s.ghost.dirty
}

fn warnings(s: &State) -> bool {
    !matches!(s.ghost.wrong, Some(Wrong::WarningMissing | Wrong::WarningTwice | Wrong::WarningForgotten))
}

/// A dying agent past its leaving has neither waiters nor a grant; a gone one owns no word that somebody waits for.
fn no_remains(s: &State) -> bool {
    s.ids().all(|id| {
        let agent = s.agent(id);
        let left = !matches!(agent.life, Life::Running | Life::Dying(Stage::Leave));
        let remains = s.queue.any_of(id).is_some() || agent.hold == Hold::Granted;
        let stuck = agent.life == Life::Gone && s.word.owner == id && !s.queue.is_empty();
        !(left && remains || stuck)
    })
}
