//! Messages while a command runs in a node of a part.

use serde::{Deserialize, Serialize};
use windtunnel_control::ControlReply;

/// To the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "to", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ToCommand {
    /// For its standard input.
    Input {
        /// The bytes.
        bytes: Octets,
    },
    /// Its standard input ends.
    InputEnds,
    /// A signal.
    Signal {
        /// Its number.
        signal: i32,
    },
    /// The size of its terminal has changed.
    Size {
        /// Lines.
        rows: u16,
        /// Characters in a line.
        columns: u16,
    },
}

/// From the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FromCommand {
    /// What it wrote.
    Output {
        /// Whether on standard error.
        error: bool,
        /// The bytes.
        bytes: Octets,
    },
    /// What the part says of it. After [`ControlReply::Exited`], [`ControlReply::NotRun`] or [`ControlReply::Error`]
    /// there is nothing more.
    Reply {
        /// As on the control socket.
        reply: ControlReply,
    },
}

/// Bytes as a text of the characters U+0000 to U+00FF: half the length of a list of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Octets(pub Vec<u8>);

impl From<String> for Octets {
    fn from(text: String) -> Self {
        // Other characters are not ours.
        Octets(text.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect())
    }
}

impl From<Octets> for String {
    fn from(octets: Octets) -> Self {
        octets.0.into_iter().map(char::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back() {
        let bytes = Octets((0..=255).collect());
        let text = serde_json::to_string(&bytes).unwrap();
        assert_eq!(serde_json::from_str::<Octets>(&text).unwrap(), bytes);
    }
}
