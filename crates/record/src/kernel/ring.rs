//! The ring that the programs fill, emptied into a queue for each node.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use aya::maps::{HashMap, Map, MapData};
use windtunnel_model::record::{BYTES, Kind, Record, halves};
use windtunnel_sys::bpf_ring;
use windtunnel_sys::clock;

use super::Counts;
use super::programs::{Programs, Unavailable, chain};

/// The reader's end.
pub(super) struct Ring {
    entries: bpf_ring::Ring,
    /// By namespace: node and next flow; events; lost. As `struct source` of the programs.
    sources: HashMap<MapData, u32, [u64; 3]>,
    /// By node.
    queues: BTreeMap<u32, Queue>,
    /// Keeps the map that `entries` is of.
    _map: MapData,
}

#[derive(Debug, Default)]
struct Queue {
    records: VecDeque<Record>,
    /// Of the events lost, those that a record has said.
    said: u64,
    /// When they were looked at last.
    looked: u64,
}

impl Ring {
    pub(super) fn new(programs: &mut Programs, bytes: u32) -> Result<Ring, Unavailable> {
        let refused = |error| Unavailable::new(chain(&error));
        let Map::RingBuf(map) = programs.map("ring")? else {
            return Err(Unavailable::new("the object's ring is another map"));
        };
        let entries = bpf_ring::Ring::map(map.fd(), bytes as usize)
            .map_err(|error| Unavailable::new(format!("the ring cannot be mapped: {error}")))?;
        let sources = HashMap::try_from(programs.map("sources")?).map_err(refused)?;
        Ok(Ring { entries, sources, queues: BTreeMap::new(), _map: map })
    }

    pub(super) fn add(&mut self, key: u32, node: u32) -> Result<(), Unavailable> {
        let first_flow = u64::from(FIRST_FLOW) << 32;
        let added = self.sources.insert(key, [u64::from(node) | first_flow, 0, 0], 0);
        added.map_err(|error| Unavailable::new(chain(&error)))?;
        let queue = Queue { looked: clock::monotonic_ns(), ..Queue::default() };
        self.queues.insert(node, queue);
        Ok(())
    }

    pub(super) fn counts(&self, key: u32) -> Result<Counts, Unavailable> {
        let source = self.sources.get(&key, 0);
        let [_, events, lost] = source.map_err(|error| Unavailable::new(chain(&error)))?;
        Ok(Counts { events, lost })
    }

    /// How many records wait in the ring, about, and for how many it has room.
    pub(super) fn fill(&self) -> (u64, u64) {
        let records = |bytes: usize| bytes as u64 / ENTRY_BYTES;
        (records(self.entries.waiting()), records(self.entries.bytes()))
    }

    pub(super) fn take(&mut self, key: u32, node: u32, most: usize, records: &mut Vec<Record>) {
        let now = clock::monotonic_ns();
        // Read first: what is lost after that is said the next time.
        let lost = self.counts(key).map_or(0, |counts| counts.lost);
        self.empty();
        let Some(queue) = self.queues.get_mut(&node) else { return };
        let count = most.min(queue.records.len());
        records.extend(queue.records.drain(..count));
        if queue.records.is_empty() && lost > queue.said {
            records.push(lost_record(queue.looked, now, lost - queue.said));
            queue.said = lost;
        }
        queue.looked = now;
    }

    /// Puts what is in the ring now into the queues.
    fn empty(&mut self) {
        let Ring { entries, queues, .. } = self;
        entries.read(|entry| {
            let Some((node, rest)) = entry.split_first_chunk::<4>() else { return };
            let Some((_, records)) = rest.split_first_chunk::<4>() else { return };
            let Some(queue) = queues.get_mut(&u32::from_ne_bytes(*node)) else { return };
            let (records, _) = records.as_chunks::<BYTES>();
            queue.records.extend(records.iter().map(Record::from_bytes));
        });
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("queues", &self.queues).finish_non_exhaustive()
    }
}

fn lost_record(begin: u64, end: u64, count: u64) -> Record {
    let ([begin_low, begin_high], [low, high]) = (halves(begin), halves(count));
    Record {
        time: end,
        kind: Kind::Lost as u8,
        args: [begin_low, begin_high, low, high],
        ..Record::default()
    }
}

/// A record with its node, count and the ring's own header.
const ENTRY_BYTES: u64 = 48;
/// The numbers of flows start here.
const FIRST_FLOW: u32 = 1;
