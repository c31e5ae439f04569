//! Blocks of the pcapng format (draft-ietf-opsawg-pcapng), little-endian, times in nanoseconds.

/// An interface of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PcapngInterface {
    pub name: String,
    pub description: String,
    /// Bytes of a packet that are kept at most; 0: all.
    pub snap_bytes: u32,
}

/// A packet of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PcapngPacket<'a> {
    /// The position of its interface.
    pub interface: u32,
    /// Nanoseconds since 1970.
    pub unix_ns: u64,
    /// The frame, from the Ethernet header on, as far as it is kept.
    pub bytes: &'a [u8],
    /// Bytes that it had.
    pub original_bytes: u32,
    pub direction: Option<CapturedPacketDirection>,
    pub comment: Option<&'a str>,
}

/// From the interface's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapturedPacketDirection {
    Inbound,
    Outbound,
}

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const ETHERNET: u16 = 1;

/// Adds the header of a section that `program` writes.
pub fn section(out: &mut Vec<u8>, program: &str, comment: &str) {
    block(out, SECTION, |body| {
        body.extend(BYTE_ORDER.to_le_bytes());
        body.extend([1, 0, 0, 0]);
        body.extend(u64::MAX.to_le_bytes());
        option(body, 1, comment.as_bytes());
        option(body, 4, program.as_bytes());
        option(body, 0, &[]);
    });
}

/// Adds an interface; they are numbered in their order.
pub fn interface(out: &mut Vec<u8>, interface: &PcapngInterface) {
    block(out, INTERFACE, |body| {
        body.extend(ETHERNET.to_le_bytes());
        body.extend([0, 0]);
        body.extend(interface.snap_bytes.to_le_bytes());
        option(body, 2, interface.name.as_bytes());
        option(body, 3, interface.description.as_bytes());
        option(body, 9, &[9]);
        option(body, 0, &[]);
    });
}

/// Adds a packet.
pub fn packet(out: &mut Vec<u8>, packet: &PcapngPacket<'_>) {
    block(out, PACKET, |body| {
        body.extend(packet.interface.to_le_bytes());
        time(body, packet.unix_ns);
        body.extend(length(packet.bytes).to_le_bytes());
        body.extend(packet.original_bytes.to_le_bytes());
        padded(body, packet.bytes);
        if let Some(comment) = packet.comment {
            option(body, 1, comment.as_bytes());
        }
        if let Some(heading) = packet.direction {
            let bits: u32 = if heading == CapturedPacketDirection::Inbound { 1 } else { 2 };
            option(body, 2, &bits.to_le_bytes());
        }
        if packet.comment.is_some() || packet.direction.is_some() {
            option(body, 0, &[]);
        }
    });
}

/// Adds the counters of an interface: packets that were seen, and those of them that were not
/// written.
pub fn statistics(out: &mut Vec<u8>, interface: u32, unix_ns: u64, seen: u64, lost: u64) {
    block(out, STATISTICS, |body| {
        body.extend(interface.to_le_bytes());
        time(body, unix_ns);
        option(body, 4, &seen.to_le_bytes());
        option(body, 5, &lost.to_le_bytes());
        option(body, 0, &[]);
    });
}

fn block(out: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    fill(out);
    let total = length(&out[start..]) + 4;
    out.extend(total.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&total.to_le_bytes());
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_le_bytes());
    padded(body, value);
}

fn padded(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend(bytes);
    body.extend(&[0; 3][..bytes.len().next_multiple_of(4) - bytes.len()]);
}

/// The upper half comes first.
fn time(body: &mut Vec<u8>, unix_ns: u64) {
    let bytes = unix_ns.to_le_bytes();
    body.extend(&bytes[4..]);
    body.extend(&bytes[..4]);
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}
