//! One scenario, with at most one fault.

use super::fault::Fault;
use crate::primitives::Id;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Waits for a notification while the value is 0; so many times at most.
    Waits(u8),
    /// Takes an item under the lock, and waits for the condition while there is none.
    Takes(u8),
    /// Notifies one, or all: so many times.
    Notifies(u8, usize),
    /// Sets the value to 1, then notifies all.
    Sets,
    /// Puts an item under the lock, then notifies one: so many times.
    Puts(u8),
}

#[derive(Clone, Debug)]
pub struct Notified {
    pub name: String,
    pub roles: Vec<Role>,
    pub deaths: u8,
    pub quits: bool,
    pub fault: Option<Fault>,
}

impl Notified {
    pub fn of(roles: &[Role]) -> Self {
        let name = format!("notified {roles:?}");
        Notified { name, roles: roles.to_vec(), deaths: 0, quits: false, fault: None }
    }

    pub fn deaths(mut self, deaths: u8) -> Self {
        self.deaths = deaths;
        self.name += &format!(" deaths={deaths}");
        self
    }

    pub fn quits(mut self) -> Self {
        self.quits = true;
        self.name += " quits";
        self
    }

    pub fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    pub fn role(&self, id: Id) -> Role {
        self.roles[id as usize - 1]
    }
}
