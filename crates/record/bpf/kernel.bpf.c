// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The kernel layer: one record for each thing that the kernel's network stack does for the network
// namespaces, or the processes, that are asked for. The layout of a record and the numbers are those
// of crates/model/src/record.rs.
//
// A program finds the source that an event belongs to (what is not asked for ends there), the flow,
// and puts 32 bytes into the ring of its processor. Where the ring has no room it adds 1 to the
// source's `lost`. A flow is defined before the first record that refers to it: if its definition
// finds no room, the record is lost too, and the next event defines it.
//
// The rings are arrays that the reader has mapped, one for each processor, and not a map of type
// ringbuf, whose lock all processors share: a record took 60 to 100 ns less. A program takes the
// next slot of its ring by an atomic addition, because an interrupt may come between, and writes the
// slot's number last.

#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// Set before loading. 0: record what belongs to network namespaces; 1: to processes.
const volatile u32 by_process = 0;
// 1: count events also apart from records and losses, which costs: for tests.
const volatile u32 counts_events = 0;
// Slots of each processor's ring: a power of two.
const volatile u32 ring_slots = 4096;
// 1: other processors may see stores in another order, as on aarch64.
const volatile u32 is_weakly_ordered = 0;

enum {
	ALL_PROCESSES = 1,
	// Of the map of sources; a key is in one of so many places from its own one on.
	SOURCES = 65536,
	PLACES = 4,
	// Slots that are left for what interrupts others between looking for room and taking it.
	SPARE_SLOTS = 64,
	AF_INET = 2,
	AF_INET6 = 10,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	ETHERTYPE_IP = 0x0008,
	ETHERTYPE_IPV6 = 0xdd86,
	MSG_PEEK = 2,
	SOCK_DONE = 1,
};

enum state { ESTABLISHED = 1, SYN_SENT = 2, CLOSE = 7, CLOSE_WAIT = 8, LISTEN = 10 };

enum kind {
	FLOW_FROM = 0x04,
	FLOW_TO = 0x05,
	FLOW_SOCKET = 0x06,
	FLOW_SEQUENCE = 0x07,
	KERNEL_SEND = 0x40,
	KERNEL_RECEIVE = 0x41,
	KERNEL_PROBE = 0x42,
	KERNEL_RETRANSMIT = 0x43,
	DEVICE_QUEUED = 0x44,
	DEVICE_SENT = 0x45,
	DEVICE_RECEIVED = 0x46,
	KERNEL_STATE = 0x47,
};

enum flag {
	REVERSE = 1 << 0,
	OFFSET_UNKNOWN = 1 << 1,
	SYN = 1 << 2,
	FIN = 1 << 3,
	RST = 1 << 4,
	ACK = 1 << 5,
	MARKED = 1 << 6,
	PEEK = 1 << 3, // of calls
};

enum { FORWARD_KNOWN = 1, REVERSE_KNOWN = 2, BOTH_KNOWN = 3 };

#define NO_FLOW 0xffffffffu

struct record {
	u64 time;
	u8 kind;
	u8 flags;
	u16 extra;
	u32 flow;
	u32 args[4];
};

// What a ring holds. `turn` is written last: how many records the ring has had with this one.
struct slot {
	u64 turn;
	u32 node;
	u32 reserved;
	struct record record;
};

// The state of a processor's ring. Programs write the first words, the reader writes `tail`.
struct ring {
	u64 head;
	u64 lost;
	u64 reserved[6];
	u64 tail;
	u64 padding[7];
};

// A network namespace, or all processes.
struct source {
	// The inode of the namespace; ALL_PROCESSES.
	u32 key;
	u32 node;
	u32 next_flow;
	// Nothing of it is recorded now.
	u32 is_off;
	u64 events;
	u64 lost;
};

// Ends of a flow, from the side of this machine.
struct tuple {
	u32 namespace;
	u16 local_port;
	u16 remote_port;
	u8 local[16];
	u8 remote[16];
	u32 protocol;
};

struct flow {
	u32 number;
	// Initial sequence numbers, of what is sent and of what is received, and which are known.
	u32 forward;
	u32 reverse;
	u32 known;
	// The socket's cookie has been recorded.
	u32 has_socket;
	// Datagrams seen at each of the three places of a device.
	u32 datagrams[3];
};

struct socket {
	struct flow flow;
	u32 ports;
	u32 address;
	// A process that is asked for made it.
	u32 owned;
	u32 sent;
	u32 received;
	u32 reserved;
};

// By the number of the processor.
struct {
	MAP_INT(type, BPF_MAP_TYPE_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_INT(map_flags, BPF_F_MMAPABLE);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct ring);
} rings SEC(".maps");

// One ring after the other.
struct {
	MAP_INT(type, BPF_MAP_TYPE_ARRAY);
	MAP_INT(max_entries, 4096);
	MAP_INT(map_flags, BPF_F_MMAPABLE);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct slot);
} slots SEC(".maps");

// By the low bits of the key, or in one of the next places.
struct {
	MAP_INT(type, BPF_MAP_TYPE_ARRAY);
	MAP_INT(max_entries, SOURCES);
	MAP_INT(map_flags, BPF_F_MMAPABLE);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct source);
} sources SEC(".maps");

// The processes that are asked for, by number (tgid).
struct {
	MAP_INT(type, BPF_MAP_TYPE_HASH);
	MAP_INT(max_entries, 16384);
	MAP_INT(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} processes SEC(".maps");

struct {
	MAP_INT(type, BPF_MAP_TYPE_LRU_HASH);
	MAP_INT(max_entries, 16384);
	MAP_TYPE(key, struct tuple);
	MAP_TYPE(value, struct flow);
} flows SEC(".maps");

// A connection inherits what is known of the socket that listened.
struct {
	MAP_INT(type, BPF_MAP_TYPE_SK_STORAGE);
	MAP_INT(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct socket);
} sockets SEC(".maps");

INLINE struct source *source_of(u32 namespace)
{
	u32 key = by_process ? ALL_PROCESSES : namespace;

	for (u32 place = 0; place < PLACES; place++) {
		u32 index = (key + place) & (SOURCES - 1);
		struct source *source = bpf_map_lookup_elem(&sources, &index);
		if (!source || !source->key)
			return 0;
		if (source->key == key)
			return *(volatile u32 *)&source->is_off ? 0 : source;
	}
	return 0;
}

INLINE int is_asked_for(void)
{
	u32 process = bpf_get_current_pid_tgid() >> 32;
	return bpf_map_lookup_elem(&processes, &process) != 0;
}

INLINE void count(struct source *source, u64 events)
{
	if (counts_events)
		__sync_fetch_and_add(&source->events, events);
}

INLINE struct ring *ring_here(u32 cpu)
{
	return bpf_map_lookup_elem(&rings, &cpu);
}

INLINE int has_room(const struct ring *ring, u32 records)
{
	return ring->head - *(const volatile u64 *)&ring->tail + records + SPARE_SLOTS <= ring_slots;
}

// An event that is not recorded.
INLINE void lose(struct source *source)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct ring *ring = ring_here(cpu);

	count(source, 1);
	__sync_fetch_and_add(&source->lost, 1);
	if (ring)
		__sync_fetch_and_add(&ring->lost, 1);
}

// Puts one record into the ring; 0: there was no room, which is counted.
INLINE int emit(struct source *source, u8 kind, u8 flags, u16 extra, u32 flow, u32 a, u32 b, u32 c, u32 d)
{
	u64 now = bpf_ktime_get_ns(), turn;
	u32 cpu = bpf_get_smp_processor_id(), index;
	struct ring *ring = ring_here(cpu);
	struct slot *slot;

	if (!ring)
		return 0;
	if (!has_room(ring, 1)) {
		lose(source);
		return 0;
	}
	turn = __sync_fetch_and_add(&ring->head, 1);
	index = cpu * ring_slots + (turn & (ring_slots - 1));
	slot = bpf_map_lookup_elem(&slots, &index);
	if (!slot)
		return 0;
	count(source, 1);
	slot->node = source->node;
	slot->record.time = now;
	slot->record.kind = kind;
	slot->record.flags = flags;
	slot->record.extra = extra;
	slot->record.flow = flow;
	slot->record.args[0] = a;
	slot->record.args[1] = b;
	slot->record.args[2] = c;
	slot->record.args[3] = d;
	if (is_weakly_ordered)
		__sync_lock_test_and_set(&slot->turn, turn + 1);
	else
		*(volatile u64 *)&slot->turn = turn + 1;
	return 1;
}

INLINE void copy_address(void *to, const void *from)
{
	__builtin_memcpy(to, from, 16);
}

INLINE void map_address(u8 *to, u32 address)
{
	__builtin_memset(to, 0, 10);
	to[10] = to[11] = 0xff;
	__builtin_memcpy(to + 12, &address, 4);
}

// Records one end of a flow.
INLINE int define_end(struct source *source, u8 kind, const struct tuple *tuple, u32 number, int is_remote)
{
	u32 words[4];

	copy_address(words, is_remote ? tuple->remote : tuple->local);
	return emit(source, kind, tuple->protocol, is_remote ? tuple->remote_port : tuple->local_port,
		    number, words[0], words[1], words[2], words[3]);
}

// Gives a flow a number and records its two ends; 0: there was no room for them.
OUTLINE struct flow *define(struct source *source, struct tuple *tuple)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct ring *ring = ring_here(cpu);
	struct flow flow = {};

	if (!ring || !has_room(ring, 2))
		return 0;
	flow.number = __sync_fetch_and_add(&source->next_flow, 1);
	if (!define_end(source, FLOW_FROM, tuple, flow.number, 0) ||
	    !define_end(source, FLOW_TO, tuple, flow.number, 1) ||
	    bpf_map_update_elem(&flows, tuple, &flow, 0))
		return 0;
	return bpf_map_lookup_elem(&flows, tuple);
}

INLINE struct flow *flow_of(struct source *source, struct tuple *tuple)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, tuple);
	return flow ? flow : define(source, tuple);
}

// Records the socket of a flow, once.
INLINE void name_socket(struct source *source, struct flow *flow, u64 cookie, u32 process)
{
	if (cookie && !flow->has_socket)
		flow->has_socket = emit(source, FLOW_SOCKET, 0, 0, flow->number, (u32)cookie,
					cookie >> 32, process, NO_FLOW);
}

// The cookie of a packet's socket, if it has one yet.
INLINE u64 cookie_of(struct sock *sk)
{
	return sk->__sk_common.skc_cookie.counter;
}

// Takes in an initial sequence number, and records what is known.
INLINE void learn(struct source *source, struct flow *flow, u32 which, u32 sequence)
{
	u32 forward = which == FORWARD_KNOWN ? sequence : flow->forward;
	u32 reverse = which == REVERSE_KNOWN ? sequence : flow->reverse;
	u32 known = flow->known | which;

	if (!emit(source, FLOW_SEQUENCE, known, 0, flow->number, forward, reverse, 0, 0))
		return;
	flow->forward = forward;
	flow->reverse = reverse;
	flow->known = known;
}

// An offset from a sequence number; `flags` say whether it is one.
INLINE u32 offset_of(const struct flow *flow, u32 which, u32 sequence, u8 *flags)
{
	if (flow && (flow->known & which))
		return sequence - 1 - (which == FORWARD_KNOWN ? flow->forward : flow->reverse);
	*flags |= OFFSET_UNKNOWN;
	return sequence;
}

// ---- sockets ----

INLINE u32 namespace_of(struct sock *sk)
{
	return sk->__sk_common.skc_net.net->ns.inum;
}

// The ends of a socket; 0: it is no Internet socket, or a TCP socket without a peer.
INLINE int tuple_of(struct sock *sk, struct tuple *tuple)
{
	u16 family = sk->__sk_common.skc_family, remote = sk->__sk_common.skc_dport;

	tuple->namespace = namespace_of(sk);
	tuple->protocol = sk->sk_protocol;
	tuple->local_port = sk->__sk_common.skc_num;
	tuple->remote_port = __builtin_bswap16(remote);
	if (family == AF_INET) {
		map_address(tuple->local, sk->__sk_common.skc_rcv_saddr);
		map_address(tuple->remote, sk->__sk_common.skc_daddr);
	} else if (family == AF_INET6) {
		bpf_probe_read_kernel(tuple->local, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_probe_read_kernel(tuple->remote, 16, &sk->__sk_common.skc_v6_daddr);
	} else {
		return 0;
	}
	return tuple->protocol != PROTOCOL_TCP || (tuple->local_port && tuple->remote_port);
}

// Finds the initial sequence numbers from what the socket counted since. It must be locked, so that
// its counters are of one moment; and not have sent its FIN, which they do not count.
//
// `snd_una - bytes_acked` is the initial number where the socket sent the first SYN, whose
// acknowledgement it counted, and one more where it answered one. `snd_nxt` less the bytes that were
// sent for the first time is one more in both cases. Where they do not agree, it is left.
INLINE void learn_from_socket(struct source *source, struct flow *flow, struct sock *sk)
{
	u8 state = sk->__sk_common.skc_state;
	struct tcp_sock *tcp;
	u32 acked, sent;

	if (flow->known == BOTH_KNOWN || (state != ESTABLISHED && state != CLOSE_WAIT))
		return;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return;
	if (!(flow->known & REVERSE_KNOWN))
		learn(source, flow, REVERSE_KNOWN, tcp->rcv_nxt - (u32)tcp->bytes_received - 1);
	acked = tcp->snd_una - (u32)tcp->bytes_acked;
	sent = tcp->snd_nxt - (u32)(tcp->bytes_sent - tcp->bytes_retrans) - 1;
	if (!(flow->known & FORWARD_KNOWN) && (acked == sent || acked == sent + 1))
		learn(source, flow, FORWARD_KNOWN, sent);
}

// What is kept with a socket, with its flow; 0: it is not asked for, or there is no room. `locked`:
// the caller has the socket's lock.
OUTLINE struct socket *socket_of(struct source *source, struct sock *sk, int locked, u32 process)
{
	u16 remote = sk->__sk_common.skc_dport, local = sk->__sk_common.skc_num;
	u32 ports = (u32)remote << 16 | local, address = sk->__sk_common.skc_daddr;
	struct tuple tuple = {};
	struct socket *socket;
	struct flow *flow;
	u32 owned = process && by_process;

	socket = bpf_sk_storage_get(&sockets, sk, 0,
				    by_process && !owned ? 0 : BPF_SK_STORAGE_GET_F_CREATE);
	if (!socket)
		return 0;
	if (owned)
		socket->owned = 1;
	if (by_process && !socket->owned)
		return 0;
	// A socket that was closed has no port any more, and is of the same flow.
	if (socket->flow.has_socket && sk->sk_protocol == PROTOCOL_TCP && (!remote || !local))
		return socket;
	if (socket->flow.has_socket && socket->ports == ports && socket->address == address &&
	    (sk->sk_protocol != PROTOCOL_TCP || socket->flow.known == BOTH_KNOWN))
		return socket;
	if (!tuple_of(sk, &tuple))
		return 0;
	flow = flow_of(source, &tuple);
	if (!flow)
		return 0;
	if (!flow->has_socket)
		name_socket(source, flow, bpf_get_socket_cookie(sk), process);
	if (locked)
		learn_from_socket(source, flow, sk);
	socket->flow = *flow;
	socket->ports = ports;
	socket->address = address;
	return socket;
}

INLINE int is_internet(struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;
	return family == AF_INET || family == AF_INET6;
}

// The offset of the first of the bytes that a call has just sent.
INLINE u32 sent_offset(struct socket *socket, struct sock *sk, u32 length, u8 *flags)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	if (tcp)
		return offset_of(&socket->flow, FORWARD_KNOWN, tcp->write_seq - length, flags);
	*flags |= OFFSET_UNKNOWN;
	return __sync_fetch_and_add(&socket->sent, 1);
}

// The offset of the first of the bytes that a call has just received.
INLINE u32 received_offset(struct socket *socket, struct sock *sk, u32 length, u8 *flags)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	u32 next;

	if (!tcp) {
		*flags |= OFFSET_UNKNOWN;
		return *flags & PEEK ? socket->received : __sync_fetch_and_add(&socket->received, 1);
	}
	next = tcp->copied_seq;
	// A read that came to the end of the stream has passed the FIN too.
	if ((sk->__sk_common.skc_flags & 1 << SOCK_DONE) && next == tcp->rcv_nxt)
		next--;
	return offset_of(&socket->flow, REVERSE_KNOWN, *flags & PEEK ? next : next - length, flags);
}

OUTLINE int transferred(struct sock *sk, int result, int message_flags, u8 kind)
{
	u32 length = result > 0 ? result : 0, process = bpf_get_current_pid_tgid() >> 32, offset;
	struct source *source;
	struct socket *socket;
	u8 flags = kind == KERNEL_RECEIVE ? REVERSE : 0;

	if (!is_internet(sk))
		return 0;
	source = source_of(namespace_of(sk));
	if (!source || (by_process && !is_asked_for()))
		return 0;
	socket = socket_of(source, sk, 0, process);
	if (!socket) {
		lose(source);
		return 0;
	}
	if (kind == KERNEL_RECEIVE && (message_flags & MSG_PEEK))
		flags |= PEEK;
	offset = kind == KERNEL_SEND ? sent_offset(socket, sk, length, &flags)
				     : received_offset(socket, sk, length, &flags);
	emit(source, kind, flags, 0, socket->flow.number, offset, length, result, process);
	return 0;
}

SEC("tp_btf/sock_send_length")
int sock_send_length(u64 *context)
{
	return transferred((struct sock *)context[0], context[1], context[2], KERNEL_SEND);
}

SEC("tp_btf/sock_recv_length")
int sock_recv_length(u64 *context)
{
	return transferred((struct sock *)context[0], context[1], context[2], KERNEL_RECEIVE);
}

SEC("tp_btf/inet_sock_set_state")
int inet_sock_set_state(u64 *context)
{
	struct sock *sk = (struct sock *)context[0];
	u32 before = context[1], after = context[2], process = 0;
	struct source *source = source_of(namespace_of(sk));
	struct socket *socket;

	if (!source || sk->sk_protocol != PROTOCOL_TCP)
		return 0;
	// These two are of a call, the others of a packet or a timer.
	if (after == SYN_SENT || after == LISTEN)
		process = bpf_get_current_pid_tgid() >> 32;
	if (by_process && process && !is_asked_for())
		process = 0;
	socket = socket_of(source, sk, after == ESTABLISHED, process);
	if (socket)
		emit(source, KERNEL_STATE, 0, 0, socket->flow.number, before, after, 0, 0);
	return 0;
}

SEC("tp_btf/tcp_probe")
int tcp_probe(u64 *context)
{
	struct sock *sk = (struct sock *)context[0];
	struct sk_buff *skb = (struct sk_buff *)context[1];
	struct source *source = source_of(namespace_of(sk));
	struct socket *socket;
	struct tcp_sock *tcp;
	u8 header = 0, flags = 0;
	u32 next;

	if (!source)
		return 0;
	socket = socket_of(source, sk, 1, 0);
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!socket || !tcp) {
		if (!by_process)
			lose(source);
		return 0;
	}
	bpf_probe_read_kernel(&header, 1, skb->data + 12);
	next = offset_of(&socket->flow, FORWARD_KNOWN, tcp->snd_nxt, &flags);
	emit(source, KERNEL_PROBE, flags, sk->__sk_common.skc_state, socket->flow.number, next,
	     skb->len - (header >> 4) * 4,
	     offset_of(&socket->flow, FORWARD_KNOWN, tcp->snd_una, &flags), tcp->snd_cwnd);
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int tcp_retransmit_skb(u64 *context)
{
	struct sock *sk = (struct sock *)context[0];
	struct sk_buff *skb = (struct sk_buff *)context[1];
	struct source *source = source_of(namespace_of(sk));
	struct tcp_skb_cb *control = (struct tcp_skb_cb *)skb->cb;
	struct socket *socket;
	u32 sequence = 0, end = 0, length;
	u8 header = 0, flags = 0;

	if (!source)
		return 0;
	socket = socket_of(source, sk, 1, 0);
	if (!socket) {
		if (!by_process)
			lose(source);
		return 0;
	}
	bpf_probe_read_kernel(&sequence, 4, &control->seq);
	bpf_probe_read_kernel(&end, 4, &control->end_seq);
	bpf_probe_read_kernel(&header, 1, &control->tcp_flags);
	length = end - sequence;
	if (header & 1) {
		flags |= FIN;
		length--;
	}
	if (header & 2) {
		flags |= SYN;
		length--;
		sequence++;
	}
	emit(source, KERNEL_RETRANSMIT, flags, 0, socket->flow.number,
	     offset_of(&socket->flow, FORWARD_KNOWN, sequence, &flags), length,
	     sk->__sk_common.skc_state, 0);
	return 0;
}

// ---- devices ----

// What is read of a packet.
struct packet {
	struct tuple tuple;
	u32 sequence;
	u32 ack;
	u32 length;
	u16 segments;
	u8 flags;
	u8 is_tcp;
};

struct ipv4 {
	u8 version;
	u8 tos;
	u16 length;
	u16 id;
	u16 fragment;
	u8 ttl;
	u8 protocol;
	u16 checksum;
	u32 source;
	u32 destination;
};

struct ipv6 {
	u32 version;
	u16 length;
	u8 protocol;
	u8 hops;
	u8 source[16];
	u8 destination[16];
};

struct tcp {
	u16 source;
	u16 destination;
	u32 sequence;
	u32 ack;
	u8 header;
	u8 flags;
};

INLINE void set_ends(struct packet *packet, int sent, u16 source, u16 destination)
{
	packet->tuple.local_port = __builtin_bswap16(sent ? source : destination);
	packet->tuple.remote_port = __builtin_bswap16(sent ? destination : source);
}

// Takes in the header of the transport protocol, of which `linear` bytes can be read and which has
// `length` bytes with what it carries.
INLINE int take_transport(struct packet *packet, int sent, const struct tcp *tcp, s32 linear, u32 length)
{
	u32 protocol = packet->tuple.protocol;

	if (protocol == PROTOCOL_UDP && linear >= 8) {
		set_ends(packet, sent, tcp->source, tcp->destination);
		packet->length = length - 8;
		return 1;
	}
	if (protocol != PROTOCOL_TCP || linear < 20)
		return 0;
	set_ends(packet, sent, tcp->source, tcp->destination);
	packet->length = length - (tcp->header >> 4) * 4;
	packet->sequence = __builtin_bswap32(tcp->sequence);
	packet->ack = __builtin_bswap32(tcp->ack);
	packet->is_tcp = 1;
	packet->flags |= (tcp->flags & 1 ? FIN : 0) | (tcp->flags & 2 ? SYN : 0) |
			 (tcp->flags & 4 ? RST : 0) | (tcp->flags & 16 ? ACK : 0);
	return 1;
}

// The same, of a header that has not been read.
INLINE int parse_transport(struct packet *packet, int sent, const unsigned char *at, s32 linear, u32 length)
{
	struct tcp tcp = {};

	if (linear >= 20)
		bpf_probe_read_kernel(&tcp, 14, at);
	else if (linear >= 8)
		bpf_probe_read_kernel(&tcp, 8, at);
	return take_transport(packet, sent, &tcp, linear, length);
}

INLINE int parse_ipv4(struct packet *packet, int sent, const unsigned char *at, s32 linear, u32 length)
{
	// With the next header, as far as it goes: a read costs more than its bytes.
	struct {
		struct ipv4 ip;
		struct tcp tcp;
	} head = {};
	struct ipv4 *ip = &head.ip;
	u32 header, total;

	if (linear >= (s32)sizeof head)
		bpf_probe_read_kernel(&head, sizeof head, at);
	else if (linear >= 20)
		bpf_probe_read_kernel(&head, 20, at);
	else
		return 0;
	header = (ip->version & 15) * 4;
	total = __builtin_bswap16(ip->length);
	// A frame may be padded; that of a train says nothing, or not all.
	if (packet->segments <= 1 && total && total < length)
		length = total;
	packet->tuple.protocol = ip->protocol;
	map_address(sent ? packet->tuple.local : packet->tuple.remote, ip->source);
	map_address(sent ? packet->tuple.remote : packet->tuple.local, ip->destination);
	if ((ip->tos & 3) == 3)
		packet->flags |= MARKED;
	if (ip->fragment & 0xff1f)
		return 0;
	if (header == 20 && linear >= (s32)sizeof head)
		return take_transport(packet, sent, &head.tcp, linear - 20, length - 20);
	return parse_transport(packet, sent, at + header, linear - header, length - header);
}

INLINE int parse_ipv6(struct packet *packet, int sent, const unsigned char *at, s32 linear, u32 length)
{
	struct ipv6 ip = {};
	u32 total;

	if (linear < 40)
		return 0;
	bpf_probe_read_kernel(&ip, 40, at);
	total = __builtin_bswap16(ip.length);
	if (packet->segments <= 1 && total && total + 40 < length)
		length = total + 40;
	packet->tuple.protocol = ip.protocol;
	copy_address(sent ? packet->tuple.local : packet->tuple.remote, ip.source);
	copy_address(sent ? packet->tuple.remote : packet->tuple.local, ip.destination);
	if ((__builtin_bswap32(ip.version) >> 20 & 3) == 3)
		packet->flags |= MARKED;
	return parse_transport(packet, sent, at + 40, linear - 40, length - 40);
}

// Reads the headers of a packet, that begin at `at`; 0: it has no flow.
INLINE int parse(struct packet *packet, struct sk_buff *skb, int sent, const unsigned char *at)
{
	s32 before = at - skb->data, linear = (s32)(skb->len - skb->data_len) - before;
	struct skb_shared_info *shared = (struct skb_shared_info *)(skb->head + skb->end);
	u32 length = skb->len - before;
	u16 protocol = skb->protocol;

	bpf_probe_read_kernel(&packet->segments, 2, &shared->gso_segs);
	if (!packet->segments)
		packet->segments = 1;
	packet->length = length;
	if (protocol == ETHERTYPE_IP)
		return parse_ipv4(packet, sent, at, linear, length);
	if (protocol == ETHERTYPE_IPV6)
		return parse_ipv6(packet, sent, at, linear, length);
	return 0;
}

// The flow of a packet. A SYN with another initial number begins another connection.
INLINE struct flow *flow_of_packet(struct source *source, struct packet *packet, int sent)
{
	u32 which = sent ? FORWARD_KNOWN : REVERSE_KNOWN;
	struct flow *flow = bpf_map_lookup_elem(&flows, &packet->tuple);
	int begins = packet->is_tcp && (packet->flags & SYN);

	if (flow && begins && !(packet->flags & ACK) && (flow->known & which) && !by_process &&
	    packet->sequence != (sent ? flow->forward : flow->reverse))
		flow = 0;
	if (!flow && !by_process)
		flow = define(source, &packet->tuple);
	if (flow && begins && !(flow->known & which))
		learn(source, flow, which, packet->sequence);
	return flow;
}

// In `process` mode: whether the socket is one that is asked for; its flow is defined then.
INLINE void define_owned(struct source *source, struct sock *sk)
{
	struct socket *socket = bpf_sk_storage_get(&sockets, sk, 0, 0);
	struct tuple tuple = {};
	struct flow *flow;

	if (!socket || !socket->owned || socket->flow.has_socket || !tuple_of(sk, &tuple))
		return;
	flow = flow_of(source, &tuple);
	if (!flow)
		return;
	name_socket(source, flow, cookie_of(sk), 0);
	socket->flow = *flow;
}

OUTLINE int at_device(struct sk_buff *skb, u8 kind)
{
	int sent = kind != DEVICE_RECEIVED, place = kind - DEVICE_QUEUED, parsed;
	struct net_device *device = skb->dev;
	struct source *source;
	struct packet packet = {};
	struct flow *flow = 0;
	struct sock *sk;
	u32 offset = 0, ack = 0;
	u8 flags;

	packet.tuple.namespace = device->nd_net.net->ns.inum;
	source = source_of(packet.tuple.namespace);
	if (!source)
		return 0;
	parsed = parse(&packet, skb, sent, sent ? skb->head + skb->network_header : skb->data);
	sk = skb->sk;
	if (by_process && sent && sk)
		define_owned(source, sk);
	if (parsed)
		flow = flow_of_packet(source, &packet, sent);
	if (!flow && by_process)
		return 0;
	if (!flow && parsed) {
		lose(source);
		return 0;
	}
	flags = packet.flags | (sent ? 0 : REVERSE);
	if (flow && sent && sk)
		name_socket(source, flow, cookie_of(sk), 0);
	if (flow && packet.is_tcp) {
		u32 first = packet.sequence + (packet.flags & SYN ? 1 : 0);
		offset = offset_of(flow, sent ? FORWARD_KNOWN : REVERSE_KNOWN, first, &flags);
		if (flow->known & (sent ? REVERSE_KNOWN : FORWARD_KNOWN))
			ack = packet.ack - 1 - (sent ? flow->reverse : flow->forward);
		else
			flags &= ~ACK;
	} else {
		flags |= OFFSET_UNKNOWN;
		if (flow)
			offset = __sync_fetch_and_add(&flow->datagrams[place], 1);
	}
	emit(source, kind, flags, packet.segments, flow ? flow->number : NO_FLOW, offset,
	     packet.length, device->ifindex, ack);
	return 0;
}

// A device without a queue, such as a veth or the loopback, has its driver called at once: there the
// packet is recorded when it is sent, and not twice.
SEC("tp_btf/net_dev_queue")
int net_dev_queue(u64 *context)
{
	struct sk_buff *skb = (struct sk_buff *)context[0];

	if (!skb->dev->qdisc->enqueue)
		return 0;
	return at_device(skb, DEVICE_QUEUED);
}

SEC("tp_btf/net_dev_start_xmit")
int net_dev_start_xmit(u64 *context)
{
	return at_device((struct sk_buff *)context[0], DEVICE_SENT);
}

SEC("tp_btf/netif_receive_skb")
int netif_receive_skb(u64 *context)
{
	return at_device((struct sk_buff *)context[0], DEVICE_RECEIVED);
}

// ---- processes ----

SEC("tp_btf/sched_process_fork")
int sched_process_fork(u64 *context)
{
	struct task_struct *parent = (struct task_struct *)context[0], *child = (struct task_struct *)context[1];
	u32 from = parent->tgid, to = child->tgid, yes = 1;

	if (by_process && from != to && bpf_map_lookup_elem(&processes, &from))
		bpf_map_update_elem(&processes, &to, &yes, 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int sched_process_exit(u64 *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 process = task->tgid;

	if (by_process && task->pid == task->tgid)
		bpf_map_delete_elem(&processes, &process);
	return 0;
}
