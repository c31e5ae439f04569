//! The disciplines of a queue, by name or with parameters.

use windtunnel_model::profile::{Codel, Discipline, Fair, FlowQueues, Pie, QueueLimit, Red, Side};
use windtunnel_model::{Bytes, Probability, Span};

use super::{Field, Fields};
use crate::error::Findings;
use crate::keys;
use crate::text::{list, nearest, shorten};
use crate::tree::Kind;

const NAMES: [&str; 7] = ["drop-tail", "drop-head", "codel", "red", "pie", "fq-codel", "fair"];
/// What is computed more often than this costs more than it tells.
const UPDATE_LEAST: Span = Span::from_millis(1);

impl Findings {
    pub(super) fn discipline(&mut self, field: Field<'_>) -> Option<Discipline> {
        if let Some(name) = field.scalar() {
            return self.by_name(field, name);
        }
        if !matches!(field.value.kind, Kind::Map(_)) {
            return self.wrong_type(field, &format!("{} or {{codel: …}}", list(&NAMES)));
        }
        let fields = self.fields(field, "discipline", keys::DISCIPLINE)?;
        let mut forms = fields.all();
        let Some(form) = forms.next() else {
            if !fields.unknown {
                let message = format!("discipline lacks one of {}", list(keys::DISCIPLINE));
                self.mistake(fields.place, message);
            }
            return None;
        };
        if let Some(other) = forms.next() {
            let message = format!("`{}` and `{}` are two disciplines", form.key, other.key);
            self.mistake_with_hint(other.place, message, "keep one of them");
            return None;
        }
        match form.key {
            "red" => self.red(form).map(Discipline::Red),
            "pie" => self.pie(form).map(Discipline::Pie),
            "fq-codel" => {
                let fields = self.fields(form, "fq-codel", keys::FQ_CODEL)?;
                self.flow_queues(form, &fields).map(Discipline::FqCodel)
            }
            "fair" => self.fair(form).map(Discipline::Fair),
            _ => {
                let fields = self.fields(form, "codel", keys::CODEL)?;
                self.codel(form, &fields).map(Discipline::Codel)
            }
        }
    }

    fn by_name(&mut self, field: Field<'_>, name: &str) -> Option<Discipline> {
        match name {
            "drop-tail" => return Some(Discipline::DropTail),
            "drop-head" => return Some(Discipline::DropHead),
            "codel" => return Some(Discipline::Codel(Codel::default())),
            "red" => return Some(Discipline::Red(Red::default())),
            "pie" => return Some(Discipline::Pie(Pie::default())),
            "fq-codel" => return Some(Discipline::FqCodel(FlowQueues::default())),
            "fair" => return Some(Discipline::Fair(Fair::default())),
            _ => {}
        }
        let message = format!("discipline: `{}` is not {}", shorten(name), list(&NAMES));
        match nearest(name, NAMES) {
            Some(near) => {
                let hint = format!("did you mean `{near}`?");
                self.mistake_with_hint(field.wrong(), message, hint);
            }
            None => self.mistake(field.wrong(), message),
        }
        None
    }

    fn codel(&mut self, field: Field<'_>, fields: &Fields<'_>) -> Option<Codel> {
        let mut codel = Codel::default();
        self.time(fields, "target", &mut codel.target)?;
        self.time(fields, "interval", &mut codel.interval)?;
        self.switch(fields, "ecn", &mut codel.ecn)?;
        if codel.interval.is_zero() || codel.target > codel.interval {
            let message = format!(
                "{}: the target ({}) must not be longer than the interval ({})",
                field.key, codel.target, codel.interval
            );
            self.mistake(field.wrong(), message);
            return None;
        }
        Some(codel)
    }

    fn flow_queues(&mut self, field: Field<'_>, fields: &Fields<'_>) -> Option<FlowQueues> {
        let mut queues = FlowQueues::default();
        if let Some(field) = fields.find("flows") {
            let most = u64::from(FlowQueues::MOST_FLOWS);
            let flows = self.integer(field, 1..=most, "a number of queues from 1 to 65536")?;
            queues.flows = u32::try_from(flows).ok()?;
        }
        if let Some(field) = fields.find("quantum") {
            let bytes: Bytes = self.quantity(field, "a size such as 1514B")?;
            match u32::try_from(bytes.0).ok().filter(|bytes| (64..=1_000_000).contains(bytes)) {
                Some(quantum) => queues.quantum = quantum,
                None => {
                    let message = format!("quantum: `{bytes}` is not between 64B and 1MB");
                    self.mistake(field.wrong(), message);
                    return None;
                }
            }
        }
        queues.codel = self.codel(field, fields)?;
        Some(queues)
    }

    fn fair(&mut self, field: Field<'_>) -> Option<Fair> {
        let fields = self.fields(field, "fair", keys::FAIR)?;
        let by = match fields.find("by") {
            Some(field) => {
                let sides = [("destination", Side::Destination), ("source", Side::Source)];
                self.choice(field, &sides)?
            }
            None => Side::default(),
        };
        Some(Fair { by, queues: self.flow_queues(field, &fields)? })
    }

    fn red(&mut self, field: Field<'_>) -> Option<Red> {
        const LENGTH: &str = "packets, bytes or a time, such as 20p, 30KB or 10ms";
        let fields = self.fields(field, "red", keys::RED)?;
        let mut red = Red::default();
        for (key, slot) in [("min", &mut red.min), ("max", &mut red.max)] {
            if let Some(field) = fields.find(key) {
                *slot = Some(self.length(field, LENGTH)?);
            }
        }
        self.share(&fields, "probability", &mut red.probability)?;
        self.share(&fields, "weight", &mut red.weight)?;
        if let Some(field) = fields.find("packet") {
            red.packet = self.quantity(field, "a size such as 1000B")?;
            if red.packet.0 == 0 {
                self.mistake(field.wrong(), "packet: a typical packet has some bytes".to_owned());
                return None;
            }
        }
        self.switch(&fields, "gentle", &mut red.gentle)?;
        self.switch(&fields, "adaptive", &mut red.adaptive)?;
        self.switch(&fields, "ecn", &mut red.ecn)?;
        if let (Some(min), Some(max)) = (red.min, red.max)
            && !rises(min, max)
        {
            let message = format!("red: `max` ({max}) must be more than `min` ({min})");
            self.mistake(field.wrong(), message);
            return None;
        }
        Some(red)
    }

    fn pie(&mut self, field: Field<'_>) -> Option<Pie> {
        let fields = self.fields(field, "pie", keys::PIE)?;
        let mut pie = Pie::default();
        self.time(&fields, "target", &mut pie.target)?;
        self.time(&fields, "update", &mut pie.update)?;
        self.time(&fields, "burst", &mut pie.burst)?;
        self.switch(&fields, "derandomise", &mut pie.derandomise)?;
        self.switch(&fields, "ecn", &mut pie.ecn)?;
        let wrong = if pie.target.is_zero() {
            "pie: the target must be longer than 0ns".to_owned()
        } else if pie.update < UPDATE_LEAST {
            format!("pie: an update each {} is more often than each {UPDATE_LEAST}", pie.update)
        } else {
            return Some(pie);
        };
        self.mistake(field.wrong(), wrong);
        None
    }

    fn time(&mut self, fields: &Fields<'_>, key: &str, slot: &mut Span) -> Option<()> {
        if let Some(field) = fields.find(key) {
            *slot = self.quantity(field, "a time such as 5ms")?;
        }
        Some(())
    }

    fn switch(&mut self, fields: &Fields<'_>, key: &str, slot: &mut bool) -> Option<()> {
        if let Some(field) = fields.find(key) {
            *slot = self.flag(field)?;
        }
        Some(())
    }

    /// A probability above 0.
    fn share(&mut self, fields: &Fields<'_>, key: &str, slot: &mut Probability) -> Option<()> {
        if let Some(field) = fields.find(key) {
            *slot = self.quantity(field, "a probability such as 2%")?;
            if slot.is_never() {
                self.mistake(field.wrong(), format!("{key}: must be more than 0%"));
                return None;
            }
        }
        Some(())
    }
}

/// Whether `max` is more than `min`, as far as that can be told without the link's rate.
fn rises(min: QueueLimit, max: QueueLimit) -> bool {
    match (min, max) {
        (QueueLimit::Packets(min), QueueLimit::Packets(max)) => min < max,
        (QueueLimit::Bytes(min), QueueLimit::Bytes(max)) => min < max,
        (QueueLimit::Time(min), QueueLimit::Time(max)) => min < max,
        _ => true,
    }
}
