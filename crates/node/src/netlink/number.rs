//! The kernel's numbers, by their names there. Source: linux/netlink.h, linux/rtnetlink.h,
//! linux/if_link.h, linux/if_addr.h, linux/fib_rules.h, linux/veth.h; those of nf_tables are in `filter`.

pub(super) const AF_INET: u8 = 2;
pub(super) const AF_INET6: u8 = 10;

pub(super) const NLMSG_ERROR: u16 = 2;
pub(super) const NLMSG_DONE: u16 = 3;
pub(super) const NLM_F_REQUEST: u16 = 0x1;
pub(super) const NLM_F_DUMP: u16 = 0x300;
pub(super) const NLM_F_DUMP_INTR: u16 = 0x10;
pub(super) const NLM_F_ACK: u16 = 0x4;
pub(super) const NLM_F_REPLACE: u16 = 0x100;
pub(super) const NLM_F_EXCL: u16 = 0x200;
pub(super) const NLM_F_CREATE: u16 = 0x400;

pub(super) const RTM_NEWLINK: u16 = 16;
pub(super) const RTM_GETLINK: u16 = 18;
pub(super) const RTM_SETLINK: u16 = 19;
pub(super) const RTM_NEWADDR: u16 = 20;
pub(super) const RTM_NEWROUTE: u16 = 24;
pub(super) const RTM_DELROUTE: u16 = 25;
pub(super) const RTM_NEWRULE: u16 = 32;
pub(super) const RTM_DELRULE: u16 = 33;
pub(super) const RTM_NEWQDISC: u16 = 36;
pub(super) const RTM_GETQDISC: u16 = 38;

pub(super) const TCA_KIND: u16 = 1;
pub(super) const TCA_STATS: u16 = 3;

pub(super) const IFF_UP: u32 = 0x1;
pub(super) const IFF_NOARP: u32 = 0x80;
pub(super) const IFLA_ADDRESS: u16 = 1;
pub(super) const IFLA_IFNAME: u16 = 3;
pub(super) const IFLA_MTU: u16 = 4;
pub(super) const IFLA_MASTER: u16 = 10;
pub(super) const IFLA_LINKINFO: u16 = 18;
pub(super) const IFLA_NET_NS_PID: u16 = 19;
pub(super) const IFLA_NUM_TX_QUEUES: u16 = 31;
pub(super) const IFLA_NUM_RX_QUEUES: u16 = 32;
pub(super) const IFLA_GSO_MAX_SEGS: u16 = 40;
pub(super) const IFLA_INFO_KIND: u16 = 1;
pub(super) const IFLA_INFO_DATA: u16 = 2;
pub(super) const IFLA_INFO_SLAVE_KIND: u16 = 4;
pub(super) const IFLA_INFO_SLAVE_DATA: u16 = 5;
pub(super) const IFLA_BRPORT_STATE: u16 = 1;
pub(super) const BR_STATE_FORWARDING: u8 = 3;
pub(super) const VETH_INFO_PEER: u16 = 1;

pub(super) const IFA_ADDRESS: u16 = 1;
pub(super) const IFA_LOCAL: u16 = 2;
pub(super) const IFA_BROADCAST: u16 = 4;
pub(super) const IFA_FLAGS: u16 = 8;
pub(super) const IFA_F_NODAD: u8 = 0x2;
pub(super) const IFA_F_NOPREFIXROUTE: u32 = 0x200;

pub(super) const RT_SCOPE_UNIVERSE: u8 = 0;
pub(super) const RT_SCOPE_LINK: u8 = 253;
pub(super) const RT_SCOPE_HOST: u8 = 254;
pub(super) const RTPROT_STATIC: u8 = 4;
pub(super) const RTN_UNICAST: u8 = 1;
pub(super) const RTN_LOCAL: u8 = 2;
pub(super) const RTNH_F_ONLINK: u32 = 0x4;
pub(super) const RTA_DST: u16 = 1;
pub(super) const RTA_OIF: u16 = 4;
pub(super) const RTA_GATEWAY: u16 = 5;
pub(super) const RTA_PREFSRC: u16 = 7;
pub(super) const RTA_TABLE: u16 = 15;

pub(super) const FR_ACT_TO_TBL: u8 = 1;
pub(super) const FRA_DST: u16 = 1;
pub(super) const FRA_SRC: u16 = 2;
pub(super) const FRA_IIFNAME: u16 = 3;
pub(super) const FRA_PRIORITY: u16 = 6;
pub(super) const FRA_TABLE: u16 = 15;
pub(super) const FRA_IP_PROTO: u16 = 22;
pub(super) const FRA_SPORT_RANGE: u16 = 23;
