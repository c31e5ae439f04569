//! What the records of calls know nothing of, although another layer has seen it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use windtunnel_evidence::file::EventSource;
use windtunnel_model::record::kind::{CallBlindSpot, RecordSource};
use windtunnel_model::record::{EventRecord, Kind};

/// Whose calls should be recorded.
#[derive(Debug, Clone)]
pub enum CallRecordingScope {
    /// Those of nodes, by their addresses. Empty: of no node.
    Of(BTreeMap<IpAddr, u32>),
    /// Those of all connections of which TCP's state is recorded, of one node.
    All(u32),
}

impl Default for CallRecordingScope {
    fn default() -> Self {
        CallRecordingScope::Of(BTreeMap::new())
    }
}

impl CallRecordingScope {
    /// The node of an own address of a socket.
    fn of_socket(&self, own: IpAddr) -> Option<u32> {
        match self {
            CallRecordingScope::Of(nodes) => nodes.get(&own).copied(),
            CallRecordingScope::All(node) => Some(*node),
        }
    }

    /// The node of one of a packet's addresses.
    fn of_packet(&self, address: IpAddr) -> Option<u32> {
        match self {
            CallRecordingScope::Of(nodes) => nodes.get(&address).copied(),
            CallRecordingScope::All(_) => None,
        }
    }
}

/// Connections and processes, by node.
#[derive(Debug, Default)]
pub(super) struct UnseenCallTracker {
    homes: CallRecordingScope,
    /// Names of processes, by source and number of the process.
    names: BTreeMap<(EventSource, u32), String>,
    /// What sources of calls say that they cannot see, and how often.
    said: BTreeMap<(u32, String), u64>,
}

impl UnseenCallTracker {
    pub(super) fn new(homes: CallRecordingScope) -> UnseenCallTracker {
        UnseenCallTracker { homes, ..UnseenCallTracker::default() }
    }

    /// Looks at a definition.
    pub(super) fn learn(&mut self, source: EventSource, record: &EventRecord) {
        if source.layer != RecordSource::Calls as u8 {
            return;
        }
        if record.kind == Kind::Process as u8 {
            let bytes = record.arg_bytes();
            let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            self.names.insert((source, record.flow), name);
        } else if record.kind == Kind::Unseen as u8 {
            let why = CallBlindSpot::from_number(record.args[0]);
            let why = why.map_or("for a reason of a later version", CallBlindSpot::name);
            let name = self.names.get(&(source, record.args[1]));
            let who = name.map_or_else(|| format!("process {}", record.args[1]), Clone::clone);
            *self.said.entry((source.node, format!("{who}: {why}"))).or_default() += 1;
        }
    }

    /// By node, sentences about what is not among its calls. `flows` are all TCP connections with
    /// the sources that have seen them.
    pub(super) fn sentences(
        &self,
        flows: impl Iterator<Item = (EventSource, [(IpAddr, u16); 2])>,
    ) -> Vec<(u32, String)> {
        let (mut called, mut seen, mut passed) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (source, [one, other]) in flows {
            if source.layer == RecordSource::Calls as u8 {
                called.insert((source.node, one, other));
                continue;
            }
            if source.layer == RecordSource::Tcp as u8 {
                seen.extend(self.homes.of_socket(one.0).map(|node| (node, one, other)));
                continue;
            }
            for (own, peer) in [(one, other), (other, one)] {
                passed.extend(self.homes.of_packet(own.0).map(|node| (node, own, peer)));
            }
        }
        // Packets also go to where no socket is.
        let seen = if seen.is_empty() { passed } else { seen };
        let mut missing: BTreeMap<u32, u64> = BTreeMap::new();
        for (node, ..) in seen.difference(&called) {
            *missing.entry(*node).or_default() += 1;
        }
        let connections = missing.into_iter().map(|(node, count)| {
            (node, format!("{count} TCP connections without any call, of programs that were not seen or from before"))
        });
        let said = self.said.iter().map(|((node, what), _)| (*node, what.clone()));
        connections.chain(said).collect()
    }
}
