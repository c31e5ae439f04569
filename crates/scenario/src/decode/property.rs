//! The properties of one direction of a link, each in all its forms.

use windtunnel_model::profile::{
    Distribution, GilbertElliott, Jitter, Loss, Overhead, QueueLimit, Reorder, Setting,
};
use windtunnel_model::{Bytes, LinkPatch, Packets, Probability, Span};

use super::{Field, Fields, hint_for_unit};
use crate::error::Findings;
use crate::keys;
use crate::text::shorten;
use crate::tree::{Kind, Value};

/// Reads the property `key` of `value` into `patch`, as a link in a file would.
pub(crate) fn decode_property(
    found: &mut Findings,
    key: &str,
    value: &Value,
    patch: &mut LinkPatch,
) {
    found.property(Field { key, place: value.place, value }, patch);
}

/// A queue's limit, if `text` is one.
pub(crate) fn parse_queue(text: &str) -> Option<QueueLimit> {
    if let Ok(packets) = text.parse::<Packets>() {
        return Some(QueueLimit::Packets(packets));
    }
    let bytes = text.parse::<Bytes>().map(QueueLimit::Bytes);
    bytes.or_else(|_| text.parse::<Span>().map(QueueLimit::Time)).ok()
}

impl Findings {
    /// Reads one property into `patch`.
    pub(super) fn property(&mut self, field: Field<'_>, patch: &mut LinkPatch) {
        match field.key {
            "latency" => patch.latency = self.quantity(field, "a time such as 10ms"),
            "jitter" => patch.jitter = self.jitter(field),
            "loss" => patch.loss = self.loss(field),
            "duplicate" => patch.duplicate = self.probability(field),
            "corrupt" => patch.corrupt = self.probability(field),
            "reorder" => patch.reorder = self.reorder(field),
            "rate" => self.rate(field, patch),
            "trace" => self.trace(field, patch),
            "overhead" => patch.overhead = self.overhead(field),
            "mtu" => patch.mtu = self.mtu(field),
            "queue" => patch.queue = self.queue(field),
            "discipline" => patch.discipline = self.discipline(field),
            _ => {}
        }
    }

    pub(super) fn probability(&mut self, field: Field<'_>) -> Option<Probability> {
        match field.scalar() {
            Some("none") => Some(Probability::NEVER),
            _ => self.quantity(field, "a probability such as 0.1%"),
        }
    }

    fn jitter(&mut self, field: Field<'_>) -> Option<Jitter> {
        if let Some("none") = field.scalar() {
            return Some(Jitter::default());
        }
        if field.scalar().is_some() {
            let spread = self.quantity(field, "a time such as 2ms, or `none`")?;
            return Some(Jitter { spread, distribution: Distribution::Uniform });
        }
        let needed = "a time such as 2ms, or {spread: 2ms, distribution: normal}, or {table: […]}";
        if !matches!(field.value.kind, Kind::Map(_)) {
            return self.wrong_type(field, needed);
        }
        let fields = self.fields(field, "jitter", keys::JITTER)?;
        if let Some(table) = fields.find("table") {
            if fields.has("spread") || fields.has("distribution") {
                let message = "`table` is the whole distribution: it has no `spread` beside it";
                self.mistake(table.place, message);
                return None;
            }
            let distribution = Distribution::Table(self.table(table)?);
            return Some(Jitter { spread: Span::ZERO, distribution });
        }
        let spread = self.required(&fields, "spread", "jitter");
        let spread = spread.and_then(|field| self.quantity(field, "a time such as 2ms"));
        let distribution = match fields.find("distribution") {
            Some(field) => {
                let choices: [(_, fn() -> Distribution); 3] = [
                    ("uniform", || Distribution::Uniform),
                    ("normal", || Distribution::Normal),
                    ("pareto", || Distribution::Pareto),
                ];
                self.choice(field, &choices)?()
            }
            None => Distribution::Uniform,
        };
        Some(Jitter { spread: spread?, distribution })
    }

    fn table(&mut self, field: Field<'_>) -> Option<Vec<Span>> {
        const MOST: usize = 1000;
        let items = self.list(field, "a list of times, the quantiles of the delay")?;
        let table: Vec<Span> =
            items.map(|item| self.quantity(item, "a time such as 2ms")).collect::<Option<_>>()?;
        let wrong = if table.len() < 2 {
            "a table needs two times or more: the least and the greatest delay"
        } else if table.len() > MOST {
            "a table has at most 1000 times"
        } else if !table.is_sorted() {
            "a table holds quantiles: its times must not decrease"
        } else {
            return Some(table);
        };
        self.mistake(field.wrong(), wrong);
        None
    }

    fn loss(&mut self, field: Field<'_>) -> Option<Loss> {
        if field.scalar().is_some() {
            let probability = self.probability(field)?;
            let none = probability.is_never();
            return Some(if none { Loss::None } else { Loss::Independent(probability) });
        }
        let needed = "a probability such as 0.1%, `none`, {good-to-bad: …, bad-to-good: …} or \
                      {packets: […]}";
        if !matches!(field.value.kind, Kind::Map(_)) {
            return self.wrong_type(field, needed);
        }
        let fields = self.fields(field, "loss", keys::LOSS)?;
        if let Some(packets) = fields.find("packets") {
            if let Some(other) = fields.all().find(|other| other.key != "packets") {
                let message = format!("`packets` and `{}` are two kinds of loss", other.key);
                self.mistake_with_hint(other.place, message, "keep one of them");
                return None;
            }
            return self.listed(packets);
        }
        self.bursts(&fields)
    }

    fn bursts(&mut self, fields: &Fields<'_>) -> Option<Loss> {
        let good_to_bad = self.required(fields, "good-to-bad", "loss in bursts");
        let bad_to_good = self.required(fields, "bad-to-good", "loss in bursts");
        let mut read = |field: Option<Field<'_>>, default| match field {
            Some(field) => self.probability(field),
            None => Some(default),
        };
        let good_to_bad_read = read(good_to_bad, Probability::NEVER);
        let bad_to_good_read = read(bad_to_good, Probability::NEVER);
        let loss_in_bad = read(fields.find("loss-in-bad"), Probability::ALWAYS);
        let loss_in_good = read(fields.find("loss-in-good"), Probability::NEVER);
        let chain = GilbertElliott {
            good_to_bad: good_to_bad_read?,
            bad_to_good: bad_to_good_read?,
            loss_in_good: loss_in_good?,
            loss_in_bad: loss_in_bad?,
        };
        let stuck = chain.good_to_bad.is_never() && chain.bad_to_good.is_never();
        if let (true, Some(field), Some(_)) = (stuck, good_to_bad, bad_to_good) {
            let message = "`good-to-bad` and `bad-to-good` are both zero: the state never changes";
            self.mistake_with_hint(
                field.wrong(),
                message,
                "write `loss: P%` for independent loss, or give both a value",
            );
            return None;
        }
        Some(Loss::GilbertElliott(chain))
    }

    fn listed(&mut self, field: Field<'_>) -> Option<Loss> {
        let items = self.list(field, "a list of packet numbers, counted from 1")?;
        let numbers =
            items.map(|item| self.integer(item, 1..=u64::MAX, "a packet number, counted from 1"));
        let mut numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
        numbers.sort_unstable();
        numbers.dedup();
        Some(if numbers.is_empty() { Loss::None } else { Loss::Listed(numbers) })
    }

    fn reorder(&mut self, field: Field<'_>) -> Option<Reorder> {
        /// How long a packet is held back where the file does not say.
        const EXTRA: Span = Span::from_millis(1);
        match field.scalar() {
            Some("none") => return Some(Reorder::default()),
            Some("jitter") => return Some(Reorder { by_jitter: true, ..Reorder::default() }),
            Some(_) => {
                let needed = "`none`, `jitter` or a probability such as 1%";
                let probability = self.quantity(field, needed)?;
                return Some(Reorder { by_jitter: false, probability, extra: EXTRA });
            }
            None => {}
        }
        let needed = "`none`, `jitter`, a probability, or {probability: 1%, extra: 5ms}";
        if !matches!(field.value.kind, Kind::Map(_)) {
            return self.wrong_type(field, needed);
        }
        let fields = self.fields(field, "reorder", keys::REORDER)?;
        let probability = match fields.find("probability") {
            Some(field) => self.probability(field)?,
            None => Probability::NEVER,
        };
        let extra = match fields.find("extra") {
            Some(field) => self.quantity(field, "a time such as 5ms")?,
            None => EXTRA,
        };
        let by_jitter = match fields.find("by-jitter") {
            Some(field) => self.flag(field)?,
            None => false,
        };
        let extra = if probability.is_never() { Span::ZERO } else { extra };
        Some(Reorder { by_jitter, probability, extra })
    }

    fn rate(&mut self, field: Field<'_>, patch: &mut LinkPatch) {
        patch.traces.rate = None;
        patch.rate = match (field.scalar(), &field.value.kind) {
            (Some("none"), _) => Some(Setting::Default),
            (None, Kind::Map(_)) => return self.rate_trace(field, patch),
            (None, _) => {
                let needed = "a rate such as 10mbit, `none`, or {trace: FILE}";
                return self.wrong_type::<()>(field, needed).unwrap_or_default();
            }
            (Some(_), _) => {
                self.quantity(field, "a rate such as 10mbit, or `none`").map(Setting::To)
            }
        };
    }

    fn overhead(&mut self, field: Field<'_>) -> Option<Setting<Overhead>> {
        const MOST: u64 = 1000;
        match field.scalar() {
            Some("ethernet") => return Some(Setting::To(Overhead::ETHERNET)),
            Some("none") => return Some(Setting::To(Overhead::NONE)),
            Some("default") => return Some(Setting::Default),
            _ => {}
        }
        let bytes: Bytes = self.quantity(field, "`ethernet`, `none` or a size such as 42B")?;
        match u32::try_from(bytes.0) {
            Ok(small) if bytes.0 <= MOST => Some(Setting::To(Overhead(small))),
            _ => {
                let message = format!("overhead: `{bytes}` a packet is more than {MOST}B");
                self.mistake(field.wrong(), message);
                None
            }
        }
    }

    fn mtu(&mut self, field: Field<'_>) -> Option<u32> {
        let text = self.text(field, "a number of bytes such as 1500")?;
        let bytes = if text.bytes().all(|b| b.is_ascii_digit()) {
            self.integer(field, 0..=u64::MAX, "a number of bytes such as 1500")?
        } else {
            self.quantity::<Bytes>(field, "a number of bytes such as 1500")?.0
        };
        // 68 is the least that every IPv4 link carries (RFC 791); IPv6 is judged with the whole
        // file.
        match u32::try_from(bytes) {
            Ok(mtu) if (68..=65_535).contains(&mtu) => Some(mtu),
            _ => {
                let message = format!("mtu: `{}` is not between 68 and 65535", shorten(text));
                self.mistake(field.wrong(), message);
                None
            }
        }
    }

    fn queue(&mut self, field: Field<'_>) -> Option<Setting<QueueLimit>> {
        if field.scalar() == Some("default") {
            return Some(Setting::Default);
        }
        let needed = "packets, bytes or a time, such as 100p, 256KB or 50ms, or `default`";
        self.length(field, needed).map(Setting::To)
    }

    /// A length of a queue.
    pub(super) fn length(&mut self, field: Field<'_>, needed: &str) -> Option<QueueLimit> {
        let text = self.text(field, needed)?;
        let unit = text.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
        let limit = match unit {
            "p" => QueueLimit::Packets(self.quantity::<Packets>(field, needed)?),
            "ns" | "us" | "µs" | "ms" | "s" | "min" | "h" => {
                QueueLimit::Time(self.quantity(field, needed)?)
            }
            unit if unit.ends_with('B') => QueueLimit::Bytes(self.quantity(field, needed)?),
            _ => {
                let message = format!("{}: `{}` is not {needed}", field.key, shorten(text));
                match hint_for_unit(text) {
                    Some(hint) => self.mistake_with_hint(field.wrong(), message, hint),
                    None => self.mistake(field.wrong(), message),
                }
                return None;
            }
        };
        Some(limit)
    }
}
