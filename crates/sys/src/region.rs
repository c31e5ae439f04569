//! Regions: rings of records, and a table of sockets, in memory that processes share. The layout
//! and the protocol are those of [`windtunnel_model::record::region`]. Source: memfd_create(2),
//! mmap(2), `F_ADD_SEALS` in fcntl(2).
//!
//! What another process writes to a region can spoil its records and counts, but nothing else: the
//! layout is read once, every offset is computed from it, and every loop is bounded.

#[allow(unreachable_pub, reason = "the preload library has this file as well")]
mod raw;
mod reader;
#[allow(unreachable_pub, reason = "the preload library has this file as well")]
mod sockets;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use windtunnel_model::record;
use windtunnel_model::record::EventRecord;
use windtunnel_model::record::region::{HEADER_BYTES, MAGIC, RecordRegionLayout, VERSION, header};

use raw::RecordRegionView;

pub use reader::{RecordRegionReader, RecordRingGap, RingDrainOutcome};
pub use sockets::{
    InitialSocketEntry, RegionSocketEntry, SocketCallDirection, SocketTuple, key, unseen,
};

/// A mapped region.
#[derive(Debug)]
pub struct MappedRecordRegion {
    /// INVARIANT: the start of a live mapping of `length` bytes until drop; `raw` is of it.
    base: NonNull<u8>,
    length: usize,
    raw: RecordRegionView,
}

impl MappedRecordRegion {
    /// A new region in memory of its own, which no process can make shorter or longer.
    ///
    /// # Errors
    /// `InvalidInput` for a layout out of bounds; what memfd_create(2) and mmap(2) say.
    pub fn create(layout: RecordRegionLayout) -> io::Result<(MappedRecordRegion, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create("windtunnel-records", flags)?;
        let region = MappedRecordRegion::create_in(&fd, layout)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((region, fd))
    }

    /// A new region in a file, of which nothing is kept. A process that makes the file shorter
    /// afterwards ends all that use the region (SIGBUS).
    ///
    /// # Errors
    /// `InvalidInput` for a layout out of bounds; what ftruncate(2) and mmap(2) say.
    pub fn create_in(
        file: impl AsFd,
        layout: RecordRegionLayout,
    ) -> io::Result<MappedRecordRegion> {
        if !raw::check(&layout, u64::MAX) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{layout:?}")));
        }
        rustix::fs::ftruncate(&file, 0)?;
        rustix::fs::ftruncate(&file, layout.bytes() as u64)?;
        let region = MappedRecordRegion::map(&file, layout)?;
        let halves = [
            (header::VERSION, VERSION),
            (header::RINGS, layout.rings),
            (header::SLOTS, layout.slots),
            (header::SOCKETS, layout.sockets),
        ];
        for (at, value) in halves {
            region.raw.half(at).store(value, Ordering::Relaxed);
        }
        region.raw.word(header::MAGIC).store(MAGIC, Ordering::Release);
        Ok(region)
    }

    /// The region that another process made. Unless its maker sealed it, see
    /// [`create_in`](MappedRecordRegion::create_in) for what may happen.
    ///
    /// # Errors
    /// `InvalidData` if this is no region of this version or its layout is out of bounds or longer
    /// than the file; what fstat(2) and mmap(2) say.
    pub fn open(file: impl AsFd) -> io::Result<MappedRecordRegion> {
        let bytes = u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(0);
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        if bytes < HEADER_BYTES as u64 {
            return Err(invalid("the file is shorter than the header of a region"));
        }
        let head =
            MappedRecordRegion::map(&file, RecordRegionLayout { rings: 0, slots: 0, sockets: 0 })?;
        if head.raw.word(header::MAGIC).load(Ordering::Acquire) != MAGIC {
            return Err(invalid("the file is not a region of records"));
        }
        let half = |at| head.raw.half(at).load(Ordering::Relaxed);
        if half(header::VERSION) != VERSION {
            let version = half(header::VERSION);
            return Err(invalid(&format!("the region has version {version}, not {VERSION}")));
        }
        let layout = RecordRegionLayout {
            rings: half(header::RINGS),
            slots: half(header::SLOTS),
            sockets: half(header::SOCKETS),
        };
        if !raw::check(&layout, bytes) {
            return Err(invalid(&format!("{layout:?} does not fit a file of {bytes} bytes")));
        }
        MappedRecordRegion::map(&file, layout)
    }

    /// How rings, slots and sockets are laid out.
    #[must_use]
    pub fn layout(&self) -> RecordRegionLayout {
        self.raw.layout()
    }

    /// Writes a record to a ring (modulo the number of rings). False: there was no room, and it was
    /// counted as lost.
    #[inline]
    pub fn push(&self, ring: u32, record: &EventRecord) -> bool {
        self.raw.push(ring, record)
    }

    /// Whether events are to be recorded.
    #[must_use]
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.raw.recording() & 1 != 0
    }

    /// The word of the region that says so, which each start changes: for [`RegionSocketEntry::is_defined`] and
    /// [`RegionSocketEntry::define`].
    #[must_use]
    #[inline]
    pub fn recording(&self) -> u32 {
        self.raw.recording()
    }

    /// Starts or stops recording. Each start makes sources define their flows anew.
    pub fn set_recording(&self, on: bool) {
        let change = |word: u32| match (word & 1 != 0, on) {
            (false, true) => Some(word.wrapping_add(2) | 1),
            (true, false) => Some(word & !1),
            _ => None,
        };
        let word = self.raw.half(header::RECORDING);
        // An error says that it is so already.
        let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }

    /// Asks for entries of the UDP ports with these bits
    /// ([`bit`](windtunnel_model::record::sends::bit)).
    pub fn set_ports(&self, bits: u64) {
        self.raw.word(header::PORTS).store(bits, Ordering::Relaxed);
    }

    /// The UDP ports that entries are asked for of.
    #[must_use]
    pub fn ports(&self) -> u64 {
        self.raw.ports()
    }

    /// The number of a new flow; the first is 1.
    #[must_use]
    pub fn number_flow(&self) -> u32 {
        self.raw.number_flow()
    }

    /// The entry of a socket, by its [`key`].
    #[must_use]
    pub fn find(&self, key: u64) -> Option<RegionSocketEntry<'_>> {
        self.raw.find(key)
    }

    /// The entry of a socket with one more reference, made by `origin` where there was none;
    /// whether it is new. `None`: the table has no room, which has been counted.
    #[must_use]
    pub fn hold(
        &self,
        key: u64,
        cookie: u64,
        origin: impl FnOnce() -> InitialSocketEntry,
    ) -> Option<(RegionSocketEntry<'_>, bool)> {
        self.raw.hold(key, cookie, origin)
    }

    /// The sockets in the table, and the peers of those that are not connected.
    pub fn sockets(&self) -> impl Iterator<Item = RegionSocketEntry<'_>> {
        self.raw.entries()
    }

    /// Sockets for which the table had no entry, so far.
    #[must_use]
    pub fn sockets_refused(&self) -> u32 {
        self.raw.half(header::SOCKETS_REFUSED).load(Ordering::Relaxed)
    }

    /// The region as its writers see it.
    pub(crate) fn raw(&self) -> &RecordRegionView {
        &self.raw
    }

    fn map(file: impl AsFd, layout: RecordRegionLayout) -> io::Result<MappedRecordRegion> {
        let length = layout.bytes();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let mapped = unsafe {
            rustix::mm::mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, file, 0)
        }?;
        let base = NonNull::new(mapped.cast()).expect("mmap never maps address 0 unasked");
        // SAFETY: mapped with this length until drop, and no copy of `raw` is given away. Without
        // rings only the header is used.
        let raw = unsafe { RecordRegionView::new(base.as_ptr(), layout) };
        Ok(MappedRecordRegion { base, length, raw })
    }
}

// SAFETY: the mapping belongs to no thread, and all of it is accessed atomically.
unsafe impl Send for MappedRecordRegion {}
// SAFETY: as for `Send`.
unsafe impl Sync for MappedRecordRegion {}

impl Drop for MappedRecordRegion {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nothing that refers to it outlives
        // the region. An error could only mean that this is not a mapping, against the invariant.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.length) };
    }
}
