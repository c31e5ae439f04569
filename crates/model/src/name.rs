//! What nodes, links and experiments may be called. Names become parts of paths and host names, so
//! the same rules hold for a file that a person writes and for a plan that another process sends.

use core::fmt;

/// Why a text is not the name of something in a network: a host name's label (RFC 1123) in lower
/// case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelError {
    /// There is no letter.
    Empty,
    /// Every host's own name for itself.
    Localhost,
    /// More letters than so many.
    TooLong(usize),
    /// Other characters than lower-case letters, digits and `-` inside.
    Characters,
    /// Digits alone are read as an address.
    Digits,
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabelError::Empty => f.write_str("it is empty"),
            LabelError::Localhost => f.write_str("every node calls itself so"),
            LabelError::TooLong(most) => write!(f, "it is longer than {most} letters"),
            LabelError::Characters => {
                f.write_str("a host name has lower-case letters, digits and `-` inside")
            }
            LabelError::Digits => f.write_str("a name of digits alone is read as an address"),
        }
    }
}

/// Whether `text` may name a node, a router or a LAN, with at most `most` letters.
///
/// # Errors
/// The first rule that it breaks.
pub fn check_label(text: &str, most: usize) -> Result<(), LabelError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.is_empty() {
        Err(LabelError::Empty)
    } else if text == "localhost" {
        Err(LabelError::Localhost)
    } else if text.len() > most {
        Err(LabelError::TooLong(most))
    } else if !text.chars().all(plain) || text.starts_with('-') || text.ends_with('-') {
        Err(LabelError::Characters)
    } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
        Err(LabelError::Digits)
    } else {
        Ok(())
    }
}

/// Whether `text` may be a further name of a node's addresses: what resolvers look up (hosts(5)), with
/// dots, capital letters and `_` as well, as containers have it.
#[must_use]
pub fn is_alias(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_address = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    starts
        && text.len() <= ALIAS_BYTES_MAX
        && text.chars().all(plain)
        && !is_address
        && !text.eq_ignore_ascii_case("localhost")
}

/// Whether `text` may name a link, with at most `most` letters: letters, digits, `-`, `_`, `.`, and
/// first a letter or a digit.
#[must_use]
pub fn is_link(text: &str, most: usize) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    starts && text.len() <= most && text.chars().all(plain)
}

/// Whether `text` is a setting below `net.` of sysctl(8): it becomes a path below `/proc/sys`.
#[must_use]
pub fn is_sysctl(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    text.starts_with("net.") && text.chars().all(plain) && !text.contains("..")
}

/// Whether `text` may name an experiment: it becomes a part of the run folder's name.
#[must_use]
pub fn is_experiment(text: &str) -> bool {
    let sane = |c: char| c.is_alphanumeric() || "-_.+ ".contains(c);
    let starts = !text.is_empty() && !text.starts_with(['.', ' ', '-']);
    starts && text.len() <= EXPERIMENT_BYTES_MAX && text.chars().all(sane)
}

/// Whether `text` may name a machine or be a label of one: it is shown, and compared with what
/// files say.
#[must_use]
pub fn is_machine(text: &str) -> bool {
    !text.is_empty() && text.len() <= MACHINE_BYTES_MAX && !text.chars().any(char::is_control)
}

/// The most letters in the name of a node, a router or a LAN (RFC 1035, 2.3.4).
pub const LABEL_LETTERS_MAX: usize = 63;
/// The most letters in the name that a file gives to a link.
pub const LINK_LETTERS_MAX: usize = 100;
/// The most letters in a link's name of any origin: two labels with `--` between them, and a
/// number.
pub const PLAN_LINK_LETTERS_MAX: usize = 2 * LABEL_LETTERS_MAX + 16;
/// The most bytes in a further name of a node: those of a host name (RFC 1035, 2.3.4).
pub(crate) const ALIAS_BYTES_MAX: usize = 253;
/// The most bytes in the name of an experiment.
pub const EXPERIMENT_BYTES_MAX: usize = 100;
/// The most bytes in the name of a machine: those of a host name (RFC 1035, 2.3.4).
pub(crate) const MACHINE_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_leave_a_folder_is_refused() {
        for text in ["../../.ssh", "..", ".", "", "/etc", "a/b", "a\0b", "a\n", "\u{1b}[2J"] {
            assert!(check_label(text, LABEL_LETTERS_MAX).is_err(), "{text:?} is not a label");
            assert!(!is_link(text, LINK_LETTERS_MAX), "{text:?} is not a link");
            assert!(!is_experiment(text), "{text:?} is not an experiment");
        }
        assert!(!is_machine("") && !is_machine("a\u{1b}[2J") && is_machine("node 7.example.org"));
    }

    #[test]
    fn an_alias_is_what_a_resolver_looks_up() {
        for text in ["db", "web_app", "Db.Example.org", "_dmarc", "1.2.3.4a"] {
            assert!(is_alias(text), "{text}");
        }
        for text in ["", "a b", "a\tb", "10.0.0.1", "7", "LocalHost", "a#", "-a", ".a", "a:b"] {
            assert!(!is_alias(text), "{text:?}");
        }
        assert!(is_alias(&"a".repeat(253)) && !is_alias(&"a".repeat(254)));
    }

    #[test]
    fn lengths_are_bounded() {
        assert_eq!(check_label(&"a".repeat(63), 63), Ok(()));
        assert_eq!(check_label(&"a".repeat(64), 63), Err(LabelError::TooLong(63)));
        assert!(is_link(&"l".repeat(100), LINK_LETTERS_MAX));
        assert!(!is_link(&"l".repeat(101), LINK_LETTERS_MAX));
        assert!(is_experiment(&"e".repeat(100)) && !is_experiment(&"e".repeat(101)));
        assert!(is_machine(&"m".repeat(255)) && !is_machine(&"m".repeat(256)));
    }
}
