//! The queue against the plainest possible one: a list in which everything is found by looking at everything.
#![cfg(not(any(loom, mutant)))]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use proptest::prelude::*;
use sablock::agents::{Agent, Agents};
use sablock::engine::Parker;
use sablock::engine::queue::{Arrival, Kind, Queue, WaiterId, Waiters};
use sablock::engine::{Hold, HoldOwner, Limit};
use sablock::memory::Place;
use sablock::primitives::mutex::MUTEX;

#[derive(Clone, Debug)]
enum Step {
    PushBlocked,
    PushAsync { agent: usize },
    Remove { position: usize },
    SetAway { position: usize, on: bool },
    SetWoken { position: usize, on: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::PushBlocked),
        4 => (0..4_usize).prop_map(|agent| Step::PushAsync { agent }),
        4 => any::<usize>().prop_map(|position| Step::Remove { position }),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(position, on)| Step::SetAway { position, on }),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(position, on)| Step::SetWoken { position, on }),
    ];
    prop::collection::vec(step, 0..80)
}

/// A waiter of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waiter {
    id: WaiterId,
    /// `None`: a blocked thread.
    agent: Option<usize>,
    away: bool,
    woken: bool,
}

/// Returns the loop groups as the list has them: for each agent its first waiter, in order.
fn groups(list: &[Waiter]) -> Vec<(usize, WaiterId)> {
    let mut groups: Vec<(usize, WaiterId)> = Vec::new();
    for waiter in list {
        if let Some(agent) = waiter.agent
            && groups.iter().all(|(other, _)| *other != agent)
        {
            groups.push((agent, waiter.id));
        }
    }
    groups
}

fn arrival(ticket: &mut u64) -> Arrival {
    *ticket += 1;
    Arrival {
        ticket: *ticket,
        since: Instant::now(),
        hold: Some(Hold::exclusive(HoldOwner::Thread)),
        limit: Limit::Endless,
    }
}

proptest! {
    #[test]
    fn the_queue_behaves_as_a_list(steps in steps()) {
        let word = AtomicU32::new(0);
        // SAFETY: an aligned atomic that outlives the queue.
        let mut queue = Queue::new(unsafe { Place::new(NonNull::from(&word), 0) }, &MUTEX);
        let mut waiters = Waiters::default();
        let mut ticket = 0;
        let all = Agents::new(70_000);
        let agents: Vec<Arc<Agent>> = (0..4).map(|thread| all.add(thread).unwrap()).collect();
        let mut list: Vec<Waiter> = Vec::new();

        for step in steps {
            match step {
                Step::PushBlocked => {
                    let id = queue.push_blocked(&mut waiters, arrival(&mut ticket), 99_999, Arc::new(Parker::current()));
                    list.push(Waiter { id, agent: None, away: false, woken: false });
                }
                Step::PushAsync { agent } => {
                    let id = queue.push_async(&mut waiters, arrival(&mut ticket), &agents[agent], 0);
                    list.push(Waiter { id, agent: Some(agent), away: false, woken: false });
                }
                Step::Remove { position } if !list.is_empty() => {
                    let waiter = list.remove(position % list.len());
                    queue.unlink(&mut waiters, waiter.id);
                    let removed = waiters.remove(waiter.id);
                    prop_assert_eq!(removed.is_blocking(), waiter.agent.is_none());
                }
                Step::SetAway { position, on } if !list.is_empty() => {
                    let index = position % list.len();
                    let waiter = &mut list[index];
                    if let Kind::Blocked { away, .. } = &mut waiters[waiter.id].kind {
                        *away = on;
                        waiter.away = on;
                    }
                }
                Step::SetWoken { position, on } if !list.is_empty() => {
                    let index = position % list.len();
                    queue.set_woken(&mut waiters, list[index].id, on);
                    list[index].woken = on && list[index].agent.is_none();
                }
                _ => {}
            }

            let first_blocked = list.iter().find(|waiter| waiter.agent.is_none() && !waiter.away).map(|waiter| waiter.id);
            prop_assert_eq!(queue.first_blocked(&waiters), first_blocked);
            prop_assert_eq!(queue.is_empty(), list.is_empty());
            prop_assert_eq!(queue.anybody_woken(), list.iter().any(|waiter| waiter.woken));
            prop_assert_eq!(queue.first(&waiters), list.first().map(|waiter| waiter.id));
            let mut tickets: Vec<(u64, WaiterId)> = queue.tickets(&waiters).collect();
            tickets.sort_unstable();
            let order: Vec<u32> = tickets.iter().map(|(_, id)| waiters[*id].agent).collect();
            let expected: Vec<u32> = list.iter().map(|w| w.agent.map_or(99_999, |agent| agents[agent].id)).collect();
            prop_assert_eq!(order, expected);

            for before in [None, first_blocked] {
                let end = before.map_or(list.len(), |id| list.iter().position(|waiter| waiter.id == id).unwrap());
                let ahead: Vec<(u32, WaiterId)> =
                    queue.groups_ahead_of(&waiters, before).iter().map(|group| (group.agent.id, group.first())).collect();
                let expected: Vec<(u32, WaiterId)> =
                    groups(&list[..end]).into_iter().map(|(agent, first)| (agents[agent].id, first)).collect();
                prop_assert_eq!(ahead, expected);
            }
        }
    }
}
