//! A region that the start of the program maps, and calls find.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::raw::RecordRegionView;

/// A region that is there at some time, or never.
#[derive(Debug)]
pub struct PublishedRegion {
    is_live: AtomicBool,
    /// INVARIANT: written at most once, before it is first live.
    region: UnsafeCell<MaybeUninit<RecordRegionView>>,
}

// SAFETY: the region is only read once it is written, and never changes after that.
unsafe impl Sync for PublishedRegion {}

impl PublishedRegion {
    /// None yet.
    pub const fn none() -> PublishedRegion {
        PublishedRegion {
            is_live: AtomicBool::new(false),
            region: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Whether there is one.
    #[inline(always)]
    pub fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Acquire)
    }

    /// The region.
    ///
    /// # Safety
    /// It has been live.
    #[inline(always)]
    pub unsafe fn get(&self) -> &RecordRegionView {
        // SAFETY: written before it was live, and never again.
        unsafe { (*self.region.get()).assume_init_ref() }
    }

    /// There is one from now on.
    ///
    /// # Safety
    /// To be called once.
    pub unsafe fn publish(&self, region: RecordRegionView) {
        // SAFETY: nothing reads it before it is live, and nothing else writes it.
        unsafe { (*self.region.get()).write(region) };
        self.is_live.store(true, Ordering::Release);
    }

    /// No call finds it any more, but one that has found it goes on with it.
    pub fn end(&self) {
        self.is_live.store(false, Ordering::Release);
    }
}
