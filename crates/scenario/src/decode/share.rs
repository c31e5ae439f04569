//! What a program has of its node's link.

use serde_json::Value as Json;
use windtunnel_model::Rate;
use windtunnel_model::demand::Demand;
use windtunnel_model::profile::SendShare;

use super::limits::number;
use crate::grammar::{
    BoundedInteger, Decoder, MapSchema, SchemaDefinitions, ValueForm, YamlMapEntry, map,
};
use crate::text::list;
use crate::tree::YamlValueKind;

/// A part of a link's rate.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LinkShareDraft {
    min: Option<Rate>,
    weight: Option<u32>,
}

impl LinkShareDraft {
    /// The class of a program with this name.
    pub(crate) fn named(self, name: String) -> SendShare {
        SendShare { name, min: self.min, weight: self.weight.unwrap_or(Demand::WEIGHT_DEFAULT) }
    }

    pub(crate) fn has_min(self) -> bool {
        self.min.is_some()
    }
}

map! {
    /// What programs of a node have of its link.
    ShareTable {
        /// What it has of the rate of its node's link when others want it, too. The node must have
        /// one link. All programs of the node then share it, those without `send` with weight 1,
        /// and so does everything else that the node sends.
        "send" SEND: LinkShareDraft,
    }
}

map! {
    /// A share of a link: at least one of these.
    ShareKeys as "Share" {
        /// At least so much whenever it is wanted, counted as the link's `rate` counts.
        "min" MIN: Rate,
        /// Its part of what is no program's minimum, in proportion to the weights of the others;
        /// default 1.
        "weight" WEIGHT: BoundedInteger<1, { Demand::WEIGHT_MAX as u64 }>,
    }
}

impl ValueForm for LinkShareDraft {
    type Value = LinkShareDraft;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<LinkShareDraft> {
        if !matches!(field.value.kind, YamlValueKind::Map(_)) {
            let message = "`send` of a program is a share of its node's link, such as {weight: 2}";
            let hint = "`send: 1MB/s` beside `run` limits the node";
            from.mistake_with_hint(field.wrong(), message, hint);
            return None;
        }
        let fields = from.table::<ShareKeys>(field, "send")?;
        let min = from.read(&fields, ShareKeys::MIN)?;
        let weight = number(from, &fields, ShareKeys::WEIGHT)?;
        if fields.all().next().is_none() && !fields.unknown {
            from.mistake(fields.place, format!("send lacks one of {}", list(&ShareKeys::list())));
            return None;
        }
        Some(LinkShareDraft { min, weight })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        ShareKeys::definition(definitions)
    }
}
