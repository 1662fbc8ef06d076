//! Weak fairness: what is due in every state of an endless run happens in it, again and again.

/// Somebody or something that goes on by itself; each protocol numbers its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class(pub u8);

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes(pub u64);

impl Classes {
    pub fn add_if(&mut self, due: bool, Class(number): Class) {
        if due {
            self.0 |= 1 << number;
        }
    }
}
