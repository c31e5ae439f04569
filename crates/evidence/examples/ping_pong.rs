//! Writes a file of records as large as is asked for: requests and answers of several connections
//! over one link, with a loss now and then. For measuring readers.
//!
//! `cargo run --release -p windtunnel-evidence --example ping_pong -- 1000000 FOLDER` makes
//! `FOLDER/records/0001.wtr`.

use std::error::Error;
use std::net::Ipv4Addr;
use std::path::Path;

use windtunnel_evidence::file::{EventSource, LaneName, RecordFileHeader, RecordFileWriter};
use windtunnel_model::record::kind::{Call, RecordSource};
use windtunnel_model::record::{EventRecord, Kind, flag, words};

const CONNECTIONS: u32 = 50;
const US: u64 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, records, folder] = arguments.as_slice() else {
        return Err("usage: ping_pong RECORDS FOLDER".into());
    };
    let records: u64 = records.parse()?;
    let mut made = Made::default();
    let mut now = 1_000_000;
    for flow in 1..=CONNECTIONS {
        made.define(flow);
    }
    for round in 0.. {
        for flow in 1..=CONNECTIONS {
            made.round(now + u64::from(flow) * US, flow, round);
        }
        now += 2000 * US;
        if made.count() >= records {
            break;
        }
    }
    let folder = Path::new(folder).join("records");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("0001.wtr"), made.file())?;
    Ok(())
}

#[derive(Default)]
struct Made {
    engine: Vec<EventRecord>,
    client: Vec<EventRecord>,
    server: Vec<EventRecord>,
}

impl Made {
    fn count(&self) -> u64 {
        (self.engine.len() + self.client.len() + self.server.len()) as u64
    }

    fn define(&mut self, flow: u32) {
        let half = |kind: Kind, flags: u8, last: u8, port: u16| {
            let address = Ipv4Addr::new(10, 0, 0, last).to_ipv6_mapped().octets();
            EventRecord {
                time: 1,
                kind: kind as u8,
                flags,
                extra: port,
                flow,
                args: words(address),
            }
        };
        let port = 40_000 + u16::try_from(flow).unwrap_or(0);
        let client = [half(Kind::FlowFrom, 6, 1, port), half(Kind::FlowTo, 0, 2, 80)];
        let server = [half(Kind::FlowFrom, 6, 2, 80), half(Kind::FlowTo, 0, 1, port)];
        self.engine.extend(client);
        self.client.extend(client);
        self.server.extend(server);
    }

    /// A request of 100 bytes, answered by 1000 after 200 µs.
    fn round(&mut self, now: u64, flow: u32, round: u32) {
        let (request, answer) = (round * 100, round * 1000);
        let lost = round % 50 == 49;
        self.client.push(call(now, flow, Call::Write, request, 100, 5));
        if lost {
            self.engine.push(packet(Kind::Offered, now + 5 * US, flow, 0, request, 100, answer));
            self.engine.push(packet(Kind::Dropped, now + 5 * US, flow, 0, request, 100, 2));
        }
        let sent = now + if lost { 300 * US } else { 5 * US };
        self.way(sent, flow, 0, (request, 100), answer);
        let read = sent + 140 * US;
        self.server.push(call(now + 8 * US, flow, Call::Read, request, 100, read - now - 8 * US));
        let written = read + 200 * US;
        self.server.push(call(written, flow, Call::Write, answer, 1000, 8));
        self.way(written + 5 * US, flow, flag::REVERSE, (answer, 1000), request + 100);
        let came = written + 160 * US;
        self.client.push(call(now + 6 * US, flow, Call::Read, answer, 1000, came - now - 6 * US));
        self.way(came + 10 * US, flow, 0, (request + 100, 0), answer + 1000);
    }

    fn way(&mut self, at: u64, flow: u32, direction: u8, bytes: (u32, u32), ack: u32) {
        let flags = direction | flag::ACK;
        let (offset, length) = bytes;
        self.engine.push(packet(Kind::Offered, at, flow, flags, offset, length, ack));
        self.engine.push(packet(Kind::Sent, at + 10 * US, flow, flags, offset, length, 12_000));
        self.engine.push(packet(
            Kind::Delivered,
            at + 122 * US,
            flow,
            flags,
            offset,
            length,
            100_000,
        ));
    }

    fn file(mut self) -> Vec<u8> {
        let lane = |from: &str, to: &str| LaneName {
            link: "wire".to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        };
        let header = RecordFileHeader {
            nodes: vec!["client".to_owned(), "server".to_owned()],
            lanes: vec![lane("client", "server"), lane("server", "client")],
            drop_reasons: ["none", "queue", "loss"].map(str::to_owned).to_vec(),
            ..RecordFileHeader::new("ping_pong")
        };
        let (mut writer, mut bytes) = (RecordFileWriter::new(header), Vec::new());
        writer.begin(1, &mut bytes);
        let sources = [
            (EventSource::of_node(RecordSource::Calls, 0, 0), &mut self.client),
            (EventSource::of_node(RecordSource::Calls, 1, 0), &mut self.server),
            (EventSource::of_machine(RecordSource::Engine, 0), &mut self.engine),
        ];
        for (source, records) in sources {
            records.sort_by_key(|record| record.time);
            for batch in records.chunks(1000) {
                writer.add(batch[batch.len() - 1].time, source, batch, &mut bytes);
            }
        }
        bytes
    }
}

fn call(time: u64, flow: u32, call: Call, offset: u32, bytes: u32, duration: u64) -> EventRecord {
    let flags = if call == Call::Read { flag::REVERSE } else { 0 };
    let duration = u32::try_from(duration).unwrap_or(u32::MAX);
    let args = [offset, bytes, bytes, duration];
    EventRecord { time, kind: Kind::Call as u8, flags, extra: call as u16, flow, args }
}

fn packet(
    kind: Kind,
    time: u64,
    flow: u32,
    flags: u8,
    offset: u32,
    length: u32,
    value: u32,
) -> EventRecord {
    let lane = u32::from(flags & flag::REVERSE);
    EventRecord {
        time,
        kind: kind as u8,
        flags,
        extra: 1,
        flow,
        args: [offset, length, lane, value],
    }
}
