//! The start of the program: finds the region.

use core::ffi::{c_char, c_int};
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

unsafe extern "C" {
    /// The environment, as the C library keeps it (environ(7)).
    pub static environ: *const *const c_char;
}

/// Called by the loader before the program's own code.
#[cfg(preload)]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

#[cfg(preload)]
extern "C" fn start() {
    crate::next::find();
    // SAFETY: the C library has set it up; it is first in the order of initialisation.
    let variables = unsafe { environ };
    if variables.is_null() {
        return;
    }
    // SAFETY: the environment is a list of texts that a null ends.
    let record = unsafe { variable(variables, b"WINDTUNNEL_RECORD=") };
    // SAFETY: as above.
    let limit = unsafe { variable(variables, b"WINDTUNNEL_LIMIT=") };
    // SAFETY: as above.
    let sends = unsafe { variable(variables, b"WINDTUNNEL_SENDS=") };
    // Where calls are shown they are recorded, and wait, already.
    if record.is_none() && limit.is_none() && sends.is_none() || c::is_shown() {
        return;
    }
    crate::process::start();
    clock::start();
    // SAFETY: as above.
    let door = unsafe { variable(variables, b"WINDTUNNEL_HANDOVER=") };
    // SAFETY: the value of a variable ends with a zero.
    unsafe { crate::launch::start(door) };
    if let Some(path) = limit {
        // SAFETY: as above.
        unsafe { crate::environment::start(variables) };
        // SAFETY: as above.
        unsafe { crate::limit::open(path) };
        (0..3).for_each(crate::launch::hold_stream);
    }
    if let Some(sends) = sends {
        // SAFETY: as above.
        unsafe { crate::senders::open(sends) };
    }
    if let Some(path) = record {
        // SAFETY: as above.
        unsafe { open(path) };
    }
}

/// The value of a variable.
///
/// # Safety
/// `variables` is a list of texts that a null ends.
pub unsafe fn variable(mut variables: *const *const c_char, name: &[u8]) -> Option<*const u8> {
    loop {
        // SAFETY: up to the null.
        let text = unsafe { *variables };
        if text.is_null() {
            return None;
        }
        let mut at = 0;
        // SAFETY: the comparison stops at the first difference, hence at the text's zero.
        while at < name.len() && unsafe { *text.cast::<u8>().add(at) } == name[at] {
            at += 1;
        }
        if at == name.len() {
            // SAFETY: within the text.
            return Some(unsafe { text.cast::<u8>().add(at) });
        }
        // SAFETY: up to the null.
        variables = unsafe { variables.add(1) };
    }
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
