//! All agents of the process: who lives, and who ever lived.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::agent::{Agent, AgentId, Blockage, LARGEST_ID, OsThread, ThreadId};
use crate::sync::RwLock;

/// The state of an agent, by its id in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Its thread runs.
    Living,
    /// Its thread has ended.
    Ended,
    /// No agent ever had this id.
    NeverIssued,
}

/// All agents of the process. An id is never given out again: an id in a lock word says who holds it, and whether that
/// thread lives.
pub struct Agents {
    first: AgentId,
    state: RwLock<Population>,
}

struct Population {
    living: FxHashMap<AgentId, Arc<Agent>>,
    /// The thread of each id ever given out, in order: four bytes for each thread of the process's life.
    threads: Vec<ThreadId>,
}

impl Agents {
    /// Without any agent; the first id will be `first`.
    pub fn new(first: AgentId) -> Self {
        assert!(first > 1 << 16 && first < LARGEST_ID, "ids start between 2^16 and 2^26");
        Self { first, state: RwLock::new(Population { living: FxHashMap::default(), threads: Vec::new() }) }
    }

    /// A new agent, alone on its thread. `None` when all ids were used, after fifty million threads at least.
    pub fn add(&self, thread: ThreadId) -> Option<Arc<Agent>> {
        self.add_beside(thread, None)
    }

    /// A new agent on the same thread of the operating system as others with this `os_thread`.
    pub fn add_on(&self, thread: ThreadId, os_thread: OsThread) -> Option<Arc<Agent>> {
        self.add_beside(thread, Some(os_thread))
    }

    fn add_beside(&self, thread: ThreadId, os_thread: Option<OsThread>) -> Option<Arc<Agent>> {
        let mut state = self.state.write();
        let id = self.first + u32::try_from(state.threads.len()).ok()?;
        if id > LARGEST_ID {
            return None;
        }
        state.threads.push(thread);
        let agent = Arc::new(Agent::new(id, thread, os_thread.unwrap_or(OsThread::MAX - OsThread::from(id))));
        state.living.insert(id, Arc::clone(&agent));
        Some(agent)
    }

    /// The agent's thread has ended: from now on everybody who finds its id in a word frees that word.
    pub fn remove(&self, id: AgentId) {
        self.state.write().living.remove(&id);
    }

    /// Whether the agent lives.
    pub fn standing(&self, id: AgentId) -> Standing {
        let state = self.state.read();
        if state.living.contains_key(&id) {
            Standing::Living
        } else if self.index(id).is_some_and(|index| index < state.threads.len()) {
            Standing::Ended
        } else {
            Standing::NeverIssued
        }
    }

    /// The living agent of an id.
    pub fn get(&self, id: AgentId) -> Option<Arc<Agent>> {
        self.state.read().living.get(&id).cloned()
    }

    /// A living agent of a thread.
    pub fn of_thread(&self, thread: ThreadId) -> Option<Arc<Agent>> {
        self.state.read().living.values().find(|agent| agent.thread == thread).cloned()
    }

    /// The thread that an id was given to.
    pub fn thread(&self, id: AgentId) -> Option<ThreadId> {
        self.state.read().threads.get(self.index(id)?).copied()
    }

    /// The threads of all that live but these.
    pub fn living_but(&self, left_out: &[AgentId]) -> Vec<ThreadId> {
        let state = self.state.read();
        state.living.values().filter(|agent| !left_out.contains(&agent.id)).map(|agent| agent.thread).collect()
    }

    /// The wait that keeps the agent from running: its own, or that of another agent on the same thread of the operating system.
    pub fn blockage(&self, id: AgentId) -> Option<(Arc<Agent>, Blockage)> {
        let state = self.state.read();
        let agent = state.living.get(&id)?;
        if let Some(blockage) = agent.blockage() {
            return Some((Arc::clone(agent), blockage));
        }
        let beside = |other: &&Arc<Agent>| other.os_thread == agent.os_thread;
        let blocked = |other: &Arc<Agent>| other.blockage().map(|blockage| (Arc::clone(other), blockage));
        state.living.values().filter(beside).find_map(blocked)
    }

    fn index(&self, id: AgentId) -> Option<usize> {
        id.checked_sub(self.first).map(|index| index as usize)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_unknown_then_living_then_ended_and_never_given_out_again() {
        let agents = Agents::new(70_000);
        assert_eq!(agents.standing(70_000), Standing::NeverIssued);
        let first = agents.add(3).unwrap();
        assert_eq!((first.id, agents.standing(first.id)), (70_000, Standing::Living));
        agents.remove(first.id);
        assert_eq!(agents.standing(first.id), Standing::Ended);
        assert_eq!(agents.thread(first.id), Some(3));
        assert_eq!(agents.add(4).unwrap().id, 70_001);
        assert_eq!(agents.standing(2), Standing::NeverIssued);
    }

    #[test]
    fn agents_of_one_os_thread_are_blocked_together() {
        let agents = Agents::new(70_000);
        let [one, other, elsewhere] = [1, 1, 2].map(|os_thread| agents.add_on(0, os_thread).unwrap());
        let blockage = Blockage { address: 8, byte_offset: 8, endless: true, serial: 1 };
        other.set_blockage(Some(blockage));
        assert_eq!(agents.blockage(one.id).map(|(agent, _)| agent.id), Some(other.id));
        assert!(agents.blockage(elsewhere.id).is_none());
    }

    #[test]
    fn whichever_of_those_on_one_os_thread_is_blocked_is_found() {
        let agents = Agents::new(70_000);
        let all: Vec<_> = (0..8).map(|_| agents.add_on(0, 1).unwrap()).collect();
        let blockage = Blockage { address: 8, byte_offset: 8, endless: true, serial: 1 };
        for blocked in &all {
            blocked.set_blockage(Some(blockage));
            for agent in &all {
                assert_eq!(agents.blockage(agent.id).map(|(other, _)| other.id), Some(blocked.id));
            }
            blocked.set_blockage(None);
        }
        // If several are, its own wait comes first.
        for agent in &all {
            agent.set_blockage(Some(blockage));
        }
        for agent in &all {
            assert_eq!(agents.blockage(agent.id).map(|(own, _)| own.id), Some(agent.id));
        }
    }

    #[test]
    fn those_who_live_are_found_by_their_threads() {
        let agents = Agents::new(70_000);
        let [one, two, ended] = [3, 4, 5].map(|thread| agents.add(thread).unwrap());
        agents.remove(ended.id);
        let found = [3, 4, 5, 6].map(|thread| agents.of_thread(thread).map(|agent| agent.id));
        assert_eq!(found, [Some(one.id), Some(two.id), None, None]);
        let mut living = agents.living_but(&[]);
        living.sort_unstable();
        assert_eq!(living, [3, 4]);
        assert_eq!(agents.living_but(&[one.id, ended.id]), [4]);
    }

    #[test]
    fn the_last_id_is_given_out_and_none_after_it() {
        let agents = Agents::new(LARGEST_ID - 1);
        let ids = [1, 2, 3].map(|thread| agents.add(thread).map(|agent| agent.id));
        assert_eq!(ids, [Some(LARGEST_ID - 1), Some(LARGEST_ID), None]);
    }
}
