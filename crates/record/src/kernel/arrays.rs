//! The arrays that the programs share with this process, with the layout of `bpf/kernel.bpf.c`.

use std::sync::atomic::Ordering;

use aya::maps::{Map, MapData};
use windtunnel_model::record::{BYTES, EventRecord};
use windtunnel_sys::bpf_array::BpfArray;

use super::KernelEventCounts;
use super::programs::{BpfProgramSet, KernelLayerFailure};

/// Rings with their slots, and sources.
#[derive(Debug)]
pub(super) struct KernelRecordArrays {
    rings: BpfArray,
    slots: BpfArray,
    sources: BpfArray,
    pub(super) cpus: u32,
    /// Of each ring.
    pub(super) ring_slots: u32,
    /// Keeps the maps.
    _maps: Vec<MapData>,
}

/// What is in the slot for a record.
pub(super) enum KernelRecordSlot {
    /// The number of its node, and the record.
    Written(u32, EventRecord),
    /// A program has taken the slot, and writes it now.
    Taken,
    /// A later record is there: more programs than the spare slots are for have interrupted others.
    Overwritten,
}

impl KernelRecordArrays {
    pub(super) fn map(
        programs: &mut BpfProgramSet,
    ) -> Result<KernelRecordArrays, KernelLayerFailure> {
        let (cpus, ring_slots) = (programs.cpus, programs.slots);
        let mut maps = Vec::new();
        let mut map = |name, bytes| {
            let Map::Array(map) = programs.map(name)? else {
                return Err(KernelLayerFailure::new(format!(
                    "the object's map {name} is no array"
                )));
            };
            let array = BpfArray::map(map.fd(), bytes);
            maps.push(map);
            array.map_err(|error| {
                KernelLayerFailure::new(format!("{name} cannot be mapped: {error}"))
            })
        };
        Ok(KernelRecordArrays {
            rings: map("rings", cpus as usize * RING_BYTES)?,
            slots: map("slots", cpus as usize * ring_slots as usize * SLOT_BYTES)?,
            sources: map("sources", SOURCES * SOURCE_BYTES)?,
            cpus,
            ring_slots,
            _maps: maps,
        })
    }

    /// How many records a ring has had.
    pub(super) fn head(&self, cpu: u32) -> u64 {
        self.rings.word(cpu as usize * RING_BYTES).load(Ordering::Acquire)
    }

    /// How many events were lost, of all sources.
    pub(super) fn lost(&self) -> u64 {
        let of = |cpu| self.rings.word(cpu as usize * RING_BYTES + RING_LOST);
        (0..self.cpus).map(|cpu| of(cpu).load(Ordering::Acquire)).sum()
    }

    /// Gives the slots of a ring back, of its records up to this one.
    pub(super) fn set_tail(&self, cpu: u32, tail: u64) {
        self.rings.word(cpu as usize * RING_BYTES + RING_TAIL).store(tail, Ordering::Release);
    }

    /// The record of a ring that has so many before it.
    pub(super) fn slot(&self, cpu: u32, turn: u64) -> KernelRecordSlot {
        #[expect(clippy::cast_possible_truncation, reason = "less than the number of slots")]
        let index = (turn & u64::from(self.ring_slots - 1)) as usize;
        let at = (cpu as usize * self.ring_slots as usize + index) * SLOT_BYTES;
        let word = |offset: usize| self.slots.word(at + offset);
        let written = word(0).load(Ordering::Acquire);
        if written != turn + 1 {
            return if written > turn + 1 {
                KernelRecordSlot::Overwritten
            } else {
                KernelRecordSlot::Taken
            };
        }
        let mut bytes = [0; BYTES];
        for (index, chunk) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *chunk = word(SLOT_RECORD + index * 8).load(Ordering::Relaxed).to_ne_bytes();
        }
        #[expect(clippy::cast_possible_truncation, reason = "the first half of the word")]
        KernelRecordSlot::Written(
            word(SLOT_NODE).load(Ordering::Relaxed) as u32,
            EventRecord::from_bytes(&bytes),
        )
    }

    /// Adds a source; its place.
    pub(super) fn add(&self, key: u32, node: u32) -> Result<usize, KernelLayerFailure> {
        let places = (0..PLACES).map(|place| (key as usize + place) % SOURCES * SOURCE_BYTES);
        let mut free =
            places.filter(|place| self.sources.word(*place).load(Ordering::Relaxed) == 0);
        let place = free.next().ok_or_else(|| {
            KernelLayerFailure::new(format!("no place is free for the network namespace {key}"))
        })?;
        let words = [u64::from(key) | u64::from(node) << 32, FIRST_FLOW, 0, 0];
        for (index, word) in words.into_iter().enumerate().rev() {
            self.sources.word(place + index * 8).store(word, Ordering::Release);
        }
        Ok(place)
    }

    /// Whether the programs record the source at a place; one is added so that they do.
    pub(super) fn set_on(&self, place: usize, is_on: bool) {
        let word = self.sources.word(place + SOURCE_OFF);
        if is_on {
            word.fetch_and(!IS_OFF, Ordering::Relaxed);
        } else {
            word.fetch_or(IS_OFF, Ordering::Relaxed);
        }
    }

    /// What the programs have counted for the source at a place.
    pub(super) fn counts(&self, place: usize) -> KernelEventCounts {
        let word = |offset| self.sources.word(place + offset).load(Ordering::Acquire);
        KernelEventCounts { events: word(SOURCE_EVENTS), lost: word(SOURCE_LOST) }
    }
}

/// `struct ring`: the head is its first word.
const RING_BYTES: usize = 128;
const RING_LOST: usize = 8;
const RING_TAIL: usize = 64;
/// `struct slot`: the turn is its first word.
const SLOT_BYTES: usize = 48;
const SLOT_NODE: usize = 8;
const SLOT_RECORD: usize = 16;
/// `struct source`: key and node are its first word, the next flow and `is_off` its second.
const SOURCE_BYTES: usize = 32;
const SOURCE_OFF: usize = 8;
const IS_OFF: u64 = if cfg!(target_endian = "little") { 1 << 32 } else { 1 };
const SOURCE_EVENTS: usize = 16;
const SOURCE_LOST: usize = 24;
/// As the programs number them.
const SOURCES: usize = 65536;
const PLACES: usize = 4;
/// The numbers of flows start here.
const FIRST_FLOW: u64 = if cfg!(target_endian = "little") { 1 } else { 1 << 32 };
