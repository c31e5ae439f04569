//! The disciplines of a queue, by name or with parameters.

mod flows;

use serde_json::Value as Json;
use windtunnel_model::profile::{
    CodelParameters, FlowQueues, HostFairParameters, Pi2Parameters, PieParameters, QueueDiscipline,
    QueueLimit, RedParameters, Wf2qParameters,
};
use windtunnel_model::{Bytes, Probability, Span};

use super::property::{QueueLimitForm, read_length};
use crate::grammar::{
    Decoder, Fields, MapSchema, SchemaAlternative, SchemaDefinitions, SchemaKey, ValueForm,
    YamlMapEntry, form, map, words,
};
use crate::text::list;
use crate::tree::YamlValueKind;

words! {
    /// The disciplines.
    DisciplineName: fn() -> QueueDiscipline {
        /// The newcomer is dropped when the queue is full.
        "drop-tail" => || QueueDiscipline::DropTail,
        /// The oldest is dropped when the queue is full.
        "drop-head" => || QueueDiscipline::DropHead,
        /// Controlled delay (RFC 8289), marking packets that can carry ECN.
        "codel" => || QueueDiscipline::Codel(CodelParameters::default()),
        /// Random early detection (Floyd and Jacobson 1993).
        "red" => || QueueDiscipline::Red(RedParameters::default()),
        /// Proportional integral controller enhanced (RFC 8033).
        "pie" => || QueueDiscipline::Pie(PieParameters::default()),
        /// PI squared (De Schepper et al. 2016, RFC 9332).
        "pi2" => || QueueDiscipline::Pi2(Pi2Parameters::default()),
        /// A queue for each flow, with CoDel in each (RFC 8290).
        "fq-codel" => || QueueDiscipline::FqCodel(FlowQueues::default()),
        /// As fq-codel, but hosts share first, and then the flows of each.
        "fair" => || QueueDiscipline::Fair(HostFairParameters::default()),
        /// Flows share alike to within a packet: weighted fair queueing (WF²Q+; Bennett and Zhang
        /// 1997).
        "wf2q" => || QueueDiscipline::Wf2q(Wf2qParameters::default()),
    }
}

map! {
    /// A discipline with parameters: exactly one of these.
    DisciplineForm {
        /// Controlled delay (RFC 8289).
        "codel" CODEL: CodelParameters,
        /// Random early detection (Floyd and Jacobson 1993).
        "red" RED: RedParameters,
        /// Proportional integral controller enhanced (RFC 8033).
        "pie" PIE: PieParameters,
        /// PI squared (De Schepper et al. 2016, RFC 9332).
        "pi2" PI2: Pi2Parameters,
        /// A queue for each flow, with CoDel in each (RFC 8290).
        "fq-codel" FQ_CODEL: FlowQueues,
        /// As fq-codel, but hosts share first, and then the flows of each.
        "fair" FAIR: HostFairParameters,
        /// Weighted fair queueing (WF²Q+; Bennett and Zhang 1997).
        "wf2q" WF2Q: Wf2qParameters,
    }
}

impl ValueForm for QueueDiscipline {
    type Value = QueueDiscipline;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<QueueDiscipline> {
        if field.scalar().is_some() {
            return Some(DisciplineName::read(from, field)?());
        }
        if !matches!(field.value.kind, YamlValueKind::Map(_)) {
            let names: Vec<&str> = DisciplineName::WORDS.iter().map(|(name, _)| *name).collect();
            return from.wrong_type(field, &format!("{} or {{codel: …}}", list(&names)));
        }
        let fields = from.table::<DisciplineForm>(field, "discipline")?;
        let mut forms = fields.all();
        let Some(form) = forms.next() else {
            if !fields.unknown {
                let message = format!("discipline lacks one of {}", list(&DisciplineForm::list()));
                from.mistake(fields.place, message);
            }
            return None;
        };
        if let Some(other) = forms.next() {
            let message = format!("`{}` and `{}` are two disciplines", form.key, other.key);
            from.mistake_with_hint(other.place, message, "keep one of them");
            return None;
        }
        let codel = from.read(&fields, DisciplineForm::CODEL)?.map(QueueDiscipline::Codel);
        let red = from.read(&fields, DisciplineForm::RED)?.map(QueueDiscipline::Red);
        let pie = from.read(&fields, DisciplineForm::PIE)?.map(QueueDiscipline::Pie);
        let pi2 = from.read(&fields, DisciplineForm::PI2)?.map(QueueDiscipline::Pi2);
        let flows = from.read(&fields, DisciplineForm::FQ_CODEL)?.map(QueueDiscipline::FqCodel);
        let fair = from.read(&fields, DisciplineForm::FAIR)?.map(QueueDiscipline::Fair);
        let wf2q = from.read(&fields, DisciplineForm::WF2Q)?.map(QueueDiscipline::Wf2q);
        codel.or(red).or(pie).or(pi2).or(flows).or(fair).or(wf2q)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Discipline",
            "Which packets are dropped when packets wait, and which go first.",
            &[
                SchemaAlternative("By name, with its defaults.", DisciplineName::schema),
                SchemaAlternative("With parameters.", DisciplineForm::definition),
            ],
        )
    }
}

map! {
    /// The parameters of CoDel.
    CodelKeys as "Codel" {
        /// Acceptable standing delay; default 5ms.
        "target" TARGET: Span,
        /// How long the delay may stay above the target; default 100ms.
        "interval" INTERVAL: Span,
        /// Whether packets that can carry ECN are marked instead of dropped; default true.
        "ecn" ECN: bool,
    }
}

impl ValueForm for CodelParameters {
    type Value = CodelParameters;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<CodelParameters> {
        let fields = from.table::<CodelKeys>(field, "codel")?;
        read_codel(from, field, &fields)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        CodelKeys::definition(definitions)
    }
}

fn read_codel(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    fields: &Fields<'_>,
) -> Option<CodelParameters> {
    let mut codel = CodelParameters::default();
    set(from, fields, CodelKeys::TARGET, &mut codel.target)?;
    set(from, fields, CodelKeys::INTERVAL, &mut codel.interval)?;
    set(from, fields, CodelKeys::ECN, &mut codel.ecn)?;
    if codel.interval.is_zero() || codel.target > codel.interval {
        let message = format!(
            "{}: the target ({}) must not be longer than the interval ({})",
            field.key, codel.target, codel.interval
        );
        from.mistake(field.wrong(), message);
        return None;
    }
    Some(codel)
}

map! {
    /// The parameters of RED. Lengths are in packets of one MTU, bytes with overhead, or time at
    /// the rate.
    RedKeys as "Red" {
        /// Average length of the queue from which on packets are dropped; default: a third of
        /// `max`.
        "min" MIN: Length,
        /// Average length at which `probability` is reached, and beyond which all are dropped;
        /// default: a quarter of the queue's limit.
        "max" MAX: Length,
        /// Probability of a drop just below `max`; default 2%.
        "probability" PROBABILITY: SomeProbability,
        /// Weight of a new sample in the average; default 0.2%.
        "weight" WEIGHT: SomeProbability,
        /// Size of a typical packet, by which the average decays while nothing waits; default
        /// 1000B.
        "packet" PACKET: Bytes,
        /// Whether the probability rises on to 100% between `max` and twice of it; default false.
        "gentle" GENTLE: bool,
        /// Whether `probability` is adapted every 500ms to hold the average midway; default false.
        "adaptive" ADAPTIVE: bool,
        /// Whether packets that can carry ECN are marked instead of dropped; default true.
        "ecn" ECN: bool,
    }
}

impl ValueForm for RedParameters {
    type Value = RedParameters;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<RedParameters> {
        let fields = from.table::<RedKeys>(field, "red")?;
        let mut red = RedParameters {
            min: from.read(&fields, RedKeys::MIN)?,
            max: from.read(&fields, RedKeys::MAX)?,
            ..RedParameters::default()
        };
        set(from, &fields, RedKeys::PROBABILITY, &mut red.probability)?;
        set(from, &fields, RedKeys::WEIGHT, &mut red.weight)?;
        set(from, &fields, RedKeys::PACKET, &mut red.packet)?;
        if let (Some(field), Bytes(0)) = (fields.get(RedKeys::PACKET), red.packet) {
            from.mistake(field.wrong(), "packet: a typical packet has some bytes");
            return None;
        }
        set(from, &fields, RedKeys::GENTLE, &mut red.gentle)?;
        set(from, &fields, RedKeys::ADAPTIVE, &mut red.adaptive)?;
        set(from, &fields, RedKeys::ECN, &mut red.ecn)?;
        if let (Some(min), Some(max)) = (red.min, red.max)
            && !rises(min, max)
        {
            let message = format!("red: `max` ({max}) must be more than `min` ({min})");
            from.mistake(field.wrong(), message);
            return None;
        }
        Some(red)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        RedKeys::definition(definitions)
    }
}

map! {
    /// The parameters of PIE.
    PieKeys as "Pie" {
        /// Delay to be held; default 15ms.
        "target" TARGET: Span,
        /// Time between two computations of the drop probability, at least 1ms; default 15ms.
        "update" UPDATE: Span,
        /// How long a burst after calm is left alone; default 150ms.
        "burst" BURST: Span,
        /// Whether drops are spread more evenly than independent ones would be, as Linux does;
        /// default false.
        "derandomise" DERANDOMISE: bool,
        /// Whether packets that can carry ECN are marked instead of dropped, up to a probability
        /// of 10%; default true.
        "ecn" ECN: bool,
    }
}

impl ValueForm for PieParameters {
    type Value = PieParameters;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<PieParameters> {
        let fields = from.table::<PieKeys>(field, "pie")?;
        let mut pie = PieParameters::default();
        set(from, &fields, PieKeys::TARGET, &mut pie.target)?;
        set(from, &fields, PieKeys::UPDATE, &mut pie.update)?;
        set(from, &fields, PieKeys::BURST, &mut pie.burst)?;
        set(from, &fields, PieKeys::DERANDOMISE, &mut pie.derandomise)?;
        set(from, &fields, PieKeys::ECN, &mut pie.ecn)?;
        let wrong = if pie.target.is_zero() {
            "pie: the target must be longer than 0ns".to_owned()
        } else if pie.update < UPDATE_LEAST {
            format!("pie: an update each {} is more often than each {UPDATE_LEAST}", pie.update)
        } else {
            return Some(pie);
        };
        from.mistake(field.wrong(), wrong);
        None
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        PieKeys::definition(definitions)
    }
}

map! {
    /// The parameters of PI2.
    Pi2Keys as "Pi2" {
        /// Delay to be held, at least 1ms; default 15ms.
        "target" TARGET: Span,
        /// The longest round trip for which it is to be stable, 3ms to 10min; default 100ms.
        "max-rtt" MAX_RTT: Span,
        /// Whether packets that can carry ECN are marked instead of dropped, up to a share of 25%;
        /// default true.
        "ecn" ECN: bool,
    }
}

impl ValueForm for Pi2Parameters {
    type Value = Pi2Parameters;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Pi2Parameters> {
        let fields = from.table::<Pi2Keys>(field, "pi2")?;
        let mut pi2 = Pi2Parameters::default();
        set(from, &fields, Pi2Keys::TARGET, &mut pi2.target)?;
        set(from, &fields, Pi2Keys::MAX_RTT, &mut pi2.max_rtt)?;
        set(from, &fields, Pi2Keys::ECN, &mut pi2.ecn)?;
        let wrong = if pi2.target < UPDATE_LEAST {
            format!("pi2: the target must be at least {UPDATE_LEAST}, not {}", pi2.target)
        } else if !(RTT_LEAST..=RTT_MOST).contains(&pi2.max_rtt) {
            format!("pi2: max-rtt is {RTT_LEAST} to {RTT_MOST}, not {}", pi2.max_rtt)
        } else {
            return Some(pi2);
        };
        from.mistake(field.wrong(), wrong);
        None
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        Pi2Keys::definition(definitions)
    }
}

/// Puts the value of a key, where the file has it, in place of the default.
fn set<F: ValueForm>(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
    key: SchemaKey<F>,
    slot: &mut F::Value,
) -> Option<()> {
    if let Some(value) = from.read(fields, key)? {
        *slot = value;
    }
    Some(())
}

form! {
    /// A length of a queue.
    Length: QueueLimit, by read_length_form, like QueueLimitForm::schema
}

fn read_length_form(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<QueueLimit> {
    read_length(from, field, "packets, bytes or a time, such as 20p, 30KB or 10ms")
}

form! {
    /// A probability above 0.
    SomeProbability: Probability, by read_some_probability, like Probability::schema
}

fn read_some_probability(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Probability> {
    let probability: Probability = from.quantity(field, "a probability such as 2%")?;
    if probability.is_never() {
        from.mistake(field.wrong(), format!("{}: must be more than 0%", field.key));
        return None;
    }
    Some(probability)
}

/// Whether `max` is more than `min`, as far as that is known without the link's rate.
fn rises(min: QueueLimit, max: QueueLimit) -> bool {
    match (min, max) {
        (QueueLimit::Packets(min), QueueLimit::Packets(max)) => min < max,
        (QueueLimit::Bytes(min), QueueLimit::Bytes(max)) => min < max,
        (QueueLimit::Time(min), QueueLimit::Time(max)) => min < max,
        _ => true,
    }
}

/// Computing more often than this costs more than it gains.
const UPDATE_LEAST: Span = Span::from_millis(1);
const RTT_LEAST: Span = Span::from_millis(3);
const RTT_MOST: Span = Span::from_secs(600);
