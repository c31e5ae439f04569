//! The region that records go to: a file that is mapped when the program starts.

use core::ffi::c_int;
use core::sync::atomic::Ordering;

use crate::published::PublishedRegion;
use crate::raw::{RecordRegionView, check};
use crate::record::region::{HEADER_BYTES, MAGIC, RecordRegionLayout, VERSION, header};
use crate::{c, clock};

static REGION: PublishedRegion = PublishedRegion::none();

/// Whether there is a region.
#[inline(always)]
pub fn is_live() -> bool {
    REGION.is_live()
}

/// The region.
///
/// Only what was found by way of [`is_live`] may ask: descriptors are known only then.
#[inline(always)]
pub fn region() -> &'static RecordRegionView {
    // SAFETY: the caller has found it live.
    unsafe { REGION.get() }
}

/// Nothing of this process is recorded by the library from now on.
pub fn end() {
    REGION.end();
}

/// Maps the region of a file, if it is one.
///
/// # Safety
/// The path ends with a zero.
pub unsafe fn open(path: *const u8) {
    if !clock::has_processor() {
        return;
    }
    // SAFETY: the caller's.
    let region = unsafe { map_path(path) }.filter(|region| region.layout().sockets > 0);
    let Some(region) = region else { return };
    // SAFETY: this runs once.
    unsafe { REGION.publish(region) };
}

/// The region of a file, if it is one.
///
/// # Safety
/// The path ends with a zero.
pub unsafe fn map_path(path: *const u8) -> Option<RecordRegionView> {
    // SAFETY: the caller's.
    let fd = unsafe { c::open(path, c::O_RDWR_CLOEXEC) }?;
    let region = map(fd);
    c::close(fd);
    region
}

fn map(fd: c_int) -> Option<RecordRegionView> {
    let length = c::length(fd);
    if length < HEADER_BYTES as u64 {
        return None;
    }
    let base = c::map(fd, usize::try_from(length).ok()?)?;
    let nothing = RecordRegionLayout { rings: 0, slots: 0, sockets: 0 };
    // SAFETY: mapped for as long as the program lives; without rings only the header is used.
    let head = unsafe { RecordRegionView::new(base, nothing) };
    let half = |at| head.half(at).load(Ordering::Relaxed);
    if head.word(header::MAGIC).load(Ordering::Acquire) != MAGIC || half(header::VERSION) != VERSION
    {
        return None;
    }
    let layout = RecordRegionLayout {
        rings: half(header::RINGS),
        slots: half(header::SLOTS),
        sockets: half(header::SOCKETS),
    };
    // SAFETY: the layout was checked against the length that is mapped.
    check(&layout, length).then(|| unsafe { RecordRegionView::new(base, layout) })
}
