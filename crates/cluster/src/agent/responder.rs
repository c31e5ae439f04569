//! What an agent does with each question.

use std::convert::Infallible;
use std::net::SocketAddr;

use tokio::task::{spawn_blocking, spawn_local};
use windtunnel_control::ControlRequest;

use super::life::AgentRuntime;
use super::{AgentNotice, answer, audit, exec, now, watch};
use crate::answer_stream::AgentCall;
use crate::protocol::answers::{
    FetchedRunMessage, MeasuredThroughput, MissingRequirements, TakenBytes, WatchedRunMessage,
};
use crate::protocol::questions::AgentRequestHandler;
use crate::protocol::run::{RunCard, RunSetup};
use crate::protocol::valid::REASONS_MAX;
use crate::protocol::{AgentDescription, ClusterHosts};

/// An agent that answers a question.
pub(super) struct AgentResponder<'a, N> {
    pub(super) agent: &'a mut AgentRuntime,
    pub(super) notify: &'a mut N,
}

impl<N: FnMut(AgentNotice)> AgentRequestHandler for AgentResponder<'_, N> {
    fn card(&mut self, call: AgentCall<AgentDescription>) {
        let card = self.agent.card();
        spawn_local(call.finish(Ok(card)));
    }

    fn hosts(&mut self, measure: bool, call: AgentCall<ClusterHosts>) {
        let (card, others) = (self.agent.card(), self.agent.others());
        let carrier = self.agent.carrier.clone();
        spawn_local(async move {
            call.finish(Ok(answer::hosts(card, others, &carrier, measure).await)).await;
        });
    }

    fn take(&mut self, call: AgentCall<TakenBytes>) {
        spawn_local(async move {
            let AgentCall { to, mut rest, .. } = call;
            to.finish(answer::take(&mut rest).await).await;
        });
    }

    fn send(&mut self, destination: SocketAddr, call: AgentCall<MeasuredThroughput>) {
        let (others, carrier) = (self.agent.others(), self.agent.carrier.clone());
        spawn_local(async move {
            call.finish(answer::send(&carrier, &others, destination).await).await;
        });
    }

    fn join(&mut self, address: SocketAddr, call: AgentCall<()>) {
        self.agent.mesh.join(now(), address);
        spawn_local(call.finish(Ok(())));
    }

    fn part(&mut self, run: Box<RunSetup>, member: u16, call: AgentCall<WatchedRunMessage>) {
        let begun = audit::RunAuditRecord::of(&run, member, call.from);
        let outcome = self.agent.runs.begin(*run, member, &mut self.agent.mesh, call);
        (self.notify)(AgentNotice::RunBegun { begun, outcome });
    }

    fn look(&mut self, run: Box<RunSetup>, member: u16, call: AgentCall<MissingRequirements>) {
        let look = self.agent.look;
        spawn_local(async move {
            call.finish(looked(look, run, member).await).await;
        });
    }

    fn runs(&mut self, call: AgentCall<Vec<RunCard>>) {
        spawn_local(call.finish(Ok(self.agent.runs.cards())));
    }

    fn watch(&mut self, run: u64, call: AgentCall<WatchedRunMessage>) {
        self.agent.runs.watch(run, call);
    }

    fn receive(&mut self, run: u64, member: u16, call: AgentCall<Infallible>) {
        let events = self.agent.events.clone();
        spawn_local(watch::receive_words(call.rest, run, member, events));
    }

    fn control(&mut self, run: u64, call: AgentCall<()>) {
        spawn_local(watch::control(self.agent.runs.folder_of(run), call));
    }

    fn exec(
        &mut self,
        run: u64,
        request: Box<ControlRequest>,
        size: Option<(u16, u16)>,
        call: AgentCall<()>,
    ) {
        if let Some(command) = audit::CommandAuditRecord::of(run, &request, call.from) {
            (self.notify)(AgentNotice::Executes(command));
        }
        let runs = &self.agent.runs;
        let (folder, limits) = (runs.folder_of(run), runs.limits().clone());
        spawn_local(exec::exec(folder, limits, *request, size, call));
    }

    fn fetch(&mut self, run: u64, call: AgentCall<FetchedRunMessage>) {
        spawn_local(watch::fetch(self.agent.runs.results_of(run), call));
    }

    fn forget(&mut self, run: u64, call: AgentCall<()>) {
        spawn_local(call.finish(self.agent.runs.forget(run)));
    }
}

/// What this machine lacks of what a part of a run needs.
async fn looked(
    look: Option<fn(&RunSetup, u16) -> Vec<String>>,
    run: Box<RunSetup>,
    member: u16,
) -> Result<MissingRequirements, String> {
    let look = look.ok_or("this agent does no runs")?;
    let looked = spawn_blocking(move || look(&run, member)).await;
    let mut what = looked.unwrap_or_else(|error| vec![error.to_string()]);
    what.truncate(REASONS_MAX);
    Ok(MissingRequirements(what))
}
