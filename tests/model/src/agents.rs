//! The threads of a state, by their ids.

/// Methods that states have in common whose `agents` have the ids from 1.
macro_rules! agents {
    ($state:ty, $agent:ty) => {
        impl $state {
            pub fn ids(&self) -> impl Iterator<Item = Id> + use<> {
                1..=self.agents.len() as Id
            }

            pub fn agent(&self, id: Id) -> &$agent {
                &self.agents[id as usize - 1]
            }

            pub fn agent_mut(&mut self, id: Id) -> &mut $agent {
                &mut self.agents[id as usize - 1]
            }
        }
    };
}
