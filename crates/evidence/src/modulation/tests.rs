use super::*;
use crate::explain::tests::wire::{LANES, Wire, data};
use crate::history::EndpointRole::{Client, Server};

/// MAGNeT's picture: 10 KB each 0.2 s leave as packets of 1448 bytes.
#[test]
fn writes_of_10_kb_become_packets_of_1448_bytes() {
    const MS: u64 = 1_000_000;
    let mut wire = Wire::new([(0, MS); 4]);
    for burst in 0..5_u64 {
        let (time, from) = (burst * 200 * MS, burst * 10_000);
        wire.write(Client, (time, time + 5_000), (from, from + 10_000));
        let mut came = 0;
        for packet in 0..7_u32 {
            let (offset, length) =
                (from + u64::from(packet) * 1448, 1448.min(10_000 - packet * 1448));
            came = wire.send(Client, time + 20_000, data(offset, length)).unwrap();
        }
        wire.read(Server, (came + 7_000, came + 9_000), (from, from + 10_000));
    }
    let [forward, reverse] = of(&wire.history(), &LANES).unwrap();
    let (writes, packets) = (forward.writes.unwrap(), forward.packets.unwrap());
    assert_eq!((writes.count, writes.size.p50), (5, 10_000));
    assert_eq!(writes.spacing_ns.unwrap().p50, 200 * MS);
    assert_eq!((packets.count, packets.size.p50, packets.size.min), (35, 1448, 1312));
    assert_eq!(packets.bytes, writes.bytes);
    assert_eq!(packets.spacing_ns.unwrap().p50, 0);
    assert_eq!(forward.to_wire_ns.unwrap().max, 20_000);
    assert_eq!(forward.to_program_ns.unwrap().min, 9_000);
    assert_eq!((reverse.writes, reverse.packets), (None, None));
}

#[test]
fn a_train_counts_as_its_segments() {
    let sizes: Vec<u64> = segments(1, 3000, 1448).map(|(_, size)| size).collect();
    assert_eq!(sizes, [1448, 1448, 104]);
}
