//! Finding and asking a live run.

use std::path::PathBuf;

use windtunnel_control::{Client, Reply, Request};
use windtunnel_model::Plan;

use crate::exit::Exit;
use crate::failure::Failure;

/// Which live run is meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Live {
    /// Folder of the live run
    #[arg(long, value_name = "DIR", env = "WINDTUNNEL_RUN", default_value = "runs/latest")]
    run: PathBuf,
}

impl Live {
    /// Connects to the run.
    pub(crate) fn connect(&self) -> Result<Client, Failure> {
        Ok(Client::connect(&self.run)?)
    }

    /// The plan of the run.
    pub(crate) fn plan(&self) -> Result<Plan, Failure> {
        let path = self.run.join("plan.json");
        let read = std::fs::read(&path).and_then(|json| Ok(serde_json::from_slice(&json)?));
        read.map_err(|error| {
            Failure::new(Exit::Usage, format!("cannot read {}: {error}", path.display()))
        })
    }

    /// Asks for something that is only to be done.
    pub(crate) fn order(&self, request: &Request) -> Result<Client, Failure> {
        let mut client = self.connect()?;
        match client.ask(request)? {
            Reply::Done => Ok(client),
            other => Err(Failure::unexpected(other)),
        }
    }
}
