//! What a plan says about the machines that it runs on: which node where, how much each needs, and
//! what is done when a machine is lost.

use serde::{Deserialize, Serialize};

use crate::time::Span;

/// How nodes are put on machines; within it, capacities hold and nodes that talk over fast or short
/// links stay together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Over all machines in proportion to what they have free, give or take a tenth where that
    /// keeps more neighbours together; over fewer, where all of them cannot carry it.
    #[default]
    Auto,
    /// On as few machines as carry it.
    Pack,
    /// Over all machines in proportion to what they have free, as exactly as whole nodes allow.
    Spread,
}

impl Strategy {
    pub(crate) fn is_auto(&self) -> bool {
        *self == Strategy::Auto
    }

    /// The word for it in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Auto => "auto",
            Strategy::Pack => "pack",
            Strategy::Spread => "spread",
        }
    }
}

/// What of delays matters, where a run has several machines whose clocks differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum DelayRequirement {
    /// Each way by itself.
    #[default]
    OneWay,
    /// Only there and back together: an error of the clocks is taken away on the way back.
    RoundTrips,
}

impl DelayRequirement {
    pub(crate) fn is_one_way(&self) -> bool {
        *self == DelayRequirement::OneWay
    }
}

/// The least time of silence for which a machine is lost: one that lives is noticed by then.
pub const HOST_TIMEOUT_LEAST: Span = Span::from_millis(500);
/// The longest: connections between agents end after a little more.
pub const HOST_TIMEOUT_MOST: Span = Span::from_secs(10);

/// What is done when one of a run's machines is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum OnHostLoss {
    /// The run stops and has failed.
    #[default]
    Fail,
    /// The nodes of that machine are lost; the others go on.
    Continue,
}

impl OnHostLoss {
    pub(crate) fn is_fail(&self) -> bool {
        *self == OnHostLoss::Fail
    }

    /// The word for it in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OnHostLoss::Fail => "fail",
            OnHostLoss::Continue => "continue",
        }
    }
}
