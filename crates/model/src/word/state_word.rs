//! Words for states in files and messages, which another version may know more of.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

/// What has a word in files and messages.
pub trait NamedState: Copy + PartialEq + 'static {
    /// Each with its word.
    const WORDS: &'static [(Self, &'static str)];

    /// Its word.
    #[must_use]
    fn word(self) -> &'static str {
        let mut words = Self::WORDS.iter();
        words.find(|(known, _)| *known == self).map_or("", |(_, word)| word)
    }
}

/// A state as a file or message has it: one that this version knows, or a word of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String", bound = "T: NamedState")]
pub enum StateWord<T> {
    Known(T),
    Other(String),
}

impl<T: NamedState> StateWord<T> {
    /// The state, if it is known.
    #[must_use]
    pub fn known(&self) -> Option<T> {
        match self {
            StateWord::Known(state) => Some(*state),
            StateWord::Other(_) => None,
        }
    }

    /// Its word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            StateWord::Known(state) => state.word(),
            StateWord::Other(word) => word,
        }
    }
}

impl<T: NamedState> PartialEq<T> for StateWord<T> {
    fn eq(&self, state: &T) -> bool {
        self.known() == Some(*state)
    }
}

impl<T: NamedState> From<T> for StateWord<T> {
    fn from(state: T) -> Self {
        StateWord::Known(state)
    }
}

impl<T: NamedState> From<&str> for StateWord<T> {
    fn from(text: &str) -> Self {
        let known = T::WORDS.iter().find(|(_, word)| *word == text);
        known.map_or_else(|| StateWord::Other(text.to_owned()), |(state, _)| (*state).into())
    }
}

impl<T: NamedState> From<String> for StateWord<T> {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl<T: NamedState> From<StateWord<T>> for String {
    fn from(word: StateWord<T>) -> Self {
        word.as_str().to_owned()
    }
}

impl<T: NamedState> fmt::Display for StateWord<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// No word, as of a message that says nothing.
impl<T: NamedState> Default for StateWord<T> {
    fn default() -> Self {
        StateWord::Other(String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::{ExpulsionCause, LaneOperationalState, ProgramState};

    #[test]
    fn a_word_is_written_as_it_was_read_whether_it_is_known_or_not() {
        for text in ["\"parted\"", "\"sideways\"", "\"\""] {
            let word: StateWord<LaneOperationalState> = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&word).unwrap(), text);
        }
    }

    #[test]
    fn only_a_known_word_is_a_state() {
        let word = StateWord::from("no-answer");
        assert_eq!(word.known(), Some(ExpulsionCause::NoAnswer));
        assert!(word == ExpulsionCause::NoAnswer && word != ExpulsionCause::Gone);
        assert_eq!(StateWord::<ProgramState>::from("up").known(), None);
        assert_eq!(StateWord::<ProgramState>::default().as_str(), "");
    }
}
