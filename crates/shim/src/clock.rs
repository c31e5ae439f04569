//! CLOCK_MONOTONIC, cheaper: the processor's counter of ticks, set by the clock every millisecond.
//!
//! Two readings of the clock for each call cost more than all the rest. Where the kernel itself keeps
//! its clock by the counter, a time is that of the last setting and the ticks since, at the rate
//! that was measured over the last 0.1 to 1 s. Within a millisecond a change of the clock's rate by
//! NTP (at most 500 ppm) makes less than 0.5 µs, the usual few ppm some nanoseconds; a setting is as
//! exact as reading counter and clock one after the other, some 20 ns. Times of a process never go
//! backwards. In all other cases the time is that of clock_gettime(2).

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use crate::c;
use crate::next;

/// Whether the counter may be used.
static IS_TRUSTED: AtomicBool = AtomicBool::new(false);

/// What the clock was set to last. Odd: it is being set.
static SEQUENCE: AtomicU64 = AtomicU64::new(0);
static TICKS: AtomicU64 = AtomicU64::new(0);
static TIME_NS: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds of a tick, times 2³²; 0: not known yet.
static RATE: AtomicU64 = AtomicU64::new(0);
/// The ticks of [`SPAN_NS`] at that rate.
static LIMIT: AtomicU64 = AtomicU64::new(0);
/// Where the rate is measured from.
static FROM_TICKS: AtomicU64 = AtomicU64::new(0);
static FROM_NS: AtomicU64 = AtomicU64::new(0);

/// Uses the counter if the kernel does so.
pub fn start() {
    IS_TRUSTED.store(counter::is_steady() && kernel_uses_counter(), Ordering::Relaxed);
}

/// Forgets what was measured: in the child of a fork another thread may have been measuring.
pub fn restart() {
    RATE.store(0, Ordering::Relaxed);
    FROM_NS.store(0, Ordering::Relaxed);
    SEQUENCE.store(0, Ordering::Release);
}

/// Nanoseconds of CLOCK_MONOTONIC.
#[inline(always)]
pub fn now() -> u64 {
    time_of(counter::ticks())
}

/// The same, and a number that threads on other processors do not have.
#[inline(always)]
pub fn now_and_processor() -> (u64, u32) {
    let (ticks, processor) = counter::ticks_and_processor();
    (time_of(ticks), processor)
}

#[inline(always)]
fn time_of(ticks: u64) -> u64 {
    let sequence = SEQUENCE.load(Ordering::Acquire);
    let since = ticks.wrapping_sub(TICKS.load(Ordering::Relaxed));
    let (time, rate) = (TIME_NS.load(Ordering::Relaxed), RATE.load(Ordering::Relaxed));
    let limit = LIMIT.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    if since < limit && sequence & 1 == 0 && SEQUENCE.load(Ordering::Relaxed) == sequence {
        return time + ((since * rate) >> 32);
    }
    set()
}

/// Reads the clock, and sets ours by it.
#[cold]
#[inline(never)]
fn set() -> u64 {
    if !IS_TRUSTED.load(Ordering::Relaxed) {
        return clock_gettime();
    }
    let before = counter::ticks();
    let time = clock_gettime();
    let after = counter::ticks();
    let sequence = SEQUENCE.load(Ordering::Relaxed);
    let taken = SEQUENCE.compare_exchange(
        sequence & !1,
        sequence | 1,
        Ordering::Acquire,
        Ordering::Relaxed,
    );
    // Another thread sets it, or this one was kept from running in between.
    if taken.is_err() {
        return time;
    }
    if after.wrapping_sub(before) < APART_TICKS {
        measure(before + (after - before) / 2, time);
    }
    SEQUENCE.store((sequence | 1) + 1, Ordering::Release);
    time
}

/// Counter and clock read as these: sets time and rate.
fn measure(ticks: u64, time: u64) {
    let (last_ticks, rate) = (TICKS.load(Ordering::Relaxed), RATE.load(Ordering::Relaxed));
    let since = ticks.saturating_sub(last_ticks);
    // What readers may have seen, when it is a little later than the clock.
    let shown = match since < LIMIT.load(Ordering::Relaxed) * 2 {
        true => TIME_NS.load(Ordering::Relaxed) + ((since * rate) >> 32),
        false => 0,
    };
    let is_near = shown > time && shown - time < NEAR_NS;
    TICKS.store(ticks, Ordering::Relaxed);
    TIME_NS.store(if is_near { shown } else { time }, Ordering::Relaxed);
    let from_ns = FROM_NS.load(Ordering::Relaxed);
    let spent = time.saturating_sub(from_ns);
    let measured = ticks.saturating_sub(FROM_TICKS.load(Ordering::Relaxed));
    if from_ns == 0 || spent > RATE_NS_MAX {
        FROM_TICKS.store(ticks, Ordering::Relaxed);
        FROM_NS.store(time, Ordering::Relaxed);
    }
    // One that was begun too long ago says nothing of today's rate, unless there is no other.
    if from_ns == 0 || spent < RATE_NS_MIN || measured == 0 || spent > RATE_NS_MAX * 8 {
        return;
    }
    let rate = (u128::from(spent) << 32) / u128::from(measured);
    let limit = u128::from(SPAN_NS) * u128::from(measured) / u128::from(spent);
    RATE.store(rate as u64, Ordering::Relaxed);
    LIMIT.store(limit as u64, Ordering::Relaxed);
}

fn clock_gettime() -> u64 {
    const MONOTONIC: c_int = 1;
    let mut time = [0; 2];
    // SAFETY: the structure has two words of eight bytes.
    unsafe { next::clock_gettime(MONOTONIC, &raw mut time) };
    time[0] as u64 * 1_000_000_000 + time[1] as u64
}

/// Whether the kernel's clock is this counter, so that it has found it steady on all processors.
fn kernel_uses_counter() -> bool {
    let path = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    // SAFETY: the path ends with a zero.
    let Some(fd) = (unsafe { c::open(path.as_ptr().cast(), c::O_CLOEXEC) }) else { return false };
    let mut name = [0; 32];
    let length = c::read(fd, &mut name);
    c::close(fd);
    counter::NAMES.iter().any(|known| name[..length] == **known)
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use core::arch::x86_64::{__cpuid, __rdtscp, _rdtsc};

    /// Clock sources of the kernel that are this counter.
    pub(super) const NAMES: &[&[u8]] =
        &[b"tsc\n", b"kvm-clock\n", b"hyperv_clocksource_tsc_page\n"];

    #[inline(always)]
    pub(super) fn ticks() -> u64 {
        // SAFETY: no processor with 64 bits lacks it.
        unsafe { _rdtsc() }
    }

    #[inline(always)]
    pub(super) fn ticks_and_processor() -> (u64, u32) {
        let mut processor = 0;
        // SAFETY: `is_steady` requires the instruction; where it was not there the region is not
        // used. Linux keeps the number of the processor in the low twelve bits.
        let ticks = unsafe { __rdtscp(&raw mut processor) };
        (ticks, processor & 0xfff)
    }

    /// Whether the counter runs at one rate always, and can be read with the processor's number.
    pub(super) fn is_steady() -> bool {
        has(0x8000_0007, 8) && has_processor()
    }

    /// Whether `rdtscp` is there: since 2006.
    pub(super) fn has_processor() -> bool {
        has(0x8000_0001, 27)
    }

    fn has(leaf: u32, bit: u32) -> bool {
        __cpuid(0x8000_0000).eax >= leaf && __cpuid(leaf).edx >> bit & 1 == 1
    }
}

#[cfg(target_arch = "aarch64")]
mod counter {
    use core::arch::asm;

    pub(super) const NAMES: &[&[u8]] = &[b"arch_sys_counter\n"];

    #[inline(always)]
    pub(super) fn ticks() -> u64 {
        let ticks;
        // SAFETY: reading the counter has no effect.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }

    /// There is no cheap number of the processor: that of the thread's stack serves.
    #[inline(always)]
    pub(super) fn ticks_and_processor() -> (u64, u32) {
        let here = 0_u8;
        let stack = (&raw const here) as usize >> 16;
        (ticks(), (stack.wrapping_mul(0x9e37_79b9) >> 16) as u32 & 0xfff)
    }

    pub(super) fn is_steady() -> bool {
        true
    }

    pub(super) fn has_processor() -> bool {
        true
    }
}

/// Whether [`now_and_processor`] can be used.
pub fn has_processor() -> bool {
    counter::has_processor()
}

/// How long a setting holds.
const SPAN_NS: u64 = 1_000_000;
/// What the rate is measured over: long enough that reading both does not matter, short enough that
/// the clock's rate is today's.
const RATE_NS_MIN: u64 = 20_000_000;
const RATE_NS_MAX: u64 = 500_000_000;
/// Readings of the counter before and after the clock, at the most: some 200 ns.
const APART_TICKS: u64 = 600;
/// Times are held where they are rather than set back by less than this.
const NEAR_NS: u64 = 1_000;
