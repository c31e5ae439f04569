//! Requests that have one answer of a known type: who asks gets that, or an error, and no other reply.

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

/// Which answer each request has.
impl ControlRequest {
    /// The state of every program.
    #[must_use]
    pub fn ps() -> TypedRequest<RunStatus> {
        TypedRequest::new(ControlRequest::Ps)
    }

    /// What links do and the state of every program.
    #[must_use]
    pub fn snapshot() -> TypedRequest<Snapshot> {
        TypedRequest::new(ControlRequest::Snapshot)
    }

    /// The properties of every link.
    #[must_use]
    pub fn links() -> TypedRequest<LinkList> {
        TypedRequest::new(ControlRequest::Links)
    }

    /// Changes properties of a link.
    #[must_use]
    pub fn set(lanes: LaneChoice, patch: LinkPatch) -> TypedRequest<()> {
        TypedRequest::new(ControlRequest::Set { lanes, patch: Box::new(patch) })
    }

    /// Takes a link down or up.
    #[must_use]
    pub fn state(lanes: LaneChoice, up: bool) -> TypedRequest<()> {
        TypedRequest::new(ControlRequest::State { lanes, up })
    }

    /// Changes what limits a node, as far as that can change while it runs; `None`: it cannot.
    #[must_use]
    pub fn limit(node: &str, demand: &Demand) -> Option<TypedRequest<()>> {
        let (who, demand) = (node.to_owned(), demand.live());
        let request = ControlRequest::Limit { who, demand };
        (!demand.is_unknown()).then(|| TypedRequest::new(request))
    }

    /// What nodes and reservations have.
    #[must_use]
    pub fn reservations() -> TypedRequest<Vec<ReservationStatus>> {
        TypedRequest::new(ControlRequest::Reservations)
    }

    /// What services do, or one of them.
    #[must_use]
    pub fn services(service: Option<String>) -> TypedRequest<ServiceList> {
        TypedRequest::new(ControlRequest::Services { service })
    }

    /// Lets events happen.
    #[must_use]
    pub fn inject(events: Vec<ScheduledEvent>) -> TypedRequest<EventInjectionResult> {
        TypedRequest::new(ControlRequest::Do { events })
    }

    /// Records events from now on.
    #[must_use]
    pub fn record_start(order: RecordOrder) -> TypedRequest<RecordStatus> {
        TypedRequest::new(ControlRequest::RecordStart(order))
    }

    /// Records nothing from now on.
    #[must_use]
    pub fn record_stop() -> TypedRequest<RecordStatus> {
        TypedRequest::new(ControlRequest::RecordStop)
    }

    /// What is recorded.
    #[must_use]
    pub fn record_status() -> TypedRequest<RecordStatus> {
        TypedRequest::new(ControlRequest::RecordStatus)
    }

    /// Ends the run as if it had finished.
    #[must_use]
    pub fn stop() -> TypedRequest<()> {
        TypedRequest::new(ControlRequest::Stop)
    }
}

/// What answers requests.
pub trait RequestAnswer: Sized {
    /// What a reply says, if it is of this kind; else the reply.
    ///
    /// # Errors
    /// The reply, which is of another kind.
    fn of(reply: ControlReply) -> Result<Self, ControlReply>;
}

macro_rules! answers {
    ($($answer:ty: $reply:pat => $said:expr;)*) => {
        $(
            impl RequestAnswer for $answer {
                fn of(reply: ControlReply) -> Result<Self, ControlReply> {
                    match reply {
                        $reply => Ok($said),
                        other => Err(other),
                    }
                }
            }
        )*
    };
}

answers! {
    (): ControlReply::Done => ();
    RunStatus: ControlReply::Ps(status) => *status;
    Snapshot: ControlReply::Snapshot(snapshot) => *snapshot;
    LinkList: ControlReply::Links(list) => list;
    Vec<ReservationStatus>: ControlReply::Reservations { parts } => parts;
    ServiceList: ControlReply::Services(list) => list;
    EventInjectionResult: ControlReply::Happened(result) => result;
    RecordStatus: ControlReply::Records(status) => status;
    CaptureResult: ControlReply::Captured(result) => result;
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
    fn of_a_demand_is_asked_what_can_change_while_a_node_runs() {
        let limit = |demand: Demand| {
            ControlRequest::limit("web", &demand).map(|request| request.message().clone())
        };
        let demand = Demand { cpu_millis: Some(500), ..Demand::default() };
        let cpu = ControlRequest::Limit { who: "web".into(), demand };
        assert_eq!(limit(demand), Some(cpu));
        assert_eq!(limit(Demand::default()), None);
    }
}
