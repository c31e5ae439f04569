//! Packets really pass between two nodes: a cable stands in for the engine.

use std::io::ErrorKind;
use std::time::Duration;

use windtunnel_model::plan::ROUTER_MAC;
use windtunnel_node::{ExitStatus, NodeInitReply, NodeInitRequest, RunningNode};
use windtunnel_sys::packet::{PacketSender, PacketSocket, TransmitFrame};
use windtunnel_sys::poll::{self, PollFd, PollFlags};

use crate::Case;
use crate::support::{World, address, read_to_end, row, start};

pub(crate) const CASES: &[Case] = &[
    ("echoes cross a cable in both families", echoes),
    ("echoes without an answer are lost", lost),
    ("tcp crosses a cable", tcp),
];

/// Joins the two nodes of a row.
struct Cable {
    socket: PacketSocket,
    ends: [u32; 2],
    macs: [[u8; 6]; 2],
    whole: bool,
}

impl Cable {
    fn between(world: &World) -> Cable {
        let socket = PacketSocket::open(256).unwrap();
        let ends = [world.node_set.fabric()[0], world.node_set.fabric()[1]];
        let macs = [0, 1].map(|node| world.plan.nodes[node].interfaces[0].mac());
        Cable { socket, ends, macs, whole: true }
    }

    /// Carries frames until the node reports something.
    fn carry_until_reply(&mut self, node: &RunningNode) -> NodeInitReply {
        loop {
            let mut watched =
                [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(node, PollFlags::IN)];
            let ready = poll::wait(&mut watched, Some(Duration::from_secs(20))).unwrap();
            assert_ne!(ready, 0, "nothing moves any more");
            self.carry();
            if let Some(reply) = node.recv().unwrap() {
                return reply;
            }
        }
    }

    fn carry(&mut self) {
        let (ring, mut sender) = self.socket.split();
        while let Some(mut slot) = ring.next() {
            let Some(from) = self.ends.iter().position(|end| *end == slot.interface()) else {
                continue;
            };
            let to = 1 - from;
            let (vnet_header, frame) = slot.parts_mut();
            // A node's frames name itself as their destination, because no node resolves addresses.
            assert_eq!(frame[..6], self.macs[from]);
            frame[..6].copy_from_slice(&self.macs[to]);
            frame[6..12].copy_from_slice(&ROUTER_MAC);
            let frame = TransmitFrame { interface: self.ends[to], vnet_header, frame };
            if self.whole {
                send(&mut sender, frame);
            }
        }
    }
}

/// Sends a frame once there is room: the kernel may still be delivering those before it.
fn send(sender: &mut PacketSender<'_>, frame: TransmitFrame<'_>) {
    loop {
        match sender.send(&[frame]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut watched = [PollFd::new(sender, PollFlags::OUT)];
                let ready = poll::wait(&mut watched, Some(Duration::from_secs(20))).unwrap();
                assert_ne!(ready, 0, "no room any more");
            }
            sent => return assert_eq!(sent.unwrap(), 1),
        }
    }
}

fn echoes() {
    let world = World::new(row(&["a", "b"]));
    let mut cable = Cable::between(&world);
    for v6 in [false, true] {
        let address = address(&world.plan, "b", v6);
        let request =
            NodeInitRequest::Echo { token: 8, address, count: 20, interval_ns: 1_000_000 };
        world.node("a").send(&request, &[]).unwrap();
        let NodeInitReply::EchoDone { token: 8, echoes, error: None, .. } =
            cable.carry_until_reply(world.node("a"))
        else {
            panic!("echoes were lost");
        };
        assert_eq!(echoes.len(), 20);
        let rtts_ns: Vec<u64> = echoes.iter().filter_map(|(_, rtt)| *rtt).collect();
        assert_eq!(rtts_ns.len(), 20, "{echoes:?}");
        assert!(rtts_ns.iter().all(|rtt| (1_000..1_000_000_000).contains(rtt)), "{rtts_ns:?}");
        assert!(echoes.is_sorted_by(|(one, _), (two, _)| one < two), "{echoes:?}");
    }
}

fn lost() {
    let world = World::new(row(&["a", "b"]));
    let mut cable = Cable::between(&world);
    cable.whole = false;
    let address = address(&world.plan, "b", false);
    let request = NodeInitRequest::Echo { token: 1, address, count: 2, interval_ns: 1_000_000 };
    world.node("a").send(&request, &[]).unwrap();
    let NodeInitReply::EchoDone { token: 1, echoes, error: None, .. } =
        cable.carry_until_reply(world.node("a"))
    else {
        panic!("no result");
    };
    let answers: Vec<_> = echoes.iter().map(|(_, rtt)| *rtt).collect();
    assert_eq!(answers, [None, None]);
}

fn tcp() {
    let world = World::new(row(&["a", "b"]));
    let mut cable = Cable::between(&world);
    let server = "import socket; s = socket.create_server(('', 80)); c = s.accept()[0]\n\
        n = 0\n\
        while d := c.recv(65536): n += len(d)\n\
        print(n, c.getpeername()[0])";
    let output = start(world.node("b"), 1, &["/usr/bin/env", "python3", "-c", server]);
    let watch =
        NodeInitRequest::Watch { token: 2, what: windtunnel_node::ListeningEndpoint::Tcp(80) };
    world.node("b").send(&watch, &[]).unwrap();
    while cable.carry_until_reply(world.node("b")) != (NodeInitReply::Listening { token: 2 }) {}
    let client =
        "import socket; c = socket.create_connection(('b', 80)); c.sendall(bytes(3000000))";
    drop(start(world.node("a"), 1, &["/usr/bin/env", "python3", "-c", client]));
    let ended = NodeInitReply::Exited { id: 1, status: ExitStatus::Code(0) };
    assert_eq!(cable.carry_until_reply(world.node("b")), ended);
    assert_eq!(read_to_end(output), "3000000 10.0.0.1\n");
}
