//! The agents of a run's machines, asked one question at a time.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use windtunnel_control::{Reply, Request};

use crate::client::{Client, ClientError};
use crate::key::ClusterKey;
use crate::parts::Runner;
use crate::protocol::Ask;
use crate::protocol::run::Member;

/// The agents of all members of a run. Each question makes a connection of its own, and waits for
/// the answer; any thread can have a clone.
#[derive(Debug, Clone)]
pub struct RunAgents {
    run: u64,
    members: Arc<[Member]>,
    key: ClusterKey,
}

impl RunAgents {
    pub(crate) fn new(run: u64, members: &[Member], key: &ClusterKey) -> Self {
        RunAgents { run, members: members.into(), key: key.clone() }
    }

    /// Copies the files of a part that is over, once more if its agent was silent meanwhile.
    ///
    /// # Errors
    /// As [`Client::fetch`].
    pub fn fetch(&self, member: u16, folder: &Path) -> Result<(), ClientError> {
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
    /// As [`Client::fetch`].
    pub fn fetch_at_once(&self, member: u16, folder: &Path) -> Result<(), ClientError> {
        self.client(member)?.fetch(self.run, folder)
    }

    /// Informs an agent that the files of its part are needed no more, also one that was silent
    /// meanwhile.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn forget(&self, member: u16) -> Result<(), ClientError> {
        self.with_patience(member, |client| client.ask(&Ask::Forget { run: self.run }).map(|_| ()))
    }

    /// Asks a part as its control socket is asked.
    ///
    /// # Errors
    /// As [`Client::control`].
    pub fn control(&self, member: u16, request: &Request) -> Result<Reply, ClientError> {
        self.client(member)?.control(self.run, request)
    }

    /// What is needed to run a command in a node of a member, on a thread of its own.
    #[must_use]
    pub fn runner(&self, member: u16) -> Runner {
        let address = self.members[usize::from(member)].address.to_string();
        Runner::new(self.run, address, self.key.clone())
    }

    /// Asks an agent, and again for [`PATIENCE`] as long as it is silent.
    fn with_patience(
        &self,
        member: u16,
        mut ask: impl FnMut(&Client) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let error = match self.client(member) {
                Ok(client) => match ask(&client) {
                    Err(error) if client.has_timed_out() => error,
                    done => return done,
                },
                Err(error @ ClientError::NoAgent { .. }) => error,
                Err(error) => return Err(error),
            };
            if Instant::now() > until {
                return Err(error);
            }
            thread::sleep(AGAIN);
        }
    }

    fn client(&self, member: u16) -> Result<Client, ClientError> {
        match self.members.get(usize::from(member)) {
            Some(known) => Client::connect(&known.address.to_string(), &self.key),
            None => Err(ClientError::NoAgent {
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
