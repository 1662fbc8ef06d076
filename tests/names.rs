//! Named locks, step by step: order, modes, thefts, ends of threads, and what a name leaves behind.
#![cfg(not(loom))]

mod common;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, process, thread};

use common::{PROMPT, count_wakes};
use sablock::agents::{AgentId, Wake};
use sablock::clients::{ClientLoop, Clients, Name, NameHold, NameView, Names, RequestHandle, is_of_store};
use sablock::engine::{Failure, Hold, HoldOwner, Limit, Mode, Outcome, Reply, Request};
use sablock::files::{Asker, Directory, LockMode, NamedFile};
use sablock::primitives::mutex::MUTEX;
use sablock::primitives::named::NAMED;

const GRANTED: Outcome = Outcome::GRANTED;

/// A world with names.
struct World {
    base: &'static common::World,
    names: &'static Names<'static>,
}

impl World {
    fn new() -> Self {
        Self::of(common::World::new(false))
    }

    fn of(base: common::World) -> Self {
        let base: &'static common::World = Box::leak(Box::new(base));
        Self { base, names: Box::leak(Box::new(Names::new(&base.engine))) }
    }

    fn event_loop(&self) -> ClientLoop<'static> {
        self.event_loop_of(0)
    }

    fn event_loop_of(&self, thread: u32) -> ClientLoop<'static> {
        ClientLoop::with_clients(&self.base.engine, self.base.agent(thread), Clients::new(self.names))
    }
}

impl Deref for World {
    type Target = common::World;

    fn deref(&self) -> &common::World {
        self.base
    }
}

fn name(text: &str) -> Name {
    Name::new(0, &name_units(text))
}

fn name_units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

fn ask(waits: &mut ClientLoop<'_>, text: &str, mode: Mode, limit: Limit) -> (RequestHandle, Reply) {
    waits.request_name(name(text), mode, false, limit).unwrap()
}

/// The number of a request among all of its thread, by which its hold is shown.
fn generation(request: &RequestHandle) -> u32 {
    let Hold::Listed(hold) = request.hold else { panic!("{:?}", request.hold) };
    hold.request.generation
}

/// A request that is granted at once.
fn take(waits: &mut ClientLoop<'_>, text: &str, mode: Mode) -> u32 {
    let (ticket, reply) = ask(waits, text, mode, Limit::Endless);
    assert_eq!(reply, Reply::Now(GRANTED));
    ticket.number
}

/// A request that has to wait: its number, and the token of its wait.
fn pend(waits: &mut ClientLoop<'_>, text: &str, mode: Mode) -> (u32, u32) {
    let (ticket, reply) = ask(waits, text, mode, Limit::Endless);
    let Reply::Pending { token, .. } = reply else { panic!("{reply:?}, and nothing to wait for") };
    (ticket.number, token)
}

/// The next wait that is over, which was granted.
fn granted(waits: &mut ClientLoop<'_>) -> Option<(u32, Option<AgentId>)> {
    let settled = waits.next_settled()?;
    let Ok(Outcome::Granted { abandoned_by, .. }) = settled.outcome else { panic!("{settled:?}") };
    Some((settled.token, abandoned_by))
}

/// Returns the holders and waiters: name, mode, whether it is held.
fn seen(world: &World) -> Vec<(String, Mode, bool)> {
    let row = |view: NameView| (String::from_utf16(view.name).unwrap(), view.mode, view.held.is_some());
    world.names.query(0).iter().map(row).collect()
}

fn row(text: &str, mode: Mode, is_held: bool) -> (String, Mode, bool) {
    (text.into(), mode, is_held)
}

use Mode::{Exclusive, Shared};

#[test]
fn names_are_served_in_order_and_sharers_next_to_each_other_go_in_together() {
    let world = &World::new();
    let [mut holder, mut first, mut second] = [0; 3].map(|_| world.event_loop());
    let held = take(&mut holder, "a", Exclusive);
    let sharing = [pend(&mut first, "a", Shared), pend(&mut second, "a", Shared)];
    let alone = pend(&mut first, "a", Exclusive);
    let late = pend(&mut second, "a", Shared);
    assert_eq!(granted(&mut first), None);
    assert!(holder.release_name(held).unwrap());
    assert_eq!((granted(&mut first), granted(&mut first)), (Some((sharing[0].1, None)), None));
    assert_eq!((granted(&mut second), granted(&mut second)), (Some((sharing[1].1, None)), None));
    assert_eq!(
        seen(world),
        [row("a", Shared, true), row("a", Shared, true), row("a", Exclusive, false), row("a", Shared, false)]
    );
    assert_eq!(ask(&mut holder, "a", Shared, Limit::Once).1, Reply::Now(Outcome::TimedOut), "somebody waits");
    assert!(first.release_name(sharing[0].0).unwrap());
    assert_eq!(granted(&mut first), None, "one shares it still");
    assert!(second.release_name(sharing[1].0).unwrap());
    assert_eq!((granted(&mut second), granted(&mut first)), (None, Some((alone.1, None))));
    assert!(first.release_name(alone.0).unwrap());
    assert_eq!(granted(&mut second), Some((late.1, None)));
    assert!(second.release_name(late.0).unwrap());
    assert_eq!(seen(world), []);
}

#[test]
fn a_hold_is_released_once_and_by_its_own_request_only() {
    let world = &World::new();
    let [mut one, mut other] = [0; 2].map(|_| world.event_loop());
    let held = take(&mut one, "a", Shared);
    let beside = take(&mut one, "a", Shared);
    assert!(one.release_name(held).unwrap());
    assert!(!one.release_name(held).unwrap(), "it is over");
    assert!(!other.release_name(beside).unwrap(), "a number of another thread");
    assert_eq!(seen(world), [row("a", Shared, true)]);
    assert!(one.release_name(beside).unwrap());
}

#[test]
fn fences_grow_whatever_the_clock_says() {
    let world = World::new();
    assert_eq!([100, 40, 200].map(|now| world.names.fence(now)), [100, 101, 200]);
}

#[test]
fn the_number_of_a_name_that_was_let_go_stays_taken() {
    let world = &World::new();
    let [mut one, mut other] = [0; 2].map(|_| world.event_loop());
    let held = take(&mut one, "a", Exclusive);
    assert!(one.let_go_of_name(held).unwrap());
    take(&mut other, "a", Exclusive);
    assert!(!one.let_go_of_name(held).unwrap(), "it is another's");
    assert_ne!(take(&mut one, "b", Exclusive), held);
    assert!(!one.release_name(held).unwrap());
    assert!(!one.let_go_of_name(held).unwrap(), "it is over");
}

#[test]
fn a_name_that_is_given_back_goes_on_unmarked_with_the_report_that_came_with_it() {
    let world = &World::new();
    let [mut doomed, mut waits, mut next] = [0; 3].map(|_| world.event_loop());
    let ended = doomed.agent().id;
    take(&mut doomed, "marked", Exclusive);
    doomed.end();
    for (text, report) in [("marked", Some(ended)), ("free", None)] {
        let (ticket, reply) = ask(&mut waits, text, Exclusive, Limit::Once);
        assert_eq!(reply, Reply::Now(Outcome::granted(report)));
        waits.give_back_name(ticket.number, report);
        assert!(waits.request(ticket.number).is_none());
        let (ticket, reply) = ask(&mut next, text, Exclusive, Limit::Once);
        assert_eq!(reply, Reply::Now(Outcome::granted(report)));
        assert_eq!(next.is_name_abandoned(ticket.number), report.is_some());
    }
}

#[test]
fn spaces_keep_equal_names_apart() {
    let world = &World::new();
    let mut waits = world.event_loop();
    let (first, second) = (world.names.space("1:2"), world.names.space("1:3"));
    assert_eq!((first, world.names.space("1:2")), (1, 1));
    assert!(is_of_store(world.names.space("store:1")) && ![0, first, second].into_iter().any(is_of_store));
    for space in [0, first, second, 1 << 16] {
        let (_, reply) = waits.request_name(Name::new(space, &[97]), Exclusive, false, Limit::Once).unwrap();
        assert_eq!(reply, Reply::Now(GRANTED));
        assert_eq!(world.names.query(space).iter().len(), 1);
    }
}

#[test]
fn whoever_loses_a_name_is_told_and_can_release_nothing_of_the_thief() {
    let world = &World::new();
    let [mut victim, mut thief, mut waiting] = [0; 3].map(|_| world.event_loop());
    let sharing = [take(&mut victim, "a", Shared), take(&mut victim, "a", Shared)];
    let pending = pend(&mut waiting, "a", Exclusive);
    let wakes = count_wakes(victim.agent());
    let (stolen, abandoned_by) = thief.steal_name(name("a")).unwrap();
    assert_eq!((abandoned_by, wakes.load(Ordering::SeqCst)), (None, 1));
    assert!(thief.is_name_abandoned(stolen.number));
    assert_eq!(seen(world), [row("a", Exclusive, true), row("a", Exclusive, false)]);
    assert!(!victim.release_name(sharing[0]).unwrap(), "it finds out by itself");
    assert_eq!(victim.next_settled(), None);
    assert_eq!((victim.next_stolen(), victim.next_stolen()), (Some(sharing[1]), None));
    assert!(victim.request(sharing[1]).is_none());
    assert!(!victim.mark_name_consistent(sharing[1]).unwrap());
    assert_eq!(granted(&mut waiting), None);
    assert!(thief.mark_name_consistent(stolen.number).unwrap());
    assert!(thief.release_name(stolen.number).unwrap());
    assert_eq!(granted(&mut waiting), Some((pending.1, None)));
    assert!(!waiting.is_name_abandoned(pending.0));
}

#[test]
fn thefts_are_told_in_their_order_and_who_lost_a_name_cannot_go_in_with_it() {
    let world = &World::new();
    let [mut victim, mut thief] = [0; 2].map(|_| world.event_loop());
    let texts = ["b", "a", "c"];
    let held = texts.map(|text| take(&mut victim, text, Exclusive));
    let last = victim.request(held[2]).unwrap();
    assert!(victim.note_in(last, true));
    for text in texts {
        thief.steal_name(name(text)).unwrap();
    }
    assert!(!victim.note_in(last, true), "it is the thief's");
    assert_eq!(victim.next_settled(), None);
    assert_eq!([(); 4].map(|()| victim.next_stolen()), [Some(held[0]), Some(held[1]), Some(held[2]), None]);
}

#[test]
fn each_view_says_whose_a_name_is_in_which_space_and_for_how_long() {
    let world = &World::new();
    let [mut first, mut second, mut third] = [7, 8, 9].map(|thread| world.event_loop_of(thread));
    let here = |waits: &mut ClientLoop<'static>, text, is_part, limit| {
        waits.request_name(Name::new(5, &name_units(text)), Exclusive, is_part, limit).unwrap().0
    };
    let held = here(&mut first, "held", false, Limit::Endless);
    let part = here(&mut second, "part", true, Limit::Endless);
    here(&mut third, "held", false, Limit::Endless);
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(2) {
        thread::yield_now();
    }
    let views = world.names.query(5);
    let seen = |view: NameView| (String::from_utf16(view.name).unwrap(), view.thread, view.held.is_some());
    let expected = [("held".into(), 7, true), ("part".into(), 8, false), ("held".into(), 9, false)];
    assert_eq!(
        views.iter().map(seen).collect::<Vec<_>>(),
        expected,
        "a part of several is awaited until all are there"
    );
    assert!(views.iter().next().unwrap().held >= Some(Duration::from_millis(2)));

    let queued = world.names.queued();
    let seen = queued.iter().map(|queued| (queued.space, queued.holders[0].thread, queued.waiters[0].thread));
    assert_eq!(seen.collect::<Vec<_>>(), [(5, 7, 9)]);
    let of = |request: &RequestHandle| world.names.name_of(request.place.byte_offset).map(Vec::from);
    assert_eq!([of(&held), of(&part)], ["held", "part"].map(|text| Some(name_units(text))));
    assert_eq!(world.names.name_of(usize::MAX), None);
}

#[test]
fn who_steals_from_a_thread_that_ended_takes_its_report_once() {
    let world = &World::new();
    let [mut doomed, mut thief] = [0; 2].map(|_| world.event_loop());
    let ended = doomed.agent().id;
    take(&mut doomed, "a", Exclusive);
    doomed.end();
    let (stolen, abandoned_by) = thief.steal_name(name("a")).unwrap();
    assert_eq!((abandoned_by, thief.is_name_abandoned(stolen.number)), (Some(ended), true));
    assert!(thief.mark_name_consistent(stolen.number).unwrap());
    assert!(thief.release_name(stolen.number).unwrap());
    let next = take(&mut thief, "a", Exclusive);
    assert!(!thief.is_name_abandoned(next), "it is repaired");
    assert!(thief.release_name(next).unwrap());
    assert_eq!(seen(world), []);
}

#[test]
fn a_late_word_of_a_theft_does_not_mean_the_next_request_of_that_number() {
    let world = &World::new();
    let [mut victim, mut thief] = [0; 2].map(|_| world.event_loop());
    let held = take(&mut victim, "a", Exclusive);
    let (stolen, _) = thief.steal_name(name("a")).unwrap();
    assert!(!victim.mark_name_consistent(held).unwrap());
    assert!(thief.is_name_abandoned(stolen.number), "nobody who holds it has repaired anything");
    assert!(!victim.release_name(held).unwrap());
    assert_eq!(take(&mut victim, "b", Exclusive), held, "the number is used again");
    assert_eq!(victim.next_settled(), None);
    assert_eq!(victim.next_stolen(), None);
    assert!(victim.release_name(held).unwrap());
}

#[test]
fn what_an_ended_thread_held_alone_goes_on_marked_and_what_it_shared_unmarked() {
    let world = &World::new();
    let [mut doomed, mut next] = [0; 2].map(|_| world.event_loop());
    let ended = doomed.agent().id;
    take(&mut doomed, "alone", Exclusive);
    take(&mut doomed, "shared", Shared);
    take(&mut doomed, "nobody waits", Exclusive);
    let alone = pend(&mut next, "alone", Exclusive);
    let shared = pend(&mut next, "shared", Exclusive);
    doomed.end();
    let mut got = [granted(&mut next).unwrap(), granted(&mut next).unwrap()];
    got.sort_unstable();
    assert_eq!(got, [(alone.1, Some(ended)), (shared.1, None)]);
    assert_eq!((next.is_name_abandoned(alone.0), next.is_name_abandoned(shared.0)), (true, false));
    let (ticket, reply) = ask(&mut next, "nobody waits", Shared, Limit::Once);
    assert_eq!(reply, Reply::Now(Outcome::granted(Some(ended))));
    assert!(next.is_name_abandoned(ticket.number));
    assert!(!next.mark_name_consistent(ticket.number).unwrap(), "it is shared");
}

#[test]
fn a_grant_that_an_ended_thread_never_knew_of_passes_on_with_the_report_that_came_with_it() {
    let world = &World::new();
    let [mut doomed, mut never_knew, mut next] = [0; 3].map(|_| world.event_loop());
    let ended = doomed.agent().id;
    take(&mut doomed, "a", Exclusive);
    pend(&mut never_knew, "a", Exclusive);
    let (number, token) = pend(&mut next, "a", Exclusive);
    doomed.end();
    assert_eq!(granted(&mut next), None, "granted to the one before");
    never_knew.end();
    assert_eq!(granted(&mut next), Some((token, Some(ended))));
    assert!(next.mark_name_consistent(number).unwrap());
    assert!(next.release_name(number).unwrap());
    assert_eq!(take(&mut next, "a", Exclusive), number);
    assert!(!next.is_name_abandoned(number));
}

#[test]
fn a_granted_name_of_which_the_loop_does_not_know_can_be_taken_back() {
    let world = &World::new();
    let [mut doomed, mut waits, mut next] = [0; 3].map(|_| world.event_loop());
    let ended = doomed.agent().id;
    take(&mut doomed, "a", Exclusive);
    let (number, token) = pend(&mut waits, "a", Exclusive);
    doomed.end();
    assert_eq!(seen(world), [row("a", Exclusive, true)]);
    assert!(waits.cancel(token).is_some());
    assert_eq!(seen(world), []);
    assert!(waits.request(number).is_none() && waits.cancel(token).is_none());
    // With the report that nobody has made.
    let (ticket, reply) = ask(&mut next, "a", Exclusive, Limit::Once);
    assert_eq!(reply, Reply::Now(Outcome::granted(Some(ended))));
    // The notice that is still there means nobody else.
    let (_, other) = pend(&mut waits, "a", Exclusive);
    assert_eq!((other, granted(&mut waits)), (token, None));
    assert!(next.release_name(ticket.number).unwrap());
    assert_eq!(granted(&mut waits), Some((other, None)));
}

#[test]
fn a_thread_that_ends_before_its_code_is_in_leaves_no_mark() {
    let world = &World::new();
    let [mut doomed, mut next] = [0; 2].map(|_| world.event_loop());
    for (text, is_in) in [("in", true), ("not in", false)] {
        let number = take(&mut doomed, text, Exclusive);
        let ticket = doomed.request(number).unwrap();
        doomed.note_in(ticket, false);
        doomed.note_in(ticket, is_in);
    }
    let (part, reply) = doomed.request_name(name("a part"), Exclusive, true, Limit::Once).unwrap();
    assert_eq!(reply, Reply::Now(Outcome::granted(None)));
    assert!(!world.names.holders(&name("a part"))[0].is_in);
    doomed.note_in(part, true);
    assert!(world.names.holders(&name("a part"))[0].is_in);
    doomed.note_in(part, false);
    // Granted as the thread ends, which has not collected it.
    let keeps = take(&mut next, "pending", Exclusive);
    assert!(matches!(
        doomed.request_name(name("pending"), Exclusive, true, Limit::Endless),
        Ok((_, Reply::Pending { .. }))
    ));
    assert!(next.release_name(keeps).unwrap());
    assert!(!world.names.holders(&name("pending"))[0].is_in);
    doomed.end();
    let marks = ["in", "not in", "a part", "pending"].map(|text| {
        let (ticket, reply) = ask(&mut next, text, Exclusive, Limit::Once);
        assert!(matches!(reply, Reply::Now(Outcome::Granted { .. })));
        next.is_name_abandoned(ticket.number)
    });
    assert_eq!(marks, [true, false, false, false]);
}

#[test]
fn a_name_is_held_since_its_code_is_in() {
    let world = &World::new();
    let mut waits = world.event_loop();
    let (part, _) = waits.request_name(name("a part"), Exclusive, true, Limit::Once).unwrap();
    thread::sleep(Duration::from_millis(20));
    let before = Instant::now();
    waits.note_in(part, true);
    let held = world.names.holders(&name("a part"))[0].held;
    assert!(held <= before.elapsed(), "{held:?}");
    waits.end();
}

#[test]
fn whose_thread_has_ended_is_shown_no_more() {
    let world = &World::new();
    let [mut ended, mut waits] = [0; 2].map(|_| world.event_loop());
    for text in ["a", "b"] {
        take(&mut ended, text, Shared);
    }
    take(&mut waits, "b", Shared);
    // The end of the agent, before that of its requests.
    world.engine.thread_ended(ended.agent().id);
    assert_eq!(seen(world), [row("b", Shared, true)]);
    assert_eq!(["a", "b"].map(|text| world.names.holders(&name(text)).len()), [0, 1]);
    ended.end();
    assert_eq!(seen(world), [row("b", Shared, true)]);
}

#[test]
fn a_name_that_somebody_waits_for_is_seen_with_its_holders_and_waiters() {
    let world = &World::new();
    let [mut one, mut other] = [0; 2].map(|_| world.event_loop());
    let shared = take(&mut one, "free to share", Shared);
    let first = take(&mut one, "a", Shared);
    let first = one.request(first).unwrap();
    one.note_in(first, false);
    let second = take(&mut other, "a", Shared);
    let second = other.request(second).unwrap();
    assert_eq!(world.names.queued().len(), 0);
    let (_, token) = pend(&mut other, "a", Exclusive);
    let queued = world.names.queued();
    assert_eq!(queued.iter().map(|queued| &*queued.name).collect::<Vec<_>>(), [[97]]);
    assert_eq!(queued[0].waiters.len(), 1);
    for holders in [&queued[0].holders, &world.names.holders(&name("a"))] {
        let seen = |holder: &NameHold| (holder.number, holder.mode, holder.is_in);
        let expected = [(generation(&first), Shared, false), (generation(&second), Shared, true)];
        assert_eq!(holders.iter().map(seen).collect::<Vec<_>>(), expected);
    }
    // The last of three to come moves up in the list when the first leaves.
    let third = take(&mut other, "free to share", Shared);
    let fourth = take(&mut other, "free to share", Shared);
    assert!(one.release_name(shared).unwrap());
    let holders = world.names.holders(&name("free to share"));
    let expected = [third, fourth].map(|number| generation(&other.request(number).unwrap()));
    assert_eq!(holders.iter().map(|holder| holder.number).collect::<Vec<_>>(), expected, "as they came");
    other.cancel(token);
    assert_eq!(world.names.queued().len(), 0);
}

#[test]
fn a_name_is_forgotten_when_nobody_holds_it_waits_for_it_or_has_to_know_that_it_is_marked() {
    let world = &World::new();
    let [mut one, mut other] = [0; 2].map(|_| world.event_loop());
    for index in 0..3_000 {
        let text = format!("name {index}");
        let held = take(&mut one, &text, Exclusive);
        assert_eq!(ask(&mut other, &text, Exclusive, Limit::Once).1, Reply::Now(Outcome::TimedOut));
        let (_, token) = pend(&mut other, &text, Exclusive);
        assert!(other.cancel(token).is_some());
        assert!(one.release_name(held).unwrap());
    }
    assert_eq!(world.names.known(), 0);
    let held = take(&mut one, "marked", Exclusive);
    one.end();
    assert_eq!(world.names.known(), 1);
    let (ticket, _) = ask(&mut other, "marked", Exclusive, Limit::Once);
    assert!(other.mark_name_consistent(ticket.number).unwrap());
    assert!(other.release_name(ticket.number).unwrap());
    assert_eq!(world.names.known(), 0, "{held}");
    let mut ended = world.event_loop();
    for index in 0..100 {
        take(&mut ended, &format!("shared {index}"), Shared);
    }
    ended.end();
    assert_eq!(world.names.known(), 0, "of a thread that ended");
    #[cfg(feature = "audit")]
    assert_eq!(world.engine.audit(), Vec::<String>::new());
}

#[test]
fn a_name_is_one_lock_for_all_who_have_a_request_for_it_though_others_leave() {
    let world = &World::new();
    let [mut one, mut other] = [0; 2].map(|_| world.event_loop());
    // Nobody holds it or waits for it yet.
    let first = one.make_request(name("a"), Exclusive, false);
    let left = other.make_request(name("a"), Exclusive, false);
    other.forget_request(left);
    let next = other.make_request(name("a"), Exclusive, false);
    assert_eq!(next.place.address(), first.place.address());
    one.forget_request(first);
    other.forget_request(next);
    assert_eq!(world.names.known(), 0);
}

#[test]
fn a_request_whose_time_is_over_leaves_the_queue_and_is_over() {
    let world = &World::new();
    let [mut holder, mut late] = [0; 2].map(|_| world.event_loop());
    let held = take(&mut holder, "a", Exclusive);
    let (ticket, reply) = ask(&mut late, "a", Exclusive, Limit::after(PROMPT));
    assert!(matches!(reply, Reply::Pending { .. }));
    world.clock.expire(&world.engine);
    assert_eq!(late.next_settled().unwrap().outcome, Ok(Outcome::TimedOut));
    assert!(late.request(ticket.number).is_none());
    assert!(holder.release_name(held).unwrap());
    assert_eq!(seen(world), []);
}

#[test]
fn a_thread_that_blocks_for_what_its_own_loop_holds_learns_of_it() {
    for (held, asked) in [(Shared, Exclusive), (Exclusive, Shared), (Exclusive, Exclusive)] {
        let world = &World::of(common::World::with_slices(false));
        let mut waits = world.event_loop();
        take(&mut waits, "a", held);
        let ticket = waits.make_request(name("a"), asked, false);
        let agent = Arc::clone(waits.agent());
        let request = Request::Hold(ticket.hold);
        let mut pauses = 0;
        let mut is_patient = || {
            pauses += 1;
            pauses < 20
        };
        let blocked = world.engine.wait(&agent, &NAMED, ticket.place, request, Limit::Endless, &mut is_patient);
        let Err(Failure::Deadlock(cycle)) = blocked else { panic!("{held:?}, {asked:?}: {blocked:?}") };
        assert_eq!(world.names.name_of(cycle[0].byte_offset).as_deref(), Some(&[97][..]));
        waits.forget_request(ticket);
    }
}

#[test]
fn a_thread_that_waits_to_share_what_its_own_loop_waits_to_share_goes_in_with_it() {
    for (between, asked, is_deadlock) in
        [(None, Shared, false), (Some(Exclusive), Shared, true), (None, Exclusive, true)]
    {
        let world = &World::of(common::World::with_slices(false));
        let [mut holder, mut waits, mut other] = [0; 3].map(|_| world.event_loop());
        let held = take(&mut holder, "a", Exclusive);
        let (_, token) = pend(&mut waits, "a", Shared);
        if let Some(mode) = between {
            pend(&mut other, "a", mode);
        }
        let ticket = waits.make_request(name("a"), asked, false);
        let agent = Arc::clone(waits.agent());
        let request = Request::Hold(ticket.hold);
        let mut pauses = 0;
        let mut release_at_first = || {
            pauses += 1;
            assert!(pauses < 100, "it hangs");
            pauses > 1 || holder.release_name(held).unwrap()
        };
        let found = world.engine.wait(&agent, &NAMED, ticket.place, request, Limit::Endless, &mut release_at_first);
        assert_eq!(matches!(found, Err(Failure::Deadlock(_))), is_deadlock, "{found:?}");
        if !is_deadlock {
            assert_eq!(found.unwrap(), GRANTED);
            assert_eq!(waits.next_settled().map(|settled| settled.token), Some(token));
        }
    }
}

#[test]
fn a_hold_of_a_loop_with_names_that_its_code_never_knew_of_passes_on_unmarked() {
    let world = &World::new();
    let (holder, mut ending) = (world.agent(0), world.event_loop());
    assert_eq!(world.lock(&holder, Limit::Once), GRANTED);
    let hold = Request::Hold(Hold::exclusive(HoldOwner::Guard));
    assert!(matches!(ending.wait(&MUTEX, world.place(), hold, Limit::Endless), Ok(Reply::Pending { .. })));
    world.unlock(&holder);
    assert!(granted(&mut ending).is_some());
    ending.end();
    assert_eq!(world.value(), 0);
    assert_eq!(world.lock(&holder, Limit::Once), GRANTED);
}

#[test]
fn a_blocked_thread_is_let_in_in_its_turn() {
    let world = &World::new();
    let mut waits = world.event_loop();
    let held = take(&mut waits, "a", Exclusive);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut own = world.event_loop();
            let ticket = own.make_request(name("a"), Exclusive, false);
            let (agent, request) = (Arc::clone(own.agent()), Request::Hold(ticket.hold));
            let limit = Limit::after(PROMPT);
            let outcome = world.engine.wait(&agent, &NAMED, ticket.place, request, limit, &mut || true);
            assert_eq!(outcome.unwrap(), GRANTED);
            assert!(own.release_name(ticket.number).unwrap());
        });
        world.until("the other waits", |_| seen(world).len() == 2);
        let (number, token) = pend(&mut waits, "a", Exclusive);
        assert!(waits.release_name(held).unwrap());
        let mut last = granted(&mut waits);
        while last.is_none() {
            thread::yield_now();
            last = granted(&mut waits);
        }
        assert_eq!(last, Some((token, None)));
        assert!(waits.release_name(number).unwrap());
    });
}

#[test]
fn a_request_without_its_name_is_forgotten_however_it_came_to_that() {
    type End = fn(&mut ClientLoop<'static>, u32, &World);
    // Whether it is granted before, and how it ends then.
    let ends: [(&str, bool, End); 6] = [
        ("taken back", false, |waits, token, _| assert!(waits.cancel(token).is_some())),
        ("taken back once granted", true, |waits, token, _| assert!(waits.cancel(token).is_some())),
        ("dropped", false, |waits, token, _| waits.drop_wait(token)),
        ("dropped once granted", true, |waits, token, _| waits.drop_wait(token)),
        ("refused", true, |waits, token, _| {
            assert_eq!(granted(waits), Some((token, None)));
            waits.refuse();
        }),
        ("out of time", false, |waits, _, world| {
            world.clock.expire(&world.engine);
            assert_eq!(waits.next_settled().map(|settled| settled.outcome), Some(Ok(Outcome::TimedOut)));
        }),
    ];
    for mode in [Exclusive, Shared] {
        for (what, is_granted, end) in ends {
            let world = &World::new();
            let [mut holder, mut waits] = [0; 2].map(|_| world.event_loop());
            let held = take(&mut holder, "a", Exclusive);
            let (request, reply) = ask(&mut waits, "a", mode, Limit::after(PROMPT));
            let Reply::Pending { token, .. } = reply else { panic!("{what}: {reply:?}") };
            if is_granted {
                assert!(holder.release_name(held).unwrap());
            }
            end(&mut waits, token, world);
            assert!(waits.request(request.number).is_none(), "{what}");
            assert!(is_granted || holder.release_name(held).unwrap());
            assert_eq!((seen(world), world.names.known()), (Vec::new(), 0), "{what}");
        }
    }
}

/// Looks, when its loop is woken, whether a file is free.
struct Looks(Arc<NamedFile>, Sender<bool>);

const ASKER: Asker = Asker { thread: 0, wants_fence: false, is_part: false };

impl Wake for Looks {
    fn wake(&self) {
        let hold = self.0.try_lock(LockMode::Exclusive, ASKER).unwrap();
        self.1.send(hold.is_some()).unwrap();
    }
}

#[test]
fn who_gets_the_name_of_a_thread_that_has_ended_finds_its_file_unlocked() {
    // A process with the same number may have left one.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let path = env::temp_dir().join(format!("sablock-names-{}-{now}", process::id()));
    fs::create_dir(&path).unwrap();
    let file = NamedFile::get(&Arc::new(Directory::open(Some(&path)).unwrap()), &[97]);
    for mode in [Exclusive, Shared] {
        let world = &World::new();
        let [mut ending, mut next] = [0; 2].map(|_| world.event_loop());
        take(&mut ending, "a", Exclusive);
        ending.hold_file(file.try_lock(LockMode::Exclusive, ASKER).unwrap().unwrap());
        let (_, token) = pend(&mut next, "a", mode);
        let (sender, looks) = channel();
        next.agent().set_waker(Some(Box::new(Looks(Arc::clone(&file), sender))));
        ending.end();
        assert_eq!(looks.try_iter().collect::<Vec<_>>(), [true], "{mode:?}");
        assert!(granted(&mut next).is_some_and(|(of, _)| of == token));
    }
    drop(file);
    fs::remove_dir_all(path).unwrap();
}
