//! Call sites and locks, each with a small number.

use rustc_hash::FxHashMap;

/// A call site; 0 if it is not known.
pub type SiteId = u32;
/// A lock.
pub type LockId = u32;
/// A class of locks: those of one name, of one table, or one lock alone.
pub type NodeId = u32;

/// A lock as people know it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lock {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The class in JS.
    pub kind: String,
    /// Its place in the buffer, if it has one of its own.
    pub byte_offset: Option<u64>,
    /// Where it is, or its table.
    pub address: usize,
}

#[derive(PartialEq, Eq, Hash)]
enum Class {
    /// Whether it is a lock that has nothing but its name.
    Name(String, bool),
    /// By the first lock that was there.
    Alone(LockId),
}

/// What was interned.
#[derive(Default)]
pub struct Names {
    sites: Vec<Vec<String>>,
    site_ids: FxHashMap<Vec<String>, SiteId>,
    locks: Vec<(Lock, NodeId)>,
    lock_ids: FxHashMap<Lock, LockId>,
    nodes: FxHashMap<Class, NodeId>,
}

impl Names {
    /// The number of a stack, innermost frame first.
    pub fn site(&mut self, stack: Vec<String>) -> SiteId {
        if stack.is_empty() {
            return 0;
        }
        if let Some(id) = self.site_ids.get(&stack) {
            return *id;
        }
        self.sites.push(stack.clone());
        let id = self.sites.len() as SiteId;
        self.site_ids.insert(stack, id);
        id
    }

    /// The stack of a number.
    pub fn stack(&self, site: SiteId) -> &[String] {
        (site as usize).checked_sub(1).and_then(|index| self.sites.get(index)).map_or(&[], Vec::as_slice)
    }

    /// The number of a lock.
    pub fn lock(&mut self, lock: Lock) -> LockId {
        if let Some(id) = self.lock_ids.get(&lock) {
            return *id;
        }
        let id = self.locks.len() as LockId;
        let is_bare = lock.byte_offset.is_none();
        let class = lock.name.clone().map_or(Class::Alone(id), |name| Class::Name(name, is_bare));
        let next = self.nodes.len() as NodeId;
        let node = *self.nodes.entry(class).or_insert(next);
        self.locks.push((lock.clone(), node));
        self.lock_ids.insert(lock, id);
        id
    }

    /// The lock of a number.
    pub fn get(&self, lock: LockId) -> Option<&Lock> {
        self.locks.get(lock as usize).map(|(lock, _)| lock)
    }

    /// Its class.
    pub fn node(&self, lock: LockId) -> NodeId {
        self.locks.get(lock as usize).map_or(NodeId::MAX, |(_, node)| *node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(name: Option<&str>, address: usize) -> Lock {
        Lock { name: name.map(Into::into), kind: "Mutex".into(), byte_offset: Some(0), address }
    }

    #[test]
    fn locks_of_one_name_are_one_class_and_others_are_alone() {
        let mut names = Names::default();
        let [one, other] = [8, 16].map(|address| names.lock(lock(Some("a"), address)));
        let [alone, far] = [8, 16].map(|address| names.lock(lock(None, address)));
        assert_ne!(one, other);
        assert_eq!(names.node(one), names.node(other));
        assert_ne!(names.node(alone), names.node(far));
        assert_eq!(names.lock(lock(None, 8)), alone);
    }

    #[test]
    fn a_stack_has_one_number_and_none_has_zero() {
        let mut names = Names::default();
        let site = names.site(vec!["f (a.js:1:1)".into()]);
        assert_eq!(names.site(vec!["f (a.js:1:1)".into()]), site);
        assert_eq!(names.stack(site), ["f (a.js:1:1)"]);
        assert_eq!(names.site(Vec::new()), 0);
        assert!(names.stack(0).is_empty());
    }
}
