//! The agents of a run's machines, asked one question at a time.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use windtunnel_control::{ControlReply, ControlRequest};

use crate::client::{AgentClient, AgentClientError};
use crate::key::ClusterKey;
use crate::parts::RemoteCommandRunner;
use crate::protocol::AgentRequest;
use crate::protocol::run::RunMember;

/// The agents of all members of a run. Each question makes a connection of its own, and waits for
/// the answer; any thread can have a clone.
#[derive(Debug, Clone)]
pub struct RunAgents {
    run: u64,
    members: Arc<[RunMember]>,
    key: ClusterKey,
}

impl RunAgents {
    pub(crate) fn new(run: u64, members: &[RunMember], key: &ClusterKey) -> Self {
        RunAgents { run, members: members.into(), key: key.clone() }
    }

    /// Copies the files of a part that is over, once more if its agent was silent meanwhile.
    ///
    /// # Errors
    /// As [`AgentClient::fetch`].
    pub fn fetch(&self, member: u16, folder: &Path) -> Result<(), AgentClientError> {
        let mut is_repeated = false;
        self.with_patience(member, |client| {
            // Files are made once each.
            if std::mem::replace(&mut is_repeated, true) {
                let _ = std::fs::remove_dir_all(folder);
            }
            client.fetch(self.run, folder)
        })
    }

    /// The same without patience.
    ///
    /// # Errors
    /// As [`AgentClient::fetch`].
    pub fn fetch_at_once(&self, member: u16, folder: &Path) -> Result<(), AgentClientError> {
        self.client(member)?.fetch(self.run, folder)
    }

    /// Informs an agent that the files of its part are needed no more, also one that was silent
    /// meanwhile.
    ///
    /// # Errors
    /// As [`AgentClient::ask`].
    pub fn forget(&self, member: u16) -> Result<(), AgentClientError> {
        self.with_patience(member, |client| client.ask(&AgentRequest::forget(self.run)))
    }

    /// Asks a part as its control socket is asked.
    ///
    /// # Errors
    /// As [`AgentClient::control`].
    pub fn control(
        &self,
        member: u16,
        request: &ControlRequest,
    ) -> Result<ControlReply, AgentClientError> {
        self.client(member)?.control(self.run, request)
    }

    /// What is needed to run a command in a node of a member, on a thread of its own.
    #[must_use]
    pub fn runner(&self, member: u16) -> RemoteCommandRunner {
        let address = self.members[usize::from(member)].address.to_string();
        RemoteCommandRunner::new(self.run, address, self.key.clone())
    }

    /// Asks an agent, and again for [`PATIENCE`] as long as it is silent.
    fn with_patience(
        &self,
        member: u16,
        mut ask: impl FnMut(&AgentClient) -> Result<(), AgentClientError>,
    ) -> Result<(), AgentClientError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let error = match self.client(member) {
                Ok(client) => match ask(&client) {
                    Err(error) if client.has_timed_out() => error,
                    done => return done,
                },
                Err(error @ AgentClientError::NoAgent { .. }) => error,
                Err(error) => return Err(error),
            };
            if Instant::now() > until {
                return Err(error);
            }
            thread::sleep(AGAIN);
        }
    }

    fn client(&self, member: u16) -> Result<AgentClient, AgentClientError> {
        match self.members.get(usize::from(member)) {
            Some(known) => AgentClient::connect(&known.address.to_string(), &self.key),
            None => Err(AgentClientError::NoAgent {
                host: format!("member {member}"),
                why: "the run has no such member".to_owned(),
            }),
        }
    }
}

/// For how long an agent that is silent is asked again, where the run does not need this command.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How soon.
pub(crate) const AGAIN: Duration = Duration::from_millis(500);
