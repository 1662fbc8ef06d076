//! Call sites and locks, each with a small number.

use rustc_hash::FxHashMap;

use crate::agents::ThreadId;

/// A call site; 0 if it is not known.
pub type SiteId = u32;
/// A thread, and the place where it did something.
pub type ThreadSite = (ThreadId, SiteId);
/// The main thread.
pub const MAIN: ThreadId = 0;
/// In the place of many threads that have ended.
pub const ENDED: ThreadId = ThreadId::MAX;
/// A lock.
pub type LockId = u32;
/// A class of locks: those of one name, of one table, or one lock alone.
pub type NodeId = u32;

/// A lock as reports name it.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Lock {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The class in JS.
    pub kind: String,
    /// Its place in the buffer, if it has one of its own.
    pub byte_offset: Option<u64>,
    /// The address of it, or of its table; the space of its name if it has nothing else.
    pub address: usize,
}

impl Lock {
    /// Whether it is one of the machine, or of a store.
    pub fn is_outside(&self) -> bool {
        self.byte_offset.is_none() && self.address != 0
    }

    fn is_alone(&self) -> bool {
        self.name.is_none() || self.byte_offset.is_none()
    }

    /// Whether nothing but its memory tells it from others.
    fn is_memory_alone(&self) -> bool {
        self.name.is_none() && self.byte_offset.is_some()
    }
}

#[derive(PartialEq, Eq, Hash)]
enum Class {
    /// The space is that of a lock which has nothing but its name.
    Name(String, Option<usize>),
    /// By the first lock that was there.
    Alone(LockId),
}

/// A name as reports show it. Two names are two texts, also if a half of a pair of surrogates stands alone in them.
pub fn text_of(name: &[u16]) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in char::decode_utf16(name.iter().copied()) {
        match letter {
            Ok(letter) => text.push(letter),
            Err(half) => text.push_str(&format!("\u{fffd}{:x}", half.unpaired_surrogate())),
        }
    }
    text
}

/// A lock that is known.
struct Known {
    lock: Lock,
    node: NodeId,
    /// The threads that keep it in mind.
    users: Vec<ThreadId>,
    /// The threads that keep its memory.
    keepers: Vec<ThreadId>,
}

/// The interned locks, sites and stacks.
#[derive(Default)]
pub struct Interned {
    sites: Vec<Vec<String>>,
    site_ids: FxHashMap<Vec<String>, SiteId>,
    /// The locks by number. A forgotten one leaves nothing but that.
    locks: Vec<Option<Box<Known>>>,
    lock_ids: FxHashMap<Lock, LockId>,
    next_node: NodeId,
    nodes: FxHashMap<Class, NodeId>,
}

impl Interned {
    /// The number of a stack, innermost frame first.
    pub fn site(&mut self, stack: Vec<String>) -> SiteId {
        if stack.is_empty() {
            return 0;
        }
        *self.site_ids.entry(stack).or_insert_with_key(|stack| {
            self.sites.push(stack.clone());
            self.sites.len() as SiteId
        })
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
        let next = self.next_node;
        let node = *self.nodes.entry(class_of(&lock, id)).or_insert(next);
        self.next_node += NodeId::from(node == next);
        self.locks.push(Some(Box::new(Known { lock: lock.clone(), node, users: Vec::new(), keepers: Vec::new() })));
        self.lock_ids.insert(lock, id);
        id
    }

    /// The lock that stands for all that are forgotten.
    pub fn others(&mut self) -> LockId {
        let lock = Lock { name: None, kind: "Locks used before".into(), byte_offset: None, address: 0 };
        self.lock(lock)
    }

    /// The number of a lock, which a thread keeps in mind until it leaves it.
    pub fn keep(&mut self, lock: Lock, thread: ThreadId) -> LockId {
        let id = self.lock(lock);
        if let Some(known) = &mut self.locks[id as usize] {
            known.users.push(thread);
        }
        id
    }

    /// The locks that a thread keeps in mind, each as often as it does.
    pub fn kept_by(&self, thread: ThreadId) -> Vec<LockId> {
        let known = (0..).zip(&self.locks).filter_map(|(id, known)| Some((id, known.as_ref()?)));
        known.flat_map(|(id, known)| known.users.iter().filter(|user| **user == thread).map(move |_| id)).collect()
    }

    /// A thread keeps its memory for as long as it lives.
    pub fn keep_memory(&mut self, id: LockId, thread: ThreadId) {
        let Some(known) = self.locks.get_mut(id as usize).and_then(Option::as_mut) else { return };
        if !known.keepers.contains(&thread) {
            known.keepers.push(thread);
        }
    }

    /// A thread keeps no memory any more. Where it was the last, another lock may come to the same address, with a number of its own.
    pub fn leave_memory(&mut self, thread: ThreadId) {
        for (id, known) in (0..).zip(&mut self.locks) {
            let Some(known) = known else { continue };
            let Some(at) = known.keepers.iter().position(|keeper| *keeper == thread) else { continue };
            known.keepers.swap_remove(at);
            if known.keepers.is_empty() && known.lock.is_memory_alone() {
                unlist(&mut self.lock_ids, &known.lock, id);
            }
        }
    }

    /// Whether no thread can come to know it any more.
    pub fn is_past(&self, id: LockId) -> bool {
        self.get(id).is_none_or(|lock| self.lock_ids.get(lock) != Some(&id))
    }

    /// A thread does not keep it in mind any more. Returns whether none does.
    pub fn leave(&mut self, id: LockId, thread: ThreadId) -> bool {
        let Some(known) = self.locks.get_mut(id as usize).and_then(Option::as_mut) else { return false };
        if let Some(at) = known.users.iter().position(|user| *user == thread) {
            known.users.swap_remove(at);
        }
        known.users.is_empty()
    }

    /// Nothing refers to it any more.
    pub fn drop_lock(&mut self, id: LockId) {
        let Some(known) = self.locks.get_mut(id as usize).and_then(Option::take) else { return };
        unlist(&mut self.lock_ids, &known.lock, id);
        if known.lock.is_alone() {
            self.nodes.remove(&class_of(&known.lock, id));
        }
    }

    /// The lock of a number.
    pub fn get(&self, lock: LockId) -> Option<&Lock> {
        self.locks.get(lock as usize).and_then(Option::as_ref).map(|known| &known.lock)
    }

    /// Whether it is the only one of its class: others in memory may have its name.
    pub fn is_alone(&self, lock: LockId) -> bool {
        self.get(lock).is_none_or(Lock::is_alone)
    }

    /// Its class.
    pub fn node(&self, lock: LockId) -> NodeId {
        self.locks.get(lock as usize).and_then(Option::as_ref).map_or(NodeId::MAX, |known| known.node)
    }
}

/// A lock has this number no more, unless there is another at its address by now.
fn unlist(ids: &mut FxHashMap<Lock, LockId>, lock: &Lock, id: LockId) {
    if ids.get(lock) == Some(&id) {
        ids.remove(lock);
    }
}

fn class_of(lock: &Lock, id: LockId) -> Class {
    let space = lock.byte_offset.is_none().then_some(lock.address);
    lock.name.clone().map_or(Class::Alone(id), |name| Class::Name(name, space))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(name: Option<&str>, address: usize) -> Lock {
        Lock { name: name.map(Into::into), kind: "Mutex".into(), byte_offset: Some(0), address }
    }

    #[test]
    fn locks_of_one_name_are_one_class_and_others_are_alone() {
        let mut names = Interned::default();
        let [one, other] = [8, 16].map(|address| names.lock(lock(Some("a"), address)));
        let [alone, far] = [8, 16].map(|address| names.lock(lock(None, address)));
        assert_ne!(one, other);
        assert_eq!(names.node(one), names.node(other));
        assert_ne!(names.node(alone), names.node(far));
        assert_eq!(names.lock(lock(None, 8)), alone);
    }

    #[test]
    fn a_lock_is_left_once_no_thread_keeps_it_in_mind() {
        let mut names = Interned::default();
        let bare = || Lock { byte_offset: None, ..lock(Some("once"), 0) };
        let id = names.keep(bare(), 1);
        assert_eq!([1, 2].map(|thread| names.keep(bare(), thread)), [id, id]);
        assert_eq!(names.keep(lock(None, 8), 2), id + 1);
        assert_eq!((names.kept_by(1), names.kept_by(3)), (vec![id, id], vec![]));
        assert_eq!([1, 3, 1, 1].map(|thread| names.leave(id, thread)), [false; 4]);
        assert!(names.leave(id, 2));
        names.drop_lock(id);
        assert!(names.get(id).is_none());
        assert_ne!(names.lock(bare()), id);
        let twice = [(); 2].map(|()| names.keep(lock(None, 16), 1))[0];
        assert_eq!([1, 1].map(|thread| names.leave(twice, thread)), [false, true], "by two objects for it");
    }

    #[test]
    fn at_the_address_of_a_lock_whose_memory_nobody_keeps_any_more_is_another() {
        let mut names = Interned::default();
        let before = names.keep(lock(None, 8), 3);
        assert_eq!(names.lock(lock(None, 8)), before, "no order names it");
        for thread in [1, 2, 1] {
            names.keep_memory(before, thread);
        }
        names.leave_memory(1);
        assert_eq!((names.lock(lock(None, 8)), names.is_past(before)), (before, false));
        names.leave_memory(2);
        assert!(names.is_past(before));
        assert_eq!(names.kept_by(3), [before], "whoever has it in mind goes on with it");
        let next = names.lock(lock(None, 8));
        assert_ne!((next, names.node(next)), (before, names.node(before)));
        // One who has it in mind may note an order still.
        names.keep_memory(before, 3);
        names.leave_memory(3);
        names.drop_lock(before);
        assert_eq!((names.lock(lock(None, 8)), names.is_past(next)), (next, false));
    }

    #[test]
    fn a_name_stays_whoever_keeps_the_memory() {
        let mut names = Interned::default();
        for known in [lock(Some("a"), 8), Lock { byte_offset: None, ..lock(Some("a"), 0) }] {
            let id = names.lock(known.clone());
            names.keep_memory(id, 1);
            names.leave_memory(1);
            assert_eq!((names.lock(known), names.is_past(id)), (id, false));
        }
    }

    #[test]
    fn names_that_differ_in_half_a_pair_are_two_texts() {
        let units = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
        assert_eq!(text_of(&units("a\u{1f512}")), "a\u{1f512}");
        assert_eq!([0xd800, 0xdfff].map(|half| text_of(&[97, half])), ["a\u{fffd}d800", "a\u{fffd}dfff"]);
    }

    #[test]
    fn a_stack_has_one_number_and_none_has_zero() {
        let mut names = Interned::default();
        let site = names.site(vec!["f (a.js:1:1)".into()]);
        assert_eq!(names.site(vec!["f (a.js:1:1)".into()]), site);
        assert_eq!(names.stack(site), ["f (a.js:1:1)"]);
        assert_eq!(names.site(Vec::new()), 0);
        assert!(names.stack(0).is_empty());
    }
}
