//! What makes a program ready.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Span;

/// What makes a program ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadinessCondition {
    /// Something in the node listens on this TCP port.
    Tcp(u16),
    /// Something in the node listens on some TCP port, or has bound some UDP port.
    Listen,
    /// Something in the node listens on this Unix socket.
    Unix(String),
    /// A line of its output matches this regular expression.
    Log(String),
    /// It has exited with 0.
    Exit,
    /// A command that runs beside it has exited with 0.
    Command(ReadinessCheck),
    /// The same, before an image has been looked at: its check, with what is said here in place of what
    /// it says.
    OfImage(ReadinessCheckSettings),
}

/// A command that says by its exit code whether a program is ready. The first check is made as soon as
/// the program runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadinessCheck {
    /// Its words, at least one.
    pub argv: Vec<String>,
    /// From the end of a check to the next.
    pub every: Span,
    /// A check that takes longer is killed, and has failed.
    pub timeout: Span,
    /// After so many failures one after the other the program will not be ready; `None`: it may be, as
    /// long as it has time. That of the first check does not count.
    pub fall: Option<u32>,
    /// For so long after the program's start, failures of checks that begin do not count.
    pub start_period: Span,
    /// In place of `every` for as long.
    pub start_every: Span,
}

/// What is said of a check; the rest has its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadinessCheckSettings {
    /// Its words; none: they are said elsewhere.
    pub argv: Vec<String>,
    pub every: Option<Span>,
    pub timeout: Option<Span>,
    pub fall: Option<u32>,
    pub start_period: Option<Span>,
    pub start_every: Option<Span>,
}

impl ReadinessCheckSettings {
    /// What is not said here is as `under` says.
    #[must_use]
    pub fn or(self, under: ReadinessCheckSettings) -> ReadinessCheckSettings {
        ReadinessCheckSettings {
            argv: if self.argv.is_empty() { under.argv } else { self.argv },
            every: self.every.or(under.every),
            timeout: self.timeout.or(under.timeout),
            fall: self.fall.or(under.fall),
            start_period: self.start_period.or(under.start_period),
            start_every: self.start_every.or(under.start_every),
        }
    }

    /// The check of a file's own command: often, and as long as there is time.
    #[must_use]
    pub fn of_file(self) -> ReadinessCheck {
        let every = self.every.unwrap_or(Span::from_secs(1));
        ReadinessCheck {
            argv: self.argv,
            every,
            timeout: self.timeout.unwrap_or(Span::from_secs(10)),
            fall: self.fall,
            start_period: self.start_period.unwrap_or(Span::ZERO),
            start_every: self.start_every.unwrap_or(every),
        }
    }

    /// The check of an image: what is not said is as Docker has it ("Dockerfile reference",
    /// HEALTHCHECK).
    #[must_use]
    pub fn of_image(self) -> ReadinessCheck {
        let half_a_minute = Span::from_secs(30);
        ReadinessCheck {
            argv: self.argv,
            every: self.every.unwrap_or(half_a_minute),
            timeout: self.timeout.unwrap_or(half_a_minute),
            fall: Some(self.fall.unwrap_or(3)),
            start_period: self.start_period.unwrap_or(Span::ZERO),
            start_every: self.start_every.unwrap_or(Span::from_secs(5)),
        }
    }
}

impl ReadinessCheck {
    /// The most failures that can be asked for.
    pub const FALL_MAX: u32 = 1_000_000;
    /// The shortest of its times but `start_period`.
    pub const TIME_MIN: Span = Span::from_millis(1);

    /// Its words, as they are shown.
    #[must_use]
    pub fn command(&self) -> CommandLineDisplay<'_> {
        CommandLineDisplay(&self.argv)
    }
}

/// Words of a command, shown in a line: in quotes where it has blanks or is empty.
#[derive(Debug, Clone, Copy)]
pub struct CommandLineDisplay<'a>(&'a [String]);

impl fmt::Display for CommandLineDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, word) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(" ")?;
            }
            let is_plain = !word.is_empty()
                && !word.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"');
            if is_plain { f.write_str(word)? } else { write!(f, "{word:?}")? }
        }
        Ok(())
    }
}

impl fmt::Display for ReadinessCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadinessCondition::Tcp(port) => write!(f, "tcp:{port}"),
            ReadinessCondition::Listen => f.write_str("listen"),
            ReadinessCondition::Unix(path) => write!(f, "unix:{path}"),
            ReadinessCondition::Log(pattern) => write!(f, "log:{pattern}"),
            ReadinessCondition::Exit => f.write_str("exit"),
            ReadinessCondition::Command(check) => write!(f, "command:{}", check.command()),
            ReadinessCondition::OfImage(_) => f.write_str("healthcheck"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    #[test]
    fn a_check_of_an_image_has_the_times_of_docker_where_nothing_says_them() {
        let seconds = Span::from_secs;
        let check = ReadinessCheckSettings::default().of_image();
        let times = (check.every, check.timeout, check.start_period, check.start_every);
        assert_eq!(times, (seconds(30), seconds(30), Span::ZERO, seconds(5)));
        assert_eq!(check.fall, Some(3));
    }

    #[test]
    fn what_a_file_says_of_a_check_comes_before_what_the_image_says() {
        let seconds = |secs| Some(Span::from_secs(secs));
        let file =
            ReadinessCheckSettings { every: seconds(2), ..ReadinessCheckSettings::default() };
        let argv = vec!["ask".to_string()];
        let image =
            ReadinessCheckSettings { argv, every: seconds(9), timeout: seconds(4), ..file.clone() };
        let both = ReadinessCheckSettings { every: seconds(2), ..image.clone() };
        assert_eq!(file.or(image), both);
    }

    #[test]
    fn words_of_a_command_are_in_quotes_where_they_have_blanks() {
        let argv = ["sh", "-c", "a && \"b\"\n", ""].map(ToString::to_string).to_vec();
        let check = ReadinessCheckSettings { argv, ..ReadinessCheckSettings::default() }.of_file();
        assert_eq!(check.command().to_string(), r#"sh -c "a && \"b\"\n" """#);
    }
}
