//! Requests, each with the type of its answer: who asks gets that, or an error, and no other reply;
//! who is asked cannot answer anything else.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::marker::PhantomData;

use windtunnel_model::LinkPatch;
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::ScheduledEvent;

use crate::message::{
    CaptureResult, ControlReply, ControlRequest, EventInjectionResult, LaneChoice, LinkList,
    RecordOrder, RecordStatus, ReservationStatus, RunStatus, Snapshot,
};
use crate::services::ServiceList;

/// A request, and the type of its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedRequest<A> {
    request: ControlRequest,
    answer: PhantomData<A>,
}

impl<A: RequestAnswer> TypedRequest<A> {
    fn new(request: ControlRequest) -> Self {
        TypedRequest { request, answer: PhantomData }
    }

    /// What is sent.
    #[must_use]
    pub fn message(&self) -> &ControlRequest {
        &self.request
    }
}

/// A row for each request: the function that makes it and the one that does it, the type of the
/// answer, and the message.
macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident($($field:ident: $kind:ty),*) -> $answer:ty, [$($message:tt)+];)*) => {
        /// Which answer each request has.
        impl ControlRequest {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name($($field: $kind),*) -> TypedRequest<$answer> {
                    TypedRequest::new(ControlRequest::$($message)+)
                }
            )*

            /// Has what is asked done.
            pub fn dispatch<H: ControlRequestHandler>(self, handler: &mut H) -> H::Conclusion {
                match self {
                    $(ControlRequest::$($message)+ => {
                        let outcome = handler.$name($($field),*);
                        handler.conclude(outcome)
                    })*
                }
            }
        }

        /// Does what is asked. What comes of each request has the type of its answer.
        pub trait ControlRequestHandler {
            /// What comes of a request whose answer is an `A`: one, or why there is none yet, or none at
            /// all.
            type Outcome<A: RequestAnswer>;
            /// What is made of any outcome.
            type Conclusion;

            /// Answers the request.
            fn conclude<A: RequestAnswer>(&mut self, outcome: Self::Outcome<A>) -> Self::Conclusion;

            $(
                $(#[$doc])*
                fn $name(&mut self, $($field: $kind),*) -> Self::Outcome<$answer>;
            )*
        }
    };
}

requests! {
    /// The state of every program.
    ps() -> RunStatus, [Ps];
    /// What links do and the state of every program.
    snapshot() -> Snapshot, [Snapshot];
    /// The properties of every link.
    links() -> LinkList, [Links];
    /// Runs a command in a node.
    exec(
        node: String,
        argv: Vec<String>,
        cwd: Option<String>,
        env: BTreeMap<String, String>,
        terminal: bool
    ) -> CommandProgress, [Exec { node, argv, cwd, env, terminal }];
    /// Sends a signal to the command that this connection runs. Nothing answers it.
    signal(signal: i32) -> Infallible, [Signal { signal }];
    /// Changes properties of a link.
    set(lanes: LaneChoice, patch: Box<LinkPatch>) -> (), [Set { lanes, patch }];
    /// Changes limits of what programs of a node use together.
    limit(who: String, demand: Demand) -> (), [Limit { who, demand }];
    /// What nodes and reservations have.
    reservations() -> Vec<ReservationStatus>, [Reservations];
    /// What services do, or one of them.
    services(service: Option<String>) -> ServiceList, [Services { service }];
    /// Takes a link down or up.
    state(lanes: LaneChoice, up: bool) -> (), [State { lanes, up }];
    /// Lets events happen.
    inject(events: Vec<ScheduledEvent>) -> EventInjectionResult, [Do { events }];
    /// Records events from now on.
    record_start(order: RecordOrder) -> RecordStatus, [RecordStart(order)];
    /// Records nothing from now on.
    record_stop() -> RecordStatus, [RecordStop];
    /// What is recorded.
    record_status() -> RecordStatus, [RecordStatus];
    /// Writes frames of a node or link to the descriptor that the message carries. The answer says that it
    /// has begun; when it is over, a [`CaptureResult`] follows.
    capture(place: String, snap_bytes: u32) -> (), [Capture { place, snap_bytes }];
    /// Ends the capture of this connection.
    capture_end() -> CaptureResult, [CaptureEnd];
    /// Ends the run as if it had finished.
    stop() -> (), [Stop];
}

impl ControlRequest {
    /// Changes what limits a node, as far as that can change while it runs; `None`: it cannot.
    #[must_use]
    pub fn live_limit(node: &str, demand: &Demand) -> Option<TypedRequest<()>> {
        let demand = demand.live();
        (!demand.is_unknown()).then(|| ControlRequest::limit(node.to_owned(), demand))
    }
}

/// What becomes of a command that is run in a node: the first two end it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandProgress {
    /// It could not be started.
    NotRun {
        /// As of [`ControlReply::NotRun`].
        message: String,
        exit: Option<u8>,
    },
    /// It has ended with this code.
    Exited { code: u8 },
    /// It runs, with this process id inside the node.
    Started { pid: i32 },
}

/// What answers requests.
pub trait RequestAnswer: Sized {
    /// What a reply says, if it is of this kind; else the reply.
    ///
    /// # Errors
    /// The reply, which is of another kind.
    fn of(reply: ControlReply) -> Result<Self, ControlReply>;

    /// The reply that says this.
    fn into_reply(self) -> ControlReply;
}

macro_rules! answers {
    ($($answer:ty: $reply:pat => $said:expr, $own:pat => $made:expr;)*) => {
        $(
            impl RequestAnswer for $answer {
                fn of(reply: ControlReply) -> Result<Self, ControlReply> {
                    match reply {
                        $reply => Ok($said),
                        other => Err(other),
                    }
                }

                fn into_reply(self) -> ControlReply {
                    let $own = self;
                    $made
                }
            }
        )*
    };
}

answers! {
    (): ControlReply::Done => (), () => ControlReply::Done;
    RunStatus: ControlReply::Ps(status) => *status, status => ControlReply::Ps(Box::new(status));
    Snapshot: ControlReply::Snapshot(all) => *all, all => ControlReply::Snapshot(Box::new(all));
    LinkList: ControlReply::Links(list) => list, list => ControlReply::Links(list);
    Vec<ReservationStatus>: ControlReply::Reservations { parts } => parts,
        parts => ControlReply::Reservations { parts };
    ServiceList: ControlReply::Services(list) => list, list => ControlReply::Services(list);
    EventInjectionResult: ControlReply::Happened(result) => result,
        result => ControlReply::Happened(result);
    RecordStatus: ControlReply::Records(status) => status, status => ControlReply::Records(status);
    CaptureResult: ControlReply::Captured(result) => result,
        result => ControlReply::Captured(result);
}

impl RequestAnswer for CommandProgress {
    fn of(reply: ControlReply) -> Result<Self, ControlReply> {
        match reply {
            ControlReply::NotRun { message, exit } => Ok(CommandProgress::NotRun { message, exit }),
            ControlReply::Exited { code } => Ok(CommandProgress::Exited { code }),
            ControlReply::Started { pid } => Ok(CommandProgress::Started { pid }),
            other => Err(other),
        }
    }

    fn into_reply(self) -> ControlReply {
        match self {
            CommandProgress::NotRun { message, exit } => ControlReply::NotRun { message, exit },
            CommandProgress::Exited { code } => ControlReply::Exited { code },
            CommandProgress::Started { pid } => ControlReply::Started { pid },
        }
    }
}

/// No reply is one.
impl RequestAnswer for Infallible {
    fn of(reply: ControlReply) -> Result<Self, ControlReply> {
        Err(reply)
    }

    fn into_reply(self) -> ControlReply {
        match self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_of_another_kind_is_no_answer() {
        assert_eq!(<()>::of(ControlReply::Done), Ok(()));
        let error = || ControlReply::Error { message: "no".to_owned(), hint: None };
        assert_eq!(<()>::of(error()), Err(error()));
        let none = || ControlReply::Records(RecordStatus::default());
        assert_eq!(RecordStatus::of(none()), Ok(RecordStatus::default()));
        assert_eq!(RunStatus::of(none()), Err(none()));
    }

    #[test]
    fn an_answer_is_the_reply_that_it_is_read_from() {
        let progress = CommandProgress::NotRun { message: "no".to_owned(), exit: Some(127) };
        assert_eq!(CommandProgress::of(progress.clone().into_reply()), Ok(progress));
        assert_eq!(().into_reply(), ControlReply::Done);
        let result = CaptureResult { packets: 3, lost: 1, reader_gone: false, failure: None };
        assert_eq!(CaptureResult::of(result.clone().into_reply()), Ok(result));
        assert!(Infallible::of(ControlReply::Done).is_err());
    }

    #[test]
    fn of_a_demand_is_asked_what_can_change_while_a_node_runs() {
        let limit = |demand: Demand| {
            ControlRequest::live_limit("web", &demand).map(|request| request.message().clone())
        };
        let demand = Demand { cpu_millis: Some(500), ..Demand::default() };
        let cpu = ControlRequest::Limit { who: "web".into(), demand };
        assert_eq!(limit(demand), Some(cpu));
        assert_eq!(limit(Demand::default()), None);
    }
}
