//! An agent for tests.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use windtunnel_model::Span;

use crate::{AgentClient, AgentClientError, AgentConfiguration, AgentNotice, ClusterKey};

/// How long a test waits for something before it fails.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// An agent on a thread of its own.
pub(super) struct Live {
    pub(super) address: SocketAddr,
    pub(super) notices: Receiver<AgentNotice>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    pub(super) fn start(name: &str, key: &ClusterKey, join: &[SocketAddr]) -> Live {
        Self::start_with(name, key, join, |_| {})
    }

    /// Starts it with other settings than usual.
    pub(super) fn start_with(
        name: &str,
        key: &ClusterKey,
        join: &[SocketAddr],
        change: impl FnOnce(&mut AgentConfiguration),
    ) -> Live {
        let mut agent = AgentConfiguration {
            clock_offsets: None,
            listen: ([127, 0, 0, 1], 0).into(),
            advertise: None,
            join: join.iter().map(ToString::to_string).collect(),
            until_stdin_closes: false,
            name: Some(name.to_owned()),
            labels: ["rack=7".to_owned()].into(),
            cpus: Some(3),
            memory: None,
            uplink: Some("10gbit".parse().expect("a rate")),
            key: key.clone(),
            worker: None,
            look: None,
            trial: None,
            limits: Default::default(),
            folder: Default::default(),
            host_timeout: Span::from_secs(5),
            keep_results: Default::default(),
            linger: None,
        };
        change(&mut agent);
        let (sender, notices) = channel();
        let (end, ended) = oneshot::channel::<()>();
        let ended = || async move {
            // Dropped or sent: both mean the end.
            let _ = ended.await;
            Ok(())
        };
        let thread = std::thread::spawn(move || {
            agent.run_until(ended, |notice| drop(sender.send(notice))).expect("it starts");
        });
        let Ok(AgentNotice::Listening { advertise: address, .. }) = notices.recv() else {
            panic!("{name} does not listen")
        };
        Live { address, notices, end: Some(end), thread: Some(thread) }
    }

    /// Waits for a notice.
    pub(super) fn until(&self, wanted: impl Fn(&AgentNotice) -> bool) -> AgentNotice {
        let patience = Instant::now() + PATIENCE;
        loop {
            let left = patience.saturating_duration_since(Instant::now());
            let notice = self.notices.recv_timeout(left).expect("the notice comes in time");
            if wanted(&notice) {
                return notice;
            }
        }
    }

    /// Asks it to end.
    pub(super) fn end(&mut self) {
        drop(self.end.take());
    }

    pub(super) fn client(&self, key: &ClusterKey) -> Result<AgentClient, AgentClientError> {
        AgentClient::connect(&self.address.to_string(), key)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
