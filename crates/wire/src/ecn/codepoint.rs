//! The two bits of congestion notification.

/// The two ECN bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EcnCodepoint {
    /// The sender does not take part.
    #[default]
    NotEct,
    /// ECN-capable transport, codepoint 1 (L4S senders, RFC 9331).
    Ect1,
    /// ECN-capable transport, codepoint 0.
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl EcnCodepoint {
    /// The codepoint in the two low bits of a TOS or traffic-class byte.
    #[must_use]
    pub fn from_bits(byte: u8) -> Self {
        match byte & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The two bits.
    #[must_use]
    pub fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Ce => 3,
        }
    }
}
