//! `loss`: a probability, bursts, or listed packets.

use serde_json::{Value as Json, json};
use windtunnel_model::Probability;
use windtunnel_model::profile::{GilbertElliott, LossModel};

use crate::grammar::{
    Decoder, Fields, SchemaAlternative, SchemaDefinitions, ValueForm, YamlMapEntry, map,
};
use crate::tree::YamlValueKind;

map! {
    /// Loss in bursts (Gilbert–Elliott: `good-to-bad`, `bad-to-good` …), or of listed `packets`.
    LossForm {
        /// Probability per packet that bad times begin.
        "good-to-bad" GOOD_TO_BAD: Probability,
        /// Probability per packet that bad times end; its inverse is their mean length in packets.
        "bad-to-good" BAD_TO_GOOD: Probability,
        /// Probability of loss in bad times; default 100%.
        "loss-in-bad" LOSS_IN_BAD: Probability,
        /// Probability of loss in good times; default 0%.
        "loss-in-good" LOSS_IN_GOOD: Probability,
        /// Exactly the packets with these numbers, counted from 1 in each direction.
        "packets" PACKETS: PacketNumbers,
    }
}

impl ValueForm for LossModel {
    type Value = LossModel;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<LossModel> {
        if field.scalar().is_some() {
            let probability = Probability::read(from, field)?;
            let none = probability.is_never();
            return Some(if none { LossModel::None } else { LossModel::Independent(probability) });
        }
        if !matches!(field.value.kind, YamlValueKind::Map(_)) {
            let needed = "a probability such as 0.1%, `none`, {good-to-bad: …, bad-to-good: …} or \
                          {packets: […]}";
            return from.wrong_type(field, needed);
        }
        let fields = from.table::<LossForm>(field, "loss")?;
        let Some(packets) = fields.get(LossForm::PACKETS) else {
            return read_bursts(from, &fields);
        };
        if let Some(other) = fields.all().find(|other| other.key != packets.key) {
            let message = format!("`packets` and `{}` are two kinds of loss", other.key);
            from.mistake_with_hint(other.place, message, "keep one of them");
            return None;
        }
        let numbers = PacketNumbers::read(from, packets)?;
        Some(if numbers.is_empty() { LossModel::None } else { LossModel::Listed(numbers) })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Loss",
            "Packets that vanish.",
            &[
                SchemaAlternative("Each with this probability, or `none`.", Probability::schema),
                SchemaAlternative("In bursts, or listed.", LossForm::definition),
            ],
        )
    }
}

fn read_bursts(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<LossModel> {
    let what = "loss in bursts";
    let good_to_bad = from.need(fields, LossForm::GOOD_TO_BAD, what);
    let bad_to_good = from.need(fields, LossForm::BAD_TO_GOOD, what);
    let loss_in_bad = from.read_or(fields, LossForm::LOSS_IN_BAD, Probability::ALWAYS);
    let loss_in_good = from.read_or(fields, LossForm::LOSS_IN_GOOD, Probability::NEVER);
    let chain = GilbertElliott {
        good_to_bad: good_to_bad?,
        bad_to_good: bad_to_good?,
        loss_in_good: loss_in_good?,
        loss_in_bad: loss_in_bad?,
    };
    if chain.good_to_bad.is_never() && chain.bad_to_good.is_never() {
        let place = fields.get(LossForm::GOOD_TO_BAD).map_or(fields.place, YamlMapEntry::wrong);
        let message = "`good-to-bad` and `bad-to-good` are both zero: the state never changes";
        let hint = "write `loss: P%` for independent loss, or give both a value";
        from.mistake_with_hint(place, message, hint);
        return None;
    }
    Some(LossModel::GilbertElliott(chain))
}

/// Numbers of packets, from 1; they come out sorted.
struct PacketNumbers;

impl ValueForm for PacketNumbers {
    type Value = Vec<u64>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<u64>> {
        let items = from.list(field, "a list of packet numbers, counted from 1")?;
        let needed = "a packet number, counted from 1";
        let numbers = items.map(|item| from.integer(item, 1..=u64::MAX, needed));
        let mut numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
        numbers.sort_unstable();
        numbers.dedup();
        Some(numbers)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let number = json!({"type": "integer", "minimum": 1});
        let number = definitions.named("PacketNumber", "The number of a packet, from 1.", number);
        json!({"type": "array", "items": number})
    }
}
