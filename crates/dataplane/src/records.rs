//! From the engine's records to the ring from which they are drained.

use std::sync::Arc;

use windtunnel_engine::{Engine, RecordSettings};
use windtunnel_model::record::{EventRecord, Kind, halves};
use windtunnel_sys::region::MappedRecordRegion;

/// What the loop records from the beginning of the run, and where to.
#[derive(Debug, Clone)]
pub struct RecordSetup {
    /// Records go to ring 0, whose only writer the loop is.
    pub region: Arc<MappedRecordRegion>,
    /// `None`: nothing until it is ordered.
    pub settings: Option<RecordSettings>,
    /// Whether flows are watched while nothing is recorded.
    pub standby: bool,
}

/// The loop's side of recording.
#[derive(Debug)]
pub(super) struct PacketLoopRecorder {
    setup: Option<RecordSetup>,
    /// Takes turns with the engine's own.
    taken: Vec<EventRecord>,
    /// What the engine has lost and the ring had no room to say.
    lost: Option<EventRecord>,
    /// Whether the run has begun: what is before is not recorded.
    has_begun: bool,
}

impl PacketLoopRecorder {
    pub(super) fn new(setup: Option<RecordSetup>) -> Self {
        PacketLoopRecorder { setup, taken: Vec::new(), lost: None, has_begun: false }
    }

    /// Lets the engine of the run record what was chosen.
    pub(super) fn begin(&mut self, engine: &mut Engine) {
        self.has_begun = true;
        if let Some(setup) = &self.setup {
            engine.recorder_mut().stand_by(setup.standby);
            if setup.settings.is_some() {
                engine.recorder_mut().record(setup.settings.clone());
            }
        }
    }

    /// Records what is chosen from now on; `None`: nothing. Without a ring nothing ever is.
    pub(super) fn choose(&mut self, settings: Option<RecordSettings>, engine: &mut Engine) {
        if let Some(setup) = &mut self.setup {
            setup.settings.clone_from(&settings);
            if self.has_begun {
                engine.recorder_mut().record(settings);
            }
        }
    }

    /// Moves what the engine has recorded to the ring. What finds no room there is counted by the
    /// ring, and what it may have defined is defined again.
    #[inline]
    pub(super) fn hand_over(&mut self, engine: &mut Engine) {
        if engine.recorder().has_records() || self.lost.is_some() {
            self.push_all(engine);
        }
    }

    fn push_all(&mut self, engine: &mut Engine) {
        let Some(setup) = &self.setup else { return };
        let mut all = true;
        engine.recorder_mut().take(&mut self.taken);
        self.taken.extend(self.lost.take());
        for record in self.taken.drain(..) {
            let pushed = setup.region.push(0, &record);
            all &= pushed;
            if !pushed && record.kind == Kind::Lost as u8 {
                self.lost = merge(self.lost, record);
            }
        }
        if !all {
            engine.recorder_mut().define_again();
        }
    }
}

/// One gap for two, of which the ring has counted one event by itself; `None`: that was all.
fn merge(before: Option<EventRecord>, after: EventRecord) -> Option<EventRecord> {
    let count = after.wide(2).saturating_sub(1) + before.map_or(0, |before| before.wide(2));
    let before = before.unwrap_or(after);
    let [begin_low, begin_high] = halves(before.wide(0).min(after.wide(0)));
    let [count_low, count_high] = halves(count);
    (count > 0).then_some(EventRecord {
        time: before.time.max(after.time),
        args: [begin_low, begin_high, count_low, count_high],
        ..after
    })
}

#[cfg(test)]
mod tests {
    use windtunnel_engine::EngineLimits;
    use windtunnel_model::record::region::RecordRegionLayout;
    use windtunnel_model::{PortId, Time};
    use windtunnel_sys::region::RecordRegionReader;
    use windtunnel_wire::vnet;

    use super::*;
    use crate::testing::plan;

    /// Sends so many packets, with a hand-over and a look at the ring after each `turn` of them:
    /// (records, definitions among them, events lost).
    fn send(packets: u64, turn: u64, room: usize, slots: u32) -> (u64, u64, u64) {
        let plan = plan("ipv6: false\nnodes: {a: {}, b: {}}\nlinks: [{between: [a, b]}]\n");
        let mut engine = Engine::new(&plan, EngineLimits { packet_memory: 1 << 20 });
        engine.recorder_mut().set_room(room);
        let layout = RecordRegionLayout { rings: 1, slots, sockets: 0 };
        let (region, _fd) = MappedRecordRegion::create(layout).expect("memory");
        let region = Arc::new(region);
        let mut reader = RecordRegionReader::new(Arc::clone(&region));
        let settings = Some(RecordSettings::default());
        let setup = RecordSetup { region, settings, standby: false };
        let mut records = PacketLoopRecorder::new(Some(setup));
        records.begin(&mut engine);
        let mut frame = [0; 60];
        // UDP over IPv4, 46 bytes.
        frame[12..18].copy_from_slice(&[0x08, 0, 0x45, 0, 0, 46]);
        frame[22..24].copy_from_slice(&[64, 17]);
        frame[38..40].copy_from_slice(&[0, 26]);
        let (mut all, mut lost) = (Vec::new(), 0);
        for number in 1..=packets {
            let now = Time::from_nanos(number);
            let express =
                engine.handle_packet(now, PortId(0), vnet::VirtioNetHeader::default(), &mut frame);
            assert!(express.is_some(), "a link without properties");
            if number % turn == 0 {
                records.hand_over(&mut engine);
                let drained = reader.drain(0, usize::MAX, &mut all);
                lost += drained.gap.map_or(0, |gap| gap.count);
            }
        }
        // What is still to be said of losses.
        records.hand_over(&mut engine);
        lost += reader.drain(0, usize::MAX, &mut all).gap.map_or(0, |gap| gap.count);
        let kind = |record: &EventRecord| Kind::from_number(record.kind).expect("a known kind");
        let defines = all.iter().filter(|record| kind(record).is_definition()).count();
        let gaps = all.iter().filter(|record| kind(record) == Kind::Lost);
        lost += gaps.clone().map(|gap| gap.wide(2)).sum::<u64>();
        let events = all.len() - defines - gaps.count();
        (events as u64, defines as u64, lost)
    }

    #[test]
    fn records_go_to_the_ring_with_the_definitions_of_their_flows() {
        assert_eq!(send(1000, 50, 4096, 4096), (2000, 2, 0));
    }

    #[test]
    fn what_neither_the_engine_nor_the_ring_has_room_for_is_counted() {
        // Definitions that find no room in the ring are counted by it, too.
        let (events, _, lost) = send(1000, 50, 40, 4096);
        assert_eq!(events + lost, 2000);
        let (events, defines, lost) = send(1000, 50, 4096, 64);
        assert!(defines > 2, "they are made again");
        assert!(lost > 0 && events + defines + lost >= 2000);
        let turns = 1000 / 50;
        assert!(events + defines + lost <= 2000 + 2 * turns, "{events} {defines} {lost}");
        let (events, _, lost) = send(1000, 50, 40, 32);
        assert!(events + lost >= 2000);
    }
}
