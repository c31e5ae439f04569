//! What matters where a run has several machines.

use windtunnel_model::Span;
use windtunnel_model::placement::{
    DelayRequirement, HOST_TIMEOUT_LEAST, HOST_TIMEOUT_MOST, OnHostLoss, Strategy,
};

use crate::grammar::{Decoder, ValueForm, YamlMapEntry, form, text, words};
use crate::position::LocatedValue;
use crate::text::shorten;

/// The file's own keys about machines.
#[derive(Debug, Default)]
pub(crate) struct MachineKeys {
    pub(crate) placement: Option<LocatedValue<Strategy>>,
    pub(crate) on_host_loss: Option<LocatedValue<OnHostLoss>>,
    pub(crate) delays: Option<LocatedValue<DelayRequirement>>,
    pub(crate) host_timeout: Option<LocatedValue<Span>>,
    /// Whether there are several machines.
    pub(crate) several: bool,
}

impl MachineKeys {
    pub(crate) fn strategy(&self) -> Strategy {
        self.placement.as_ref().map(|it| it.value).unwrap_or_default()
    }

    pub(crate) fn on_host_loss(&self) -> OnHostLoss {
        self.on_host_loss.as_ref().map(|it| it.value).unwrap_or_default()
    }

    pub(crate) fn delays(&self) -> DelayRequirement {
        self.delays.as_ref().map(|it| it.value).unwrap_or_default()
    }
}

words! {
    /// How nodes are put on machines. Whatever is chosen, no machine gets more than it has free,
    /// pinned nodes stay where they are pinned, and neighbours over fast or short links stay
    /// together where that is possible.
    Placement: Strategy {
        /// Over all machines in proportion to what they have free, give or take a tenth where that
        /// keeps more neighbours together.
        "auto" => Strategy::Auto,
        /// On as few machines as carry it.
        "pack" => Strategy::Pack,
        /// Over all machines in proportion to what they have free, as exactly as whole nodes allow.
        "spread" => Strategy::Spread,
    }
}

words! {
    /// What is done when one of a run's machines is lost.
    HostLoss as "OnHostLoss"; OnHostLoss {
        /// The run stops and has failed.
        "fail" => OnHostLoss::Fail,
        /// The nodes of that machine are lost; the others go on.
        "continue" => OnHostLoss::Continue,
    }
}

words! {
    /// What of delays between machines has to be right. Their clocks are compared by messages, which
    /// cannot distinguish a slower way out from a slower way back: what is too early one way is as late the
    /// other way.
    WhichDelays as "Delays"; DelayRequirement {
        /// Each way. Clocks that are not known to the bound of `--max-lateness` make the run NOT
        /// FAITHFUL.
        "one-way" => DelayRequirement::OneWay,
        /// There and back together. Clocks that are not known so well are a warning.
        "round-trips" => DelayRequirement::RoundTrips,
    }
}

form! {
    /// How long a machine may be silent: from 500ms to 10s.
    pub(super) HostTimeout: Span, by read_host_timeout, like Span::schema
}

fn read_host_timeout(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Span> {
    let time = Span::read(from, field)?;
    if time < HOST_TIMEOUT_LEAST || time > HOST_TIMEOUT_MOST {
        let (least, most) = (HOST_TIMEOUT_LEAST, HOST_TIMEOUT_MOST);
        let message = format!("host-timeout: {time} is not from {least} to {most}");
        let hint = "within the least, machines that live have answered; connections between agents end \
                    soon after the most";
        from.mistake_with_hint(field.wrong(), message, hint);
        return None;
    }
    Some(time)
}

form! {
    /// The name or a label of a machine.
    pub(super) Pin: String, by read_pin, like text
}

fn read_pin(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<String> {
    let text = from.text(field, "the name or a label of a machine")?;
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && c != ',';
    if text.is_empty() || text.len() > LONGEST_PIN || !text.chars().all(plain) {
        let shown = shorten(text);
        let message = format!("pin: `{shown}` is not the name or a label of a machine");
        let hint = "write one word, such as `rack2` or `disk=ssd`";
        from.mistake_with_hint(field.wrong(), message, hint);
        return None;
    }
    Some(text.to_owned())
}

/// The longest name of a machine (RFC 1035, 2.3.4) and more than any label needs.
const LONGEST_PIN: usize = 255;
