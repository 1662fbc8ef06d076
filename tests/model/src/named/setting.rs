//! One scenario, with at most one fault.

use super::fault::Fault;
use crate::primitives::Id;

/// The request of an agent, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// To hold the name alone.
    Alone,
    /// To share it.
    Shares,
    /// To take it from whoever holds it.
    Steals,
}

#[derive(Clone, Debug)]
pub struct Named {
    pub name: String,
    pub roles: Vec<Role>,
    /// The number of requests that each agent makes.
    pub requests: u8,
    pub deaths: u8,
    pub fault: Option<Fault>,
}

impl Named {
    pub fn of(roles: &[Role], requests: u8, deaths: u8) -> Self {
        let name = format!("a name {roles:?} requests={requests} deaths={deaths}");
        Named { name, roles: roles.to_vec(), requests, deaths, fault: None }
    }

    pub fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    pub fn role(&self, id: Id) -> Role {
        self.roles[id as usize - 1]
    }

    /// Whether it shares.
    pub fn is_shared(&self, id: Id) -> bool {
        self.role(id) == Role::Shares
    }
}
