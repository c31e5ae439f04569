//! ICMP for IPv4 (RFC 792) and IPv6 (RFC 4443): fields, error messages, echo replies.

mod echo;
mod error;
pub(crate) mod header;
mod neighbour;
mod quote;
mod relay;

pub use echo::echo_reply_in_place;
pub use error::{IcmpErrorKind, IcmpErrorReply, may_send_error, write_error};
pub(crate) use header::{CHECKSUM, ECHO_REPLY_V4};
pub use header::{
    ECHO_REQUEST_V4, ECHO_REQUEST_V6, HEADER_LEN, IcmpMessage, PROTOCOL_V4, PROTOCOL_V6,
};
pub use neighbour::{FRAME_LEN as NEIGHBOUR_FRAME_LEN, NeighbourMessage};
pub use quote::IcmpQuotedFlow;
pub use relay::relay;
