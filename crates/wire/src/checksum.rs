//! The internet checksum (RFC 1071), updated in place (RFC 1624), and of whole frames.
//!
//! A *sum* is the folded one's-complement sum of big-endian words, not inverted; a *checksum* is
//! its inverse, as header fields hold it. With `NEEDS_CSUM` a field holds the sum of the
//! pseudo-header.

mod frame;
pub(crate) mod sum;

pub(crate) use frame::fill;
pub use frame::{complete, holds, verify, write_partial};
pub use sum::{add, checksum, sum, update};
