//! Frames put together again from pieces that arrive in any order.

mod ranges;

use windtunnel_model::{Span, Time};
use windtunnel_wire::tunnel::{Label, PiecePosition};

use ranges::FragmentRangeSet;

/// How long the pieces of a frame are waited for.
pub(crate) const PATIENCE: Span = Span::from_millis(50);
/// Unfinished frames of one sender at the most.
const FRAMES_MAX: usize = 64;
/// Their bytes at the most.
const BYTES_MAX: usize = 1 << 20;

/// The unfinished frames of one sender.
#[derive(Debug, Default)]
pub(crate) struct FrameReassembler {
    /// Oldest first.
    frames: Vec<PartialFrame>,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
    /// Bytes of the unfinished frames.
    bytes: usize,
    /// Numbers of the last frames that were given up: their stragglers begin nothing new.
    given_up: [Option<u32>; 32],
    given_up_next: usize,
    /// Frames given up.
    incomplete: u64,
}

#[derive(Debug)]
struct PartialFrame {
    number: u32,
    since: Time,
    label: Option<Label>,
    there: FragmentRangeSet,
    /// As long as the frame.
    bytes: Vec<u8>,
}

/// A piece that overlaps others of its frame, or has another length of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FragmentConflict;

impl FrameReassembler {
    /// Adds a piece. The one that makes its frame whole hands it to `hand`, which may leave another
    /// buffer in its place.
    ///
    /// # Errors
    /// The frame is given up if the piece contradicts others.
    pub(crate) fn add(
        &mut self,
        now: Time,
        placed: &PiecePosition,
        piece: &[u8],
        hand: impl FnOnce(&Label, &mut Vec<u8>),
    ) -> Result<(), FragmentConflict> {
        let number = placed.piece.frame;
        let total = usize::try_from(placed.piece.total).map_err(|_| FragmentConflict)?;
        let at = match self.frames.iter().position(|frame| frame.number == number) {
            Some(at) => at,
            None if self.given_up.contains(&Some(number)) => return Ok(()),
            None => self.begin(now, number, total),
        };
        let frame = &mut self.frames[at];
        let (start, end) = (placed.piece.offset, placed.piece.offset + length(piece));
        if frame.bytes.len() != total || !frame.there.insert(start, end) {
            self.give_up(at);
            return Err(FragmentConflict);
        }
        let start = usize::try_from(start).map_err(|_| FragmentConflict)?;
        frame.bytes[start..start + piece.len()].copy_from_slice(piece);
        frame.label = frame.label.or(placed.label);
        if frame.there.are_all(placed.piece.total)
            && let Some(label) = frame.label
        {
            hand(&label, &mut frame.bytes);
            self.remove(at);
        }
        Ok(())
    }

    /// Gives up frames that began [`PATIENCE`] ago, and says when the next will be.
    pub(crate) fn expire(&mut self, now: Time) -> Option<Time> {
        while let Some(due) = self.due() {
            if now < due {
                return Some(due);
            }
            self.give_up(0);
        }
        None
    }

    /// When the oldest unfinished frame is given up.
    pub(crate) fn due(&self) -> Option<Time> {
        self.frames.first().map(|frame| frame.since + PATIENCE)
    }

    /// Frames that were given up.
    pub(crate) fn incomplete(&self) -> u64 {
        self.incomplete
    }

    fn begin(&mut self, now: Time, number: u32, total: usize) -> usize {
        while self.frames.len() >= FRAMES_MAX
            || self.bytes + total > BYTES_MAX && !self.frames.is_empty()
        {
            self.give_up(0);
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.resize(total, 0);
        self.bytes += total;
        // A clock that the caller sets back does not put a frame before its elders.
        let since = self.frames.last().map_or(now, |last| last.since.max(now));
        self.frames.push(PartialFrame {
            number,
            since,
            label: None,
            there: FragmentRangeSet::default(),
            bytes,
        });
        self.frames.len() - 1
    }

    fn give_up(&mut self, at: usize) {
        self.given_up[self.given_up_next] = Some(self.frames[at].number);
        self.given_up_next = (self.given_up_next + 1) % self.given_up.len();
        self.incomplete += 1;
        self.remove(at);
    }

    fn remove(&mut self, at: usize) {
        let frame = self.frames.remove(at);
        self.bytes -= frame.bytes.len();
        self.spare.push(frame.bytes);
    }
}

/// A piece lies in one datagram.
fn length(piece: &[u8]) -> u32 {
    u32::try_from(piece.len()).unwrap_or(u32::MAX >> 1)
}
