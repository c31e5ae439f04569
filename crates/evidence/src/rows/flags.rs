//! Names of the bits of a record's flags.

use windtunnel_model::record::{Kind, flag};

use super::is_packet;
use crate::AttributedRecord;

/// By the value of the flags: their names.
#[derive(Debug)]
pub(super) struct FlagNameTable {
    packets: Vec<String>,
    calls: Vec<String>,
}

const PACKETS: [(u8, &str); 7] = [
    (flag::SYN, "syn"),
    (flag::FIN, "fin"),
    (flag::RST, "rst"),
    (flag::ACK, "ack"),
    (flag::MARKED, "marked"),
    (flag::COPY, "copy"),
    (flag::OFFSET_UNKNOWN, "offset_unknown"),
];

const CALLS: [(u8, &str); 6] = [
    (flag::NONBLOCKING, "nonblocking"),
    (flag::PEEK, "peek"),
    (flag::SHARED, "shared"),
    (flag::END_UNKNOWN, "end_unknown"),
    (flag::LONG, "long"),
    (flag::OFFSET_UNKNOWN, "offset_unknown"),
];

impl FlagNameTable {
    pub(super) fn new() -> FlagNameTable {
        let names = |bits: &[(u8, &str)]| {
            let text = |value: u8| {
                let set = bits.iter().filter(|(bit, _)| value & bit != 0);
                set.map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
            };
            (0..=u8::MAX).map(text).collect()
        };
        FlagNameTable { packets: names(&PACKETS), calls: names(&CALLS) }
    }

    /// Without the direction, which is a field of its own.
    pub(super) fn of(&self, entry: &AttributedRecord) -> &str {
        let at = usize::from(entry.record.flags);
        match entry.kind() {
            Some(Kind::Call) => &self.calls[at],
            Some(kind) if is_packet(kind) => &self.packets[at],
            _ => "",
        }
    }
}
