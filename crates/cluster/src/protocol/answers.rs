//! What answers questions to agents.

use std::convert::Infallible;
use std::io;

use windtunnel_control::part::FromPart;

use super::run::{RunCard, RunSetup};
use super::{AgentDescription, AgentReply, ClusterHosts};

/// What answers a question to an agent.
pub trait AgentAnswer: Sized {
    /// What a reply says, if it is of this kind; else the reply.
    ///
    /// # Errors
    /// The reply, which is of another kind.
    fn of(reply: AgentReply) -> Result<Self, AgentReply>;

    /// The reply that says this.
    fn into_reply(self) -> AgentReply;
}

/// How many bytes of [`AgentRequest::Take`](super::AgentRequest::Take) came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenBytes(pub u64);

/// What went through to another agent, in bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredThroughput(pub u64);

/// What nodes need and a machine does not have, a line for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingRequirements(pub Vec<String>);

/// What comes to a watcher of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchedRunMessage {
    /// The run, first, where it is watched and not begun.
    Run(Box<RunSetup>),
    /// What its part said; as of [`AgentReply::Part`].
    Said { now_ns: u64, said: FromPart },
}

/// What comes when the files of a part are fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchedRunMessage {
    /// A file, whose bytes follow; as of [`AgentReply::File`].
    File { path: String, bytes: u64, executable: bool },
    /// These were all.
    End,
}

macro_rules! answers {
    ($($answer:ty { $($reply:pat => $said:expr, $own:pat => $made:expr;)+ })*) => {
        $(
            impl AgentAnswer for $answer {
                fn of(reply: AgentReply) -> Result<Self, AgentReply> {
                    match reply {
                        $($reply => Ok($said),)+
                        other => Err(other),
                    }
                }

                fn into_reply(self) -> AgentReply {
                    match self {
                        $($own => $made,)+
                    }
                }
            }
        )*
    };
}

answers! {
    () { AgentReply::Done => (), () => AgentReply::Done; }
    AgentDescription {
        AgentReply::Card(card) => *card, card => AgentReply::Card(Box::new(card));
    }
    ClusterHosts { AgentReply::Hosts(hosts) => hosts, hosts => AgentReply::Hosts(hosts); }
    TakenBytes {
        AgentReply::Taken { bytes } => TakenBytes(bytes),
            TakenBytes(bytes) => AgentReply::Taken { bytes };
    }
    MeasuredThroughput {
        AgentReply::Throughput { bit_per_s } => MeasuredThroughput(bit_per_s),
            MeasuredThroughput(bit_per_s) => AgentReply::Throughput { bit_per_s };
    }
    MissingRequirements {
        AgentReply::Missing { what } => MissingRequirements(what),
            MissingRequirements(what) => AgentReply::Missing { what };
    }
    Vec<RunCard> { AgentReply::Runs { runs } => runs, runs => AgentReply::Runs { runs }; }
    WatchedRunMessage {
        AgentReply::Run(run) => WatchedRunMessage::Run(run),
            WatchedRunMessage::Run(run) => AgentReply::Run(run);
        AgentReply::Part { now_ns, said } => WatchedRunMessage::Said { now_ns, said },
            WatchedRunMessage::Said { now_ns, said } => AgentReply::Part { now_ns, said };
    }
    FetchedRunMessage {
        AgentReply::File { path, bytes, executable } => {
            FetchedRunMessage::File { path, bytes, executable }
        },
            FetchedRunMessage::File { path, bytes, executable } => {
                AgentReply::File { path, bytes, executable }
            };
        AgentReply::Done => FetchedRunMessage::End, FetchedRunMessage::End => AgentReply::Done;
    }
}

/// No reply is one.
impl AgentAnswer for Infallible {
    fn of(reply: AgentReply) -> Result<Self, AgentReply> {
        Err(reply)
    }

    fn into_reply(self) -> AgentReply {
        match self {}
    }
}

/// The error of a reply that answers nothing.
pub(crate) fn no_answer(reply: AgentReply) -> io::Error {
    io::Error::other(match reply {
        AgentReply::Error { message } => message,
        _ => OTHER_ANSWER.to_owned(),
    })
}

/// Of an answer of another kind.
pub(crate) const OTHER_ANSWER: &str = "something else than was asked";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_the_reply_that_it_is_read_from_and_no_other() {
        assert_eq!(TakenBytes::of(TakenBytes(7).into_reply()), Ok(TakenBytes(7)));
        assert!(MeasuredThroughput::of(TakenBytes(7).into_reply()).is_err());
        let file = FetchedRunMessage::File { path: "a".to_owned(), bytes: 1, executable: false };
        assert_eq!(FetchedRunMessage::of(file.clone().into_reply()), Ok(file));
        assert_eq!(FetchedRunMessage::End.into_reply(), ().into_reply());
        let error = || AgentReply::Error { message: "no".to_owned() };
        assert_eq!(<()>::of(error()), Err(error()));
        assert!(Infallible::of(AgentReply::Done).is_err());
    }
}
