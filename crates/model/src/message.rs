//! Messages of other processes and machines: whether each can be one, and how its texts are shown.

use alloc::format;
use alloc::string::String;

/// Why something that came from elsewhere cannot be what it says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanValidationError(String);

impl PlanValidationError {
    /// With a reason in words.
    #[must_use]
    pub fn new(why: impl Into<String>) -> Self {
        PlanValidationError(why.into())
    }
}

/// A message of another process or machine. What reads messages looks at each before anything is
/// done with it, so that the rules for a message are in one place; what only its receiver can know
/// (of which run it is) is checked there.
pub trait Validate {
    /// Whether it can be a message.
    ///
    /// # Errors
    /// The first thing that is wrong.
    fn validate(&self) -> Result<(), PlanValidationError>;
}

/// Refuses what does not hold.
///
/// # Errors
/// `why`, unless it `holds`.
pub fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), PlanValidationError> {
    if holds { Ok(()) } else { Err(PlanValidationError(why())) }
}

/// A text of another process as a message may show it: short, and without control characters.
#[must_use]
pub fn shown(text: &str) -> String {
    plain(text, SHOWN_MAX)
}

/// At most so many characters of a text of another process, without control characters.
#[must_use]
pub fn plain(text: &str, most: usize) -> String {
    let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let mut shown: String = text.chars().take(most).map(plain).collect();
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}

/// Whether a text is short enough to be kept and shown.
///
/// # Errors
/// If it is not.
pub fn ensure_short(what: &str, text: &str) -> Result<(), PlanValidationError> {
    ensure(text.len() <= TEXT_BYTES_MAX, || format!("{what} has {} bytes", text.len()))
}

/// The most bytes of a reason, a hint or another text that one process sends another.
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 10;

/// The most letters of a text that a message shows.
const SHOWN_MAX: usize = 40;
