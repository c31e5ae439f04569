//! `receive-queue`: how much may wait that has come to a node and was not delivered yet.

use windtunnel_model::profile::QueueLimit;
use windtunnel_model::{Bytes, Packets};

use super::property::{QueueLimitForm, read_length};
use crate::grammar::{Decoder, YamlMapEntry, form};

form! {
    /// Packets or bytes.
    pub(super) ReceiveQueue: QueueLimit, by read_limit, like QueueLimitForm::schema
}

fn read_limit(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<QueueLimit> {
    let needed = "packets or bytes, such as 1000p or 1MB";
    let limit = read_length(from, field, needed)?;
    let wrong = match limit {
        QueueLimit::Time(_) => "has no rate that a time could be measured by",
        QueueLimit::Packets(Packets(0)) | QueueLimit::Bytes(Bytes(0)) => "must hold something",
        QueueLimit::Packets(Packets(packets)) if packets > PACKETS_MAX => "holds 32000p at most",
        QueueLimit::Bytes(Bytes(bytes)) if bytes > BYTES_MAX => "holds 1GB at most",
        _ => return Some(limit),
    };
    let message = format!("receive-queue {wrong}");
    from.mistake_with_hint(field.wrong(), message, format!("write {needed}"));
    None
}

const PACKETS_MAX: u64 = 32_000;
const BYTES_MAX: u64 = 1_000_000_000;
