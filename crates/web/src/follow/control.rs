//! What a run answers: its state each second, and the properties of links when they change.

use std::thread;
use std::time::Duration;

use serde_json::json;
use windtunnel_control::{
    ControlClient, ControlClientError, ControlRequest, LaneProperties, Snapshot,
};

use super::FollowedRun;
use super::samples::DirectionPacketCounts;
use crate::hub::ServerSentEvent;

/// Asks until the run is not followed any more.
pub(super) fn follow(followed: &FollowedRun) {
    let mut seen = RunSnapshotFollower::default();
    let mut client = None;
    while !followed.has_stopped() && !followed.hub.has_ended() {
        let connected = match client.take() {
            Some(client) => Ok(client),
            None => ControlClient::connect(followed.folder()),
        };
        // A run that is over is noticed by what follows the files.
        client = connected.and_then(|client| seen.ask(client, followed)).ok();
        thread::sleep(EACH);
    }
}

/// What was last sent.
#[derive(Debug, Default)]
struct RunSnapshotFollower {
    links: Vec<LaneProperties>,
    counts: DirectionPacketCounts,
    sampled_ns: u64,
}

impl RunSnapshotFollower {
    fn ask(
        &mut self,
        mut client: ControlClient,
        followed: &FollowedRun,
    ) -> Result<ControlClient, ControlClientError> {
        if let Some(snapshot) = said(client.ask(&ControlRequest::snapshot()))? {
            let status = &snapshot.status;
            followed.hub.write(ServerSentEvent::new("status", status));
            self.sample(&snapshot, followed);
        }
        if let Some(list) = said(client.ask(&ControlRequest::links()))?
            && list.links != self.links
        {
            followed.hub.write(ServerSentEvent::new("links", &json!({ "links": list.links })));
            self.links = list.links;
        }
        Ok(client)
    }

    /// Where the samples are on other machines until the end.
    fn sample(&mut self, snapshot: &Snapshot, followed: &FollowedRun) {
        let here = followed.folder().join("links.csv").metadata().is_ok_and(|data| data.len() > 0);
        if here || snapshot.sampled_ns == self.sampled_ns {
            return;
        }
        self.sampled_ns = snapshot.sampled_ns;
        followed.hub.write(self.counts.sample(snapshot));
    }
}

/// What a run answers that is not a refusal.
fn said<A>(answer: Result<A, ControlClientError>) -> Result<Option<A>, ControlClientError> {
    match answer {
        Err(ControlClientError::Declined { .. } | ControlClientError::Unexpected(_)) => Ok(None),
        answer => answer.map(Some),
    }
}

const EACH: Duration = Duration::from_secs(1);
