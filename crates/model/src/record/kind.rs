//! What a record says: its kind, and the layer that it is of.

/// Where records come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RecordSource {
    /// The emulated network.
    Engine = 1,
    /// What programs call.
    Calls = 2,
    /// The state of TCP connections.
    Tcp = 3,
    /// The kernel's stack.
    Kernel = 4,
}

impl RecordSource {
    /// All layers.
    pub const ALL: [RecordSource; 4] =
        [RecordSource::Engine, RecordSource::Calls, RecordSource::Tcp, RecordSource::Kernel];

    /// The name in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RecordSource::Engine => "engine",
            RecordSource::Calls => "calls",
            RecordSource::Tcp => "tcp",
            RecordSource::Kernel => "kernel",
        }
    }

    /// The layer of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<RecordSource> {
        RecordSource::ALL.into_iter().find(|layer| layer.name() == name)
    }

    /// The layer of a number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<RecordSource> {
        match number {
            1 => Some(RecordSource::Engine),
            2 => Some(RecordSource::Calls),
            3 => Some(RecordSource::Tcp),
            4 => Some(RecordSource::Kernel),
            _ => None,
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal, [$a:literal, $b:literal, $c:literal, $d:literal];)*) => {
        /// The kinds of records. The numbers are those of files and never change their meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $variant = $number,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),*];

            /// The name in files and exports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name,)* }
            }

            /// The kind of a number; `None`: of a later version.
            #[must_use]
            pub const fn from_number(number: u8) -> Option<Kind> {
                match number { $($number => Some(Kind::$variant),)* _ => None }
            }

            /// What the four arguments are; empty where one has no meaning of its own.
            #[must_use]
            pub const fn arguments(self) -> [&'static str; 4] {
                match self { $(Kind::$variant => [$a, $b, $c, $d],)* }
            }
        }
    };
}

kinds! {
    /// The records that follow in the file are of one source: layer `flags`, node `flow`
    /// ([`MACHINE`] for none), instance `extra`. Arguments 0 and 1: the number of the source's
    /// events before these; 2: how many records follow.
    Batch = 0x01, "batch", ["before_low", "before_high", "records", ""];
    /// Events that were not recorded because there was no room; the time is the end of the gap.
    /// Arguments 0 and 1: its begin; 2 and 3: how many.
    Lost = 0x02, "lost", ["begin_low", "begin_high", "count_low", "count_high"];

    /// Definition of a flow, first half: protocol `flags`, port `extra` and address of the side
    /// that sent first (of a socket: its own). IPv4 addresses are `::ffff:a.b.c.d`.
    FlowFrom = 0x04, "flow_from", ["address", "", "", ""];
    /// Second half: the other side.
    FlowTo = 0x05, "flow_to", ["address", "", "", ""];
    /// The kernel's cookie of a flow's socket (SO_COOKIE), in arguments 0 and 1; 2: the process; 3:
    /// its descriptor.
    FlowSocket = 0x06, "flow_socket", ["cookie_low", "cookie_high", "pid", "descriptor"];
    /// Initial sequence numbers: argument 0 of from → to, 1 of the reverse; `flags` bit 0 and 1:
    /// which of them is known.
    FlowSequence = 0x07, "flow_sequence", ["forward", "reverse", "", ""];
    /// A process that records calls: `flow` is its number, the arguments are its name (comm).
    Process = 0x08, "process", ["name", "", "", ""];
    /// Calls of a process that its source cannot see, from now on: on a flow, or ([`NO_FLOW`]) on
    /// any. Argument 0: a number of [`CallBlindSpot`]; 1: the process.
    Unseen = 0x09, "unseen", ["reason", "pid", "", ""];
    /// Of a run over several machines: by how many nanoseconds (signed) the clock of the first one
    /// is ahead of this one's at this time.
    Clock = 0x0a, "clock", ["ahead_low", "ahead_high", "", ""];

    /// A packet came to the start of a lane; `extra`: its segments, when this is a train. The
    /// length is that of the payload, all segments together.
    Offered = 0x10, "offered", ["offset", "length", "lane", "ack"];
    /// Its transmission began; argument 3: how long it takes, in nanoseconds (saturating).
    Sent = 0x11, "sent", ["offset", "length", "lane", "transmission_ns"];
    /// It came out of the lane; argument 3: how long its delay took, after transmission
    /// (saturating).
    Delivered = 0x12, "delivered", ["offset", "length", "lane", "delay_ns"];
    /// It was dropped; argument 3: the reason, as the header lists them.
    Dropped = 0x13, "dropped", ["offset", "length", "lane", "reason"];
    /// It was marked with congestion experienced.
    Marked = 0x14, "marked", ["offset", "length", "lane", ""];
    /// A copy was made of it.
    Duplicated = 0x15, "duplicated", ["offset", "length", "lane", ""];
    /// A bit of it was flipped.
    Corrupted = 0x16, "corrupted", ["offset", "length", "lane", ""];
    /// It was cut into so many fragments, which are packets of their own from here on.
    Fragmented = 0x17, "fragmented", ["offset", "length", "lane", "fragments"];

    /// A call on a socket, `extra` of [`Call`]; the time is its begin, the offset is that of its
    /// first byte. Argument 2: what it returned, or the errno below zero; 3: nanoseconds that it
    /// took (saturating, see [`LONG`](super::flag::LONG)).
    Call = 0x20, "call", ["offset", "asked", "result", "duration_ns"];
    /// The end of the call recorded just before. Arguments 0 and 1: its begin.
    CallEnd = 0x21, "call_end", ["begin_low", "begin_high", "", ""];

    /// Windows and timers; `extra`: the connection's state (low byte) and that of congestion
    /// avoidance. `srtt` and `rto` in microseconds, windows in segments.
    TcpWindows = 0x30, "tcp_windows", ["cwnd", "ssthresh", "srtt_us", "rto_us"];
    /// How far it is; `extra`: the segment size in use. Bytes: low 32 bits.
    TcpProgress = 0x31, "tcp_progress", ["acknowledged", "received", "notsent", "retransmits"];
    /// For how long sending was going on, and limited: microseconds in all.
    TcpLimits = 0x32, "tcp_limits", ["busy_us", "rwnd_limited_us", "sndbuf_limited_us", "send_window"];
    /// What waits in the socket.
    TcpQueues = 0x33, "tcp_queues", ["unread", "unacknowledged", "drops", "receive_window"];
    /// Exact offsets, low 32 bits: of the next byte that the program writes, of the next that was
    /// never sent, of the next that the program reads; and bytes that were sent again.
    TcpOffsets = 0x35, "tcp_offsets", ["written", "sent", "read", "sent_again"];
    /// The socket was destroyed.
    TcpEnd = 0x34, "tcp_end", ["", "", "", ""];

    /// A socket took bytes of a program. The result is the number of bytes, or the errno below
    /// zero; `process` the one that called.
    KernelSend = 0x40, "kernel_send", ["offset", "length", "result", "process"];
    /// A socket gave bytes to a program; the flag [`PEEK`](super::flag::PEEK) as of a call.
    KernelReceive = 0x41, "kernel_receive", ["offset", "length", "result", "process"];
    /// TCP is about to handle a packet of an established connection, with so many bytes; `extra`:
    /// the connection's state. `next` and `unacknowledged` are offsets in what the socket sends.
    KernelProbe = 0x42, "kernel_probe", ["next", "length", "unacknowledged", "cwnd"];
    /// TCP sent a segment again, or tried to.
    KernelRetransmit = 0x43, "kernel_retransmit", ["offset", "length", "state", ""];
    /// A device's queue took a packet; `extra`: its segments, when this is a train. The length is
    /// that of the payload, all segments together; `ack` the acknowledged offset. Devices without a
    /// queue, such as a veth without a qdisc, have only the next.
    DeviceQueued = 0x44, "device_queued", ["offset", "length", "interface", "ack"];
    /// A device's driver took a packet.
    DeviceSent = 0x45, "device_sent", ["offset", "length", "interface", "ack"];
    /// A packet came from a device.
    DeviceReceived = 0x46, "device_received", ["offset", "length", "interface", "ack"];
    /// A TCP connection went from one state to another, by the kernel's numbers.
    KernelState = 0x47, "kernel_state", ["before", "after", "", ""];
}

/// Why calls are not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum CallBlindSpot {
    /// The process has an io_uring: what it submits there are not calls.
    IoUring = 1,
    /// A stream of stdio was made of the socket: the C library calls itself.
    Stdio = 2,
    /// The table of sockets has no entry for the socket.
    TableFull = 3,
    /// The process confines its own system calls (seccomp): what a descriptor is cannot be asked.
    Sandbox = 4,
    /// The process has started a static program, whose calls nothing shows.
    Static = 5,
}

impl CallBlindSpot {
    /// The reason in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CallBlindSpot::IoUring => "io_uring",
            CallBlindSpot::Stdio => "stdio",
            CallBlindSpot::TableFull => "table_full",
            CallBlindSpot::Sandbox => "sandbox",
            CallBlindSpot::Static => "static_program",
        }
    }

    /// The reason of a number; `None`: of a later version.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<CallBlindSpot> {
        match number {
            1 => Some(CallBlindSpot::IoUring),
            2 => Some(CallBlindSpot::Stdio),
            3 => Some(CallBlindSpot::TableFull),
            4 => Some(CallBlindSpot::Sandbox),
            5 => Some(CallBlindSpot::Static),
            _ => None,
        }
    }
}

/// The node of a source that belongs to no node.
pub const MACHINE: u32 = u32::MAX;

/// Set in the lane of a record of the engine: not the lane itself, but the queue at the source of a
/// path (model of paths) whose narrowest lane it is.
pub const SOURCE_QUEUE: u32 = 1 << 31;

/// The flow of a record that belongs to none.
pub const NO_FLOW: u32 = u32::MAX;

macro_rules! calls {
    ($($variant:ident = $number:literal, $name:literal;)*) => {
        /// The calls that are recorded.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        #[expect(missing_docs, reason = "each is the call of that name")]
        pub enum Call {
            $($variant = $number,)*
        }

        impl Call {
            /// The call's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Call::$variant => $name,)* }
            }

            /// The call of a number; `None`: of a later version.
            #[must_use]
            pub const fn from_number(number: u16) -> Option<Call> {
                match number { $($number => Some(Call::$variant),)* _ => None }
            }
        }
    };
}

calls! {
    Connect = 1, "connect";
    Accept = 2, "accept";
    Close = 3, "close";
    Shutdown = 4, "shutdown";
    Write = 16, "write";
    Writev = 17, "writev";
    Send = 18, "send";
    Sendto = 19, "sendto";
    Sendmsg = 20, "sendmsg";
    Sendmmsg = 21, "sendmmsg";
    Sendfile = 22, "sendfile";
    SpliceTo = 23, "splice_to";
    Read = 32, "read";
    Readv = 33, "readv";
    Recv = 34, "recv";
    Recvfrom = 35, "recvfrom";
    Recvmsg = 36, "recvmsg";
    Recvmmsg = 37, "recvmmsg";
    SpliceFrom = 38, "splice_from";
}

impl Kind {
    /// Whether it defines what other records refer to; definitions are repeated at the begin of
    /// each file.
    #[must_use]
    pub const fn is_definition(self) -> bool {
        matches!(
            self,
            Kind::FlowFrom
                | Kind::FlowTo
                | Kind::FlowSocket
                | Kind::FlowSequence
                | Kind::Process
                | Kind::Unseen
                | Kind::Clock
        )
    }

    /// The layer whose events are of this kind; `None` for those of the file itself.
    #[must_use]
    pub const fn layer(self) -> Option<RecordSource> {
        RecordSource::from_number(self as u8 >> 4)
    }
}
