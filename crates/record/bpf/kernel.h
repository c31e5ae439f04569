// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What the programs need of the kernel: types with the fields that are read (the loader finds where
// they are in the running kernel, by its BTF), and the helpers that are called.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static __attribute__((always_inline)) inline
#define OUTLINE static __attribute__((noinline))
#define MAP_INT(name, value) int(*name)[value]
#define MAP_TYPE(name, type) type *name

// As bpf(2) numbers them.
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_SK_STORAGE = 24 };
enum { BPF_NOEXIST = 1, BPF_F_NO_PREALLOC = 1, BPF_F_CLONE = 512, BPF_F_MMAPABLE = 1024 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static u64 (*bpf_get_socket_cookie)(void *socket) = (void *)46;
static void *(*bpf_sk_storage_get)(void *map, void *socket, void *value, u64 flags) = (void *)107;
static long (*bpf_probe_read_kernel)(void *to, u32 bytes, const void *from) = (void *)113;
static void *(*bpf_skc_to_tcp_sock)(void *socket) = (void *)137;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

typedef struct {
	u64 counter;
} atomic64_t;

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile u8 skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
	unsigned long skc_flags;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
};

struct tcp_sock {
	u32 copied_seq;
	u32 rcv_nxt;
	u32 snd_nxt;
	u32 snd_una;
	u32 snd_cwnd;
	u32 write_seq;
	u64 bytes_acked;
	u64 bytes_received;
	u64 bytes_retrans;
	u64 bytes_sent;
};

struct Qdisc {
	void *enqueue;
};

struct net_device {
	int ifindex;
	struct Qdisc *qdisc;
	possible_net_t nd_net;
};

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	char cb[48];
	unsigned int len;
	unsigned int data_len;
	u16 protocol;
	u16 network_header;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
};

struct skb_shared_info {
	u16 gso_segs;
};

struct tcp_skb_cb {
	u32 seq;
	u32 end_seq;
	u8 tcp_flags;
};

struct task_struct {
	int pid;
	int tgid;
};

#pragma clang attribute pop
