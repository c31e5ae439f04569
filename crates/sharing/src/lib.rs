//! The room `sharing`: how flows divide the bandwidth of the links that they share, in the *paths*
//! model of the network, where no packet meets another one in a queue.
//!
//! **Promises:** weighted max-min shares, by a [`SharingModel`] that says how much each flow counts:
//! [`RttAware`] (SplayNet's, weight 1/RTT) or [`EqualFlowSharing`]. [`MaxMinShares`] keeps them up to date while
//! flows come, go and change, at a cost that grows with the part of the network that the change
//! reaches, and lists the changed shares. The shares are a function of the flows and the
//! capacities alone: the same bits on every machine, for any order and batching of changes.
//!
//! **Refuses:** clocks and floats; to give a link away twice (the shares of its flows never add up
//! to more than its capacity, to the bit a second); to leave anything of it that a flow wants (but
//! for the fraction of a bit a second that each flow loses by rounding down).
//!
//! | module | content |
//! | --- | --- |
//! | `model` | [`SharingModel`] and its two implementations: a flow's weight and ceiling |
//! | `shares` | [`MaxMinShares`], the table: changes in, changed shares out |
//! | `shares::fill` | all shares from nothing |
//! | `shares::relax` | the shares that a change reaches, and why they are the same |
//! | `shares::{lane, flow, level}` | the state of a lane and of a flow, and its numbers |
//! | `demand` | [`DemandEstimator`]: a flow's demand from its use |
//!
//! ```
//! use windtunnel_model::flow::FlowTerms;
//! use windtunnel_model::{Rate, Span};
//! use windtunnel_sharing::{FlowId, MaxMinShares, SharingModelKind};
//!
//! // Two flows over one lane of 2 Mbit/s; the round trip of one is three times that of the other.
//! let mut shares = MaxMinShares::new(SharingModelKind::RttAware, &["2mbit".parse().ok()]).unwrap();
//! shares.start(FlowId(1), &[0], FlowTerms::new(Span::from_millis(100))).unwrap();
//! shares.start(FlowId(2), &[0], FlowTerms::new(Span::from_millis(300))).unwrap();
//! let changed: Vec<_> = shares.settle().iter().map(|change| change.share).collect();
//! assert_eq!(changed, [Rate::from_bits_per_second(1_500_000), Rate::from_bits_per_second(500_000)]);
//! ```

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod demand;
mod error;
mod model;
mod shares;

pub use demand::{DemandEstimator, FlowPeriodUsage};
pub use error::SharesError;
pub use model::{EqualFlowSharing, FlowWeight, RttAware, SharingModel, SharingModelKind};
pub use shares::{FlowId, FlowShareChange, MaxMinShares, ShareConstraint, allocate};
