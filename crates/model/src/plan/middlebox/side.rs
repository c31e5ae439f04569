//! Sides of a middlebox.

use serde::{Deserialize, Serialize};

/// A side of a middlebox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MiddleboxSide {
    /// What is protected, or has addresses that mean nothing elsewhere.
    Inside,
    /// The other one.
    Outside,
}

impl MiddleboxSide {
    /// The word for it in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MiddleboxSide::Inside => "inside",
            MiddleboxSide::Outside => "outside",
        }
    }
}
