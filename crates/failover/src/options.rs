//! TCP options that this protocol translates (RFC 9293, 2018, 7323). All others are left out.

use alloc::vec::Vec;

/// SACK blocks of one header at the most: 40 bytes of options hold four (RFC 2018, 3).
pub(crate) const BLOCKS_MAX: usize = 4;
/// Beside a timestamp three fit.
pub(crate) const BLOCKS_MAX_STAMPED: usize = 3;
/// The largest window shift (RFC 7323, 2.3).
const SHIFT_MAX: u8 = 14;

/// The options of one header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TcpOptions {
    /// Maximum segment size.
    pub(crate) mss: Option<u16>,
    /// Window scale.
    pub(crate) shift: Option<u8>,
    /// SACK permitted.
    pub(crate) sack_permitted: bool,
    /// TSval and TSecr.
    pub(crate) stamps: Option<(u32, u32)>,
    /// SACK blocks.
    pub(crate) sacks: SackBlocks,
    /// Whether segments are authenticated: TCP-MD5 (RFC 2385) or TCP-AO (RFC 5925).
    pub(crate) is_signed: bool,
    /// Options of other kinds: fast open, multipath and the like.
    pub(crate) others: u32,
}

/// SACK blocks of one header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SackBlocks {
    items: [(u32, u32); BLOCKS_MAX],
    count: usize,
}

impl SackBlocks {
    fn add(&mut self, block: (u32, u32), max: usize) -> bool {
        if self.count >= max {
            return false;
        }
        self.items[self.count] = block;
        self.count += 1;
        true
    }
}

impl TcpOptions {
    /// Reads option bytes; what follows a contradictory length is not read (RFC 9293, 3.1).
    pub(crate) fn parse(mut bytes: &[u8]) -> Self {
        let mut options = Self::default();
        while let Some((&kind, rest)) = bytes.split_first() {
            match kind {
                END => break,
                NO_OPERATION => bytes = rest,
                _ => {
                    let length = rest.first().map_or(0, |length| usize::from(*length));
                    let Some(body) = bytes.get(2..length) else { break };
                    options.take(kind, body);
                    bytes = bytes.get(length..).unwrap_or_default();
                }
            }
        }
        options
    }

    /// SACK blocks, as sequence numbers.
    pub(crate) fn blocks(&self) -> &[(u32, u32)] {
        &self.sacks.items[..self.sacks.count]
    }

    /// Adds a SACK block; `false` if there is no room.
    pub(crate) fn add_block(&mut self, block: (u32, u32)) -> bool {
        let max = if self.stamps.is_some() { BLOCKS_MAX_STAMPED } else { BLOCKS_MAX };
        self.sacks.add(block, max)
    }

    /// Appends the bytes: a multiple of four, 40 at the most.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if let Some(mss) = self.mss {
            out.extend([MSS, 4]);
            out.extend(mss.to_be_bytes());
        }
        if self.sack_permitted {
            out.extend([NO_OPERATION, NO_OPERATION, SACK_PERMITTED, 2]);
        }
        if let Some((value, echo)) = self.stamps {
            out.extend([NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10]);
            out.extend(value.to_be_bytes());
            out.extend(echo.to_be_bytes());
        }
        if let Some(shift) = self.shift {
            out.extend([NO_OPERATION, WINDOW_SCALE, 3, shift]);
        }
        if let Ok(count @ 1..) = u8::try_from(self.sacks.count) {
            out.extend([NO_OPERATION, NO_OPERATION, SACK, 2 + count * 8]);
            for (start, end) in self.blocks() {
                out.extend(start.to_be_bytes());
                out.extend(end.to_be_bytes());
            }
        }
    }

    fn take(&mut self, kind: u8, body: &[u8]) {
        match (kind, body) {
            (MSS, &[a, b]) => self.mss = Some(u16::from_be_bytes([a, b])),
            (WINDOW_SCALE, &[shift]) => self.shift = Some(shift.min(SHIFT_MAX)),
            (SACK_PERMITTED, []) => self.sack_permitted = true,
            (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                let value = u32::from_be_bytes([a, b, c, d]);
                self.stamps = Some((value, u32::from_be_bytes([e, f, g, h])));
            }
            (SACK, blocks) => {
                for [a, b, c, d, e, f, g, h] in blocks.as_chunks::<8>().0 {
                    let start = u32::from_be_bytes([*a, *b, *c, *d]);
                    let end = u32::from_be_bytes([*e, *f, *g, *h]);
                    self.sacks.add((start, end), BLOCKS_MAX);
                }
            }
            (MD5 | AO, _) => self.is_signed = true,
            _ => self.others += 1,
        }
    }
}

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const MD5: u8 = 19;
const AO: u8 = 29;

#[cfg(test)]
mod tests {
    use super::*;

    // As Linux writes a SYN: MSS 1460, SACK permitted, timestamps 7 and 9, no operation, shift 7.
    const SYN: [u8; 20] = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 1, 3, 3, 7];

    #[test]
    fn the_options_of_a_syn_are_read_and_written() {
        let options = TcpOptions::parse(&SYN);
        assert_eq!(
            (options.mss, options.shift, options.sack_permitted),
            (Some(1460), Some(7), true)
        );
        assert_eq!(options.stamps, Some((7, 9)));
        let mut bytes = Vec::new();
        options.write(&mut bytes);
        assert_eq!((bytes.len() % 4, TcpOptions::parse(&bytes)), (0, options));
    }

    #[test]
    fn sack_blocks_are_read_and_written_beside_timestamps() {
        let mut options = TcpOptions { stamps: Some((1, 2)), ..TcpOptions::default() };
        for block in [(10, 20), (30, 40), (50, 60)] {
            assert!(options.add_block(block));
        }
        assert!(!options.add_block((70, 80)));
        let mut bytes = Vec::new();
        options.write(&mut bytes);
        assert_eq!(bytes.len(), 40);
        assert_eq!(TcpOptions::parse(&bytes).blocks(), [(10, 20), (30, 40), (50, 60)]);
    }

    #[test]
    fn other_options_are_counted_and_signatures_noticed() {
        let fast_open = [34, 2, 30, 4, 0, 0, 1, 1];
        assert_eq!(TcpOptions::parse(&fast_open).others, 2);
        let mut md5 = [0; 20];
        md5[..2].copy_from_slice(&[19, 18]);
        assert!(TcpOptions::parse(&md5).is_signed);
    }

    #[test]
    fn a_contradictory_length_ends_the_options() {
        for bytes in [&[2, 0][..], &[2, 1], &[2, 9, 0], &[3]] {
            assert_eq!(TcpOptions::parse(bytes), TcpOptions::default(), "{bytes:?}");
        }
        assert_eq!(TcpOptions::parse(&[0, 2, 4, 5, 0xb4]), TcpOptions::default());
    }
}
