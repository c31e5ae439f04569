//! A reason not to believe a run.

/// Why a run is not faithful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FidelityDoubt {
    /// The reason, with time, links and likely cause as far as they are known.
    pub(super) text: String,
    /// Whether the machine did not keep up, and nothing else: the same run may be faithful when
    /// the machine has more time.
    pub(super) is_of_speed: bool,
}

impl FidelityDoubt {
    /// The machine did not keep up.
    pub(super) fn of_speed(text: String) -> Self {
        FidelityDoubt { text, is_of_speed: true }
    }

    /// Something that another attempt would meet again, as far as is known.
    pub(super) fn other(text: String) -> Self {
        FidelityDoubt { text, is_of_speed: false }
    }

    /// The same of one of several machines.
    pub(super) fn of_host(self, host: &str) -> Self {
        FidelityDoubt { text: format!("host {host}: {}", self.text), ..self }
    }
}
