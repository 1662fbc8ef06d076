//! The places of the processes.

/// The number of a process, from 0.
pub type Id = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    Out,
    /// It waits, by its two threads.
    Waits,
    In,
}

/// The thread that waits without a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direct {
    No,
    /// Somebody who waits to hold the name alone has closed the gate.
    AtGate,
    Waits,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub at: At,
    pub direct: Direct,
    pub is_stopped: bool,
    /// It went past the gate at the last whole second.
    pub passed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub processes: Vec<Process>,
    /// The process that has the turn.
    pub turn: Option<Id>,
    /// The processes that wait for it in the kernel.
    pub line: Vec<Id>,
    /// The processes that wait for the lock in the kernel.
    pub queue: Vec<Id>,
    /// The processes that hold the gate.
    pub gate: Vec<Id>,
    pub stops: u8,
}

impl State {
    pub fn process(&self, id: Id) -> &Process {
        &self.processes[usize::from(id)]
    }

    pub fn process_mut(&mut self, id: Id) -> &mut Process {
        &mut self.processes[usize::from(id)]
    }

    pub fn ids(&self) -> impl Iterator<Item = Id> + use<> {
        0..self.processes.len() as Id
    }

    pub fn inside(&self) -> impl Iterator<Item = Id> + '_ {
        self.ids().filter(|id| self.process(*id).at == At::In)
    }
}
