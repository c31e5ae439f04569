//! What matters where a run has several machines.

use windtunnel_model::Bytes;
use windtunnel_model::placement::{Demand, OnHostLoss, Strategy};

use super::{At, Field, Fields};
use crate::error::Findings;
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

impl Findings {
    /// The file's own keys.
    pub(super) fn machines(&mut self, file: &Fields<'_>) -> MachineKeys {
        let mut found = MachineKeys::default();
        if let Some(field) = file.find("placement") {
            let choices =
                [("auto", Strategy::Auto), ("pack", Strategy::Pack), ("spread", Strategy::Spread)];
            let value = self.choice(field, &choices);
            found.placement = value.map(|value| At { value, place: field.place });
        }
        if let Some(field) = file.find("on-host-loss") {
            let choices = [("fail", OnHostLoss::Fail), ("continue", OnHostLoss::Continue)];
            let value = self.choice(field, &choices);
            found.on_host_loss = value.map(|value| At { value, place: field.place });
        }
        found
    }

    /// The keys of a node or of `defaults.node`.
    pub(super) fn node_machine(&mut self, fields: &Fields<'_>) -> NodeMachineKeys {
        let mut found = NodeMachineKeys::default();
        if let Some(field) = fields.find("pin") {
            found.pin = self.pin(field).map(|value| At { value, place: field.place });
        }
        if let Some(field) = fields.find("cpu") {
            found.cpu = self.processors(field).map(|value| At { value, place: field.place });
        }
        if let Some(field) = fields.find("memory") {
            let memory = self.quantity(field, "a size such as 256MB");
            found.memory = memory.map(|value| At { value, place: field.place });
        }
        found
    }

    fn pin(&mut self, field: Field<'_>) -> Option<String> {
        let text = self.text(field, "the name or a label of a machine")?;
        let plain = |c: char| !c.is_whitespace() && !c.is_control() && c != ',';
        if text.is_empty() || text.len() > LONGEST_PIN || !text.chars().all(plain) {
            let shown = shorten(text);
            let message = format!("pin: `{shown}` is no name or label of a machine");
            let hint = "write one word, such as `rack2` or `disk=ssd`";
            self.mistake_with_hint(field.wrong(), message, hint);
            return None;
        }
        Some(text.to_owned())
    }

    /// A number of processors with at most three decimals, in thousandths.
    fn processors(&mut self, field: Field<'_>) -> Option<u32> {
        let needed = "a number of processors such as 0.5";
        let text = self.text(field, needed)?;
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) {
            let message = format!("cpu: `{}` is not {needed}", shorten(text));
            self.mistake(field.wrong(), message);
            return None;
        }
        if decimals.trim_end_matches('0').len() > 3 {
            let message =
                format!("cpu: `{}` is finer than a thousandth of a processor", shorten(text));
            self.mistake(field.wrong(), message);
            return None;
        }
        let thousandths = format!("{decimals:0<3}")[..3].parse::<u32>().ok()?;
        let whole = whole.parse::<u32>().ok().filter(|whole| *whole <= MOST_PROCESSORS);
        let millis = whole.map(|whole| whole * 1000 + thousandths);
        let millis = millis.filter(|millis| *millis <= MOST_PROCESSORS * 1000);
        if millis.is_none() {
            let message =
                format!("cpu: `{}` is more than {MOST_PROCESSORS} processors", shorten(text));
            self.mistake(field.wrong(), message);
        }
        millis
    }
}

/// The longest name of a machine (RFC 1035, 2.3.4) and more than any label needs.
const LONGEST_PIN: usize = 255;
/// More than any machine has.
const MOST_PROCESSORS: u32 = 100_000;
