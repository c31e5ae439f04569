//! What matters where a run has several machines.

use serde_json::{Value as Json, json};
use windtunnel_model::Bytes;
use windtunnel_model::placement::{Demand, OnHostLoss, Strategy};

use super::{At, Decoder, Field};
use crate::grammar::{Definitions, Form, form, text, words};
use crate::text::shorten;

/// The file's own keys about machines.
#[derive(Debug, Default)]
pub(crate) struct MachineKeys {
    pub(crate) placement: Option<At<Strategy>>,
    pub(crate) on_host_loss: Option<At<OnHostLoss>>,
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
}

/// What a node and, but for `pin`, `defaults.node` may say about machines.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeMachineKeys {
    pub(crate) pin: Option<At<String>>,
    /// In thousandths.
    pub(crate) cpu: Option<At<u32>>,
    pub(crate) memory: Option<At<Bytes>>,
}

impl NodeMachineKeys {
    /// What is not said here is taken from `defaults`.
    pub(crate) fn or(&self, defaults: &NodeMachineKeys) -> NodeMachineKeys {
        NodeMachineKeys {
            pin: self.pin.clone().or_else(|| defaults.pin.clone()),
            cpu: self.cpu.clone().or_else(|| defaults.cpu.clone()),
            memory: self.memory.clone().or_else(|| defaults.memory.clone()),
        }
    }

    pub(crate) fn demand(&self) -> Demand {
        Demand {
            cpu_millis: self.cpu.as_ref().map(|it| it.value),
            memory: self.memory.as_ref().map(|it| it.value),
        }
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

form! {
    /// The name or a label of a machine.
    pub(super) Pin: String, by read_pin, like text
}

fn read_pin(from: &mut Decoder<'_>, field: Field<'_>) -> Option<String> {
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

/// A number of processors with at most three decimals, in thousandths.
pub(super) struct Processors;

impl Form for Processors {
    type Value = u32;

    fn read(from: &mut Decoder<'_>, field: Field<'_>) -> Option<u32> {
        let needed = "a number of processors such as 0.5";
        let text = from.text(field, needed)?;
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) {
            from.mistake(field.wrong(), format!("cpu: `{}` is not {needed}", shorten(text)));
            return None;
        }
        if decimals.trim_end_matches('0').len() > 3 {
            let message =
                format!("cpu: `{}` is finer than a thousandth of a processor", shorten(text));
            from.mistake(field.wrong(), message);
            return None;
        }
        let thousandths = format!("{decimals:0<3}")[..3].parse::<u32>().ok()?;
        let whole = whole.parse::<u32>().ok().filter(|whole| *whole <= MOST_PROCESSORS);
        let millis = whole.map(|whole| whole * 1000 + thousandths);
        let millis = millis.filter(|millis| *millis <= MOST_PROCESSORS * 1000);
        if millis.is_none() {
            let message =
                format!("cpu: `{}` is more than {MOST_PROCESSORS} processors", shorten(text));
            from.mistake(field.wrong(), message);
        }
        millis
    }

    fn schema(_: &mut Definitions) -> Json {
        json!({"type": "number", "minimum": 0, "maximum": MOST_PROCESSORS})
    }
}

/// The longest name of a machine (RFC 1035, 2.3.4) and more than any label needs.
const LONGEST_PIN: usize = 255;
/// More than any machine has.
const MOST_PROCESSORS: u32 = 100_000;
