//! The queue against the plainest possible one: a list in which everything is found by looking at everything.
#![cfg(not(loom))]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use proptest::prelude::*;
use sablock::agent::{Agent, Roster};
use sablock::lot::queue::{Kind, Node, NodeId, Queue};
use sablock::parker::Parker;
use sablock::shared_word::SharedWord;
use slab::Slab;

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
    id: NodeId,
    /// `None`: a blocked thread.
    agent: Option<usize>,
    away: bool,
    woken: bool,
}

fn is_asynchronous(node: &Node) -> bool {
    matches!(node.kind, Kind::Async { .. })
}

/// What the list says of the parties: for each agent its first waiter, in order.
fn parties(list: &[Waiter]) -> Vec<(usize, NodeId)> {
    let mut parties: Vec<(usize, NodeId)> = Vec::new();
    for waiter in list {
        if let Some(agent) = waiter.agent
            && parties.iter().all(|(other, _)| *other != agent)
        {
            parties.push((agent, waiter.id));
        }
    }
    parties
}

proptest! {
    #[test]
    fn the_queue_behaves_as_a_list(steps in steps()) {
        let word = AtomicU32::new(0);
        // SAFETY: an aligned atomic that outlives the queue.
        let mut queue = Queue::new(unsafe { SharedWord::new(NonNull::from(&word), 0) });
        let mut nodes: Slab<Node> = Slab::new();
        let roster = Roster::new(70_000);
        let agents: Vec<Arc<Agent>> = (0..4).map(|thread| roster.enter(thread).unwrap()).collect();
        let mut list: Vec<Waiter> = Vec::new();

        for step in steps {
            match step {
                Step::PushBlocked => {
                    let id = queue.push_blocked(&mut nodes, 99_999, Arc::new(Parker::new()), false, Instant::now());
                    list.push(Waiter { id, agent: None, away: false, woken: false });
                }
                Step::PushAsync { agent } => {
                    let id = queue.push_async(&mut nodes, &agents[agent], 0, false, Instant::now());
                    list.push(Waiter { id, agent: Some(agent), away: false, woken: false });
                }
                Step::Remove { position } if !list.is_empty() => {
                    let waiter = list.remove(position % list.len());
                    let node = queue.remove(&mut nodes, waiter.id);
                    prop_assert_eq!(is_asynchronous(&node), waiter.agent.is_some());
                }
                Step::SetAway { position, on } if !list.is_empty() => {
                    let index = position % list.len();
                    let waiter = &mut list[index];
                    if let Kind::Blocked { away, .. } = &mut nodes[waiter.id as usize].kind {
                        *away = on;
                        waiter.away = on;
                    }
                }
                Step::SetWoken { position, on } if !list.is_empty() => {
                    let index = position % list.len();
                    queue.set_woken(&mut nodes, list[index].id, on);
                    list[index].woken = on && list[index].agent.is_none();
                }
                _ => {}
            }

            let first_blocked = list.iter().find(|waiter| waiter.agent.is_none() && !waiter.away).map(|waiter| waiter.id);
            prop_assert_eq!(queue.first_blocked(&nodes), first_blocked);
            prop_assert_eq!(queue.is_empty(), list.is_empty());
            prop_assert_eq!(queue.anybody_woken(), list.iter().any(|waiter| waiter.woken));
            let order: Vec<u32> = queue.waiters(&nodes).iter().map(|node| node.agent).collect();
            let expected: Vec<u32> = list.iter().map(|w| w.agent.map_or(99_999, |agent| agents[agent].id)).collect();
            prop_assert_eq!(order, expected);

            for before in [None, first_blocked] {
                let end = before.map_or(list.len(), |id| list.iter().position(|waiter| waiter.id == id).unwrap());
                let ahead: Vec<(u32, NodeId)> =
                    queue.parties_ahead_of(&nodes, before).iter().map(|party| (party.agent.id, party.first())).collect();
                let expected: Vec<(u32, NodeId)> =
                    parties(&list[..end]).into_iter().map(|(agent, first)| (agents[agent].id, first)).collect();
                prop_assert_eq!(ahead, expected);
            }
        }
    }
}
