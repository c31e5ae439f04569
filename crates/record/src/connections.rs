//! The state of TCP connections as a source that the [drain](crate::drain) asks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use windtunnel_evidence::file::EventSource;
use windtunnel_model::NodeId;
use windtunnel_model::record::EventRecord;
use windtunnel_model::record::kind::RecordSource;

use crate::diagnosis::TcpDiagnosis;
use crate::drain::PolledRecordSource;

/// Switches looking on and off; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct TcpDiagnosisSwitch {
    is_on: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<String>>>,
}

/// Looks at connections while its switch is on.
#[derive(Debug)]
pub struct TcpDiagnosisSource {
    diagnosis: TcpDiagnosis,
    switch: TcpDiagnosisSwitch,
    was_on: bool,
}

impl TcpDiagnosisSwitch {
    /// Whether connections are looked at from now on.
    pub fn set(&self, on: bool) {
        self.is_on.store(on, Ordering::Relaxed);
    }

    /// What the kernel refused first.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl TcpDiagnosisSource {
    /// Looks with `diagnosis` while `switch` is on.
    #[must_use]
    pub fn new(diagnosis: TcpDiagnosis, switch: TcpDiagnosisSwitch) -> TcpDiagnosisSource {
        TcpDiagnosisSource { diagnosis, switch, was_on: false }
    }
}

impl PolledRecordSource for TcpDiagnosisSource {
    fn ask(&mut self, is_last: bool, sink: &mut dyn FnMut(EventSource, &EventRecord)) {
        let on = self.switch.is_on.load(Ordering::Relaxed);
        let was_on = std::mem::replace(&mut self.was_on, on);
        let of_node = |node: NodeId| EventSource::of_node(RecordSource::Tcp, node.0, 0);
        let mut sink = |node: NodeId, record: &EventRecord| sink(of_node(node), record);
        if on && !was_on {
            self.diagnosis.begin_anew();
        }
        let looked = match (on, was_on) {
            // How it ends, too.
            (true, _) if is_last => self.diagnosis.look_at_all(&mut sink),
            (false, true) => self.diagnosis.look_at_all(&mut sink),
            (true, _) => self.diagnosis.poll(&mut sink),
            (false, false) => Ok(()),
        };
        if let Err(error) = looked {
            let mut failure = self.switch.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| format!("cannot look at connections: {error}"));
        }
    }
}
