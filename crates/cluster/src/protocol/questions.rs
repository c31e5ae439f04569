//! Questions to agents, each with the type of its answer: who asks gets that, or an error, and no
//! other reply; an agent cannot answer anything else.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::net::SocketAddr;

use windtunnel_control::ControlRequest;

use super::answers::{
    AgentAnswer, FetchedRunMessage, MeasuredThroughput, MissingRequirements, TakenBytes,
    WatchedRunMessage,
};
use super::run::{RunCard, RunSetup};
use super::{AgentDescription, AgentRequest, ClusterHosts};
use crate::answer_stream::{AgentCall, AgentCallStreams};

/// A question, and the type of its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentQuestion<A> {
    request: AgentRequest,
    answer: PhantomData<A>,
}

impl<A: AgentAnswer> AgentQuestion<A> {
    fn new(request: AgentRequest) -> Self {
        AgentQuestion { request, answer: PhantomData }
    }

    /// What is sent.
    #[must_use]
    pub fn message(&self) -> &AgentRequest {
        &self.request
    }
}

/// A row for each question: the function that makes it and the one that answers it, the type of the
/// answer, and the message.
macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident($($field:ident: $kind:ty),*) -> $answer:ty, [$($message:tt)+];)*) => {
        /// Which answer each question has.
        impl AgentRequest {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name($($field: $kind),*) -> AgentQuestion<$answer> {
                    AgentQuestion::new(AgentRequest::$($message)+)
                }
            )*

            /// Has an agent answer it on the streams on which it came.
            pub(crate) fn dispatch(
                self,
                streams: AgentCallStreams,
                agent: &mut impl AgentRequestHandler,
            ) {
                match self {
                    $(AgentRequest::$($message)+ => {
                        agent.$name($($field,)* AgentCall::on(streams));
                    })*
                }
            }
        }

        /// Answers questions. Each call takes answers of the question's type only.
        pub(crate) trait AgentRequestHandler {
            $(
                $(#[$doc])*
                fn $name(&mut self, $($field: $kind,)* call: AgentCall<$answer>);
            )*
        }
    };
}

questions! {
    /// The agent and the resources of its machine.
    card() -> AgentDescription, [Card];
    /// All agents of the cluster.
    hosts(measure: bool) -> ClusterHosts, [Hosts { measure }];
    /// Counts bytes that follow.
    take() -> TakenBytes, [Take];
    /// Sends bytes to another agent for a while.
    send(to: SocketAddr) -> MeasuredThroughput, [Send { to }];
    /// Looks for another agent.
    join(address: SocketAddr) -> (), [Join { address }];
    /// Does a part of a run. What is said of it follows.
    part(run: Box<RunSetup>, member: u16) -> WatchedRunMessage, [Part { run, member }];
    /// Whether the machine has what the nodes of a member need.
    look(run: Box<RunSetup>, member: u16) -> MissingRequirements, [Look { run, member }];
    /// The runs of which the agent has a part.
    runs() -> Vec<RunCard>, [Runs];
    /// Watches a run from now on.
    watch(run: u64) -> WatchedRunMessage, [Watch { run }];
    /// Takes messages of another agent about its part. Nothing answers them.
    receive(run: u64, member: u16) -> Infallible, [Receive { run, member }];
    /// Connects the stream with the part's control socket.
    control(run: u64) -> (), [Control { run }];
    /// Runs a command in a node of the part.
    exec(
        run: u64,
        request: Box<ControlRequest>,
        size: Option<(u16, u16)>
    ) -> (), [Exec { run, request, size }];
    /// The files of a part that is over.
    fetch(run: u64) -> FetchedRunMessage, [Fetch { run }];
    /// The files of a part that is over are not needed any more.
    forget(run: u64) -> (), [Forget { run }];
}
