//! Limits of nodes and of programs.

mod disk;

use serde_json::{Value as Json, json};
use windtunnel_model::demand::Demand;
use windtunnel_model::{Bytes, Rate};

use crate::grammar::{
    BoundedInteger, Decoder, Fields, MapSchema, SchemaAlternative, SchemaDefinitions, SchemaKey,
    ValueForm, YamlMapEntry, map,
};
use crate::position::LocatedValue;
use crate::text::{list, shorten};
use crate::tree::{YamlValue, YamlValueKind};
use disk::DiskRate;

pub(crate) use disk::DiskDemandDraft;

/// What a node, `defaults.node` or a program may say.
#[derive(Debug, Clone, Default)]
pub(crate) struct LimitKeys {
    pub(crate) cpu: Option<LocatedValue<CpuDemandDraft>>,
    pub(crate) memory: Option<LocatedValue<MemoryDemandDraft>>,
    pub(crate) pids: Option<u32>,
    pub(crate) open_files: Option<u32>,
    pub(crate) disk: Option<DiskDemandDraft>,
}

/// What a node and `defaults.node` may say of its packets.
#[derive(Debug, Clone, Default)]
pub(crate) struct RateKeys {
    pub(crate) send: Option<LocatedValue<Rate>>,
    pub(crate) receive: Option<LocatedValue<Rate>>,
}

/// Shares of processors, in thousandths of one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuDemandDraft {
    limit: Option<u32>,
    min: Option<u32>,
    weight: Option<u32>,
    reserved: Option<u32>,
}

/// Sizes of memory.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemoryDemandDraft {
    limit: Option<Bytes>,
    reserved: Option<Bytes>,
}

impl LimitKeys {
    /// What is not said here is taken from `defaults`.
    pub(crate) fn or(&self, defaults: &LimitKeys) -> LimitKeys {
        LimitKeys {
            cpu: self.cpu.clone().or_else(|| defaults.cpu.clone()),
            memory: self.memory.clone().or_else(|| defaults.memory.clone()),
            pids: self.pids.or(defaults.pids),
            open_files: self.open_files.or(defaults.open_files),
            disk: self.disk.or(defaults.disk),
        }
    }

    pub(crate) fn demand(&self) -> Demand {
        let cpu = self.cpu.as_ref().map(|it| it.value).unwrap_or_default();
        let memory = self.memory.as_ref().map(|it| it.value).unwrap_or_default();
        let disk = self.disk.unwrap_or_default();
        Demand {
            cpu_millis: cpu.limit,
            cpu_min_millis: cpu.min,
            cpu_weight: cpu.weight,
            cpu_reserved_millis: cpu.reserved,
            memory: memory.limit,
            memory_reserved: memory.reserved,
            pids: self.pids,
            open_files: self.open_files,
            disk: disk.limit,
            disk_weight: disk.weight,
        }
    }
}

impl RateKeys {
    /// What is not said here is taken from `defaults`.
    pub(crate) fn or(&self, defaults: &RateKeys) -> RateKeys {
        RateKeys {
            send: self.send.clone().or_else(|| defaults.send.clone()),
            receive: self.receive.clone().or_else(|| defaults.receive.clone()),
        }
    }
}

map! {
    /// What nodes and programs have.
    LimitTable {
        /// How much processor time it may use, a node with all its programs together, as on a slower
        /// machine: `25%` of a processor, or `2.5` processors. Computing takes so much longer;
        /// sleeping and waiting take as long as they do, and nothing more is given when the machine
        /// is idle. So much must be free on the machine, beside what this user's other runs have
        /// reserved there. A map says one of these by itself. Of `count` nodes, each has so much.
        "cpu" CPU: CpuDemandDraft,
        /// Memory that it may use, a node with all its programs together. What needs more is
        /// ended, and nothing else. So much must be free on the machine, in the same way; a map says
        /// one of these by itself.
        "memory" MEMORY: MemoryDemandDraft,
        /// How many processes and threads it may have at a time, a node with all its programs
        /// together. Of more, none starts.
        "pids" PIDS: BoundedInteger<1, { Demand::PIDS_MAX as u64 }>,
        /// How many descriptors each of its processes may have open (RLIMIT_NOFILE).
        "open-files" OPEN_FILES:
            BoundedInteger<{ Demand::OPEN_FILES_MIN as u64 }, { Demand::OPEN_FILES_MAX as u64 }>,
        /// What it may read of each disk at most, and what it may write, a node with all its
        /// programs together; a map says that and a weight. Needs control groups of version 2.
        "disk" DISK: DiskDemandDraft,
    }
}

map! {
    /// What nodes have for their packets.
    RateTable {
        /// What it may send at most, such as `1MB/s`, counted as the `rate` of its link counts. It
        /// must have one link.
        "send" SEND: Rate,
        /// What it may receive at most, counted as the `rate` of its link counts. It must have one
        /// link.
        "receive" RECEIVE: Rate,
    }
}

map! {
    /// Shares of processors: at least one of these.
    CpuKeys as "Cpu" {
        /// At most so much, also on an idle machine; nothing is reserved.
        "limit" LIMIT: ProcessorCountForm,
        /// At least so much whenever it is wanted: a reservation. Needs control groups.
        "min" MIN: ProcessorCountForm,
        /// Its part of what is not reserved or not used, in proportion to the weights of other
        /// nodes; default 1. Needs control groups.
        "weight" WEIGHT: BoundedInteger<1, { Demand::WEIGHT_MAX as u64 }>,
    }
}

impl ValueForm for CpuDemandDraft {
    type Value = CpuDemandDraft;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<CpuDemandDraft> {
        if !matches!(field.value.kind, YamlValueKind::Map(_)) {
            let limit = ProcessorCountForm::read(from, field)?;
            return Some(CpuDemandDraft {
                limit: Some(limit),
                reserved: Some(limit),
                ..CpuDemandDraft::default()
            });
        }
        let fields = from.table::<CpuKeys>(field, "cpu")?;
        let limit = from.read(&fields, CpuKeys::LIMIT)?;
        let min = from.read(&fields, CpuKeys::MIN)?;
        let weight = number(from, &fields, CpuKeys::WEIGHT)?;
        if fields.all().next().is_none() && !fields.unknown {
            from.mistake(fields.place, format!("cpu lacks one of {}", list(&CpuKeys::list())));
            return None;
        }
        if let (Some(limit), Some(min)) = (limit, min)
            && min > limit
        {
            let message = "cpu: `min` is more than `limit`";
            from.mistake(fields.place, message);
            return None;
        }
        Some(CpuDemandDraft { limit, min, weight, reserved: min })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Processors",
            "Shares of processors.",
            &[
                SchemaAlternative("A limit.", ProcessorCountForm::schema),
                SchemaAlternative("By name.", CpuKeys::definition),
            ],
        )
    }
}

map! {
    /// Sizes of memory: at least one of these.
    MemoryKeys as "Memory" {
        /// At most so much; nothing is reserved.
        "limit" LIMIT: MemoryLimitForm,
        /// So much must be free on the machine, beside what this user's other runs have reserved
        /// there.
        "min" MIN: Bytes,
    }
}

impl ValueForm for MemoryDemandDraft {
    type Value = MemoryDemandDraft;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<MemoryDemandDraft> {
        if !matches!(field.value.kind, YamlValueKind::Map(_)) {
            let size = MemoryLimitForm::read(from, field)?;
            return Some(MemoryDemandDraft { limit: Some(size), reserved: Some(size) });
        }
        let fields = from.table::<MemoryKeys>(field, "memory")?;
        let limit = from.read(&fields, MemoryKeys::LIMIT)?;
        let reserved = from.read(&fields, MemoryKeys::MIN)?;
        if fields.all().next().is_none() && !fields.unknown {
            let message = format!("memory lacks one of {}", list(&MemoryKeys::list()));
            from.mistake(fields.place, message);
            return None;
        }
        if let (Some(limit), Some(min)) = (limit, reserved)
            && min > limit
        {
            from.mistake(fields.place, "memory: `min` is more than `limit`");
            return None;
        }
        Some(MemoryDemandDraft { limit, reserved })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "MemorySizes",
            "Sizes of memory.",
            &[
                SchemaAlternative("A limit.", MemoryLimitForm::schema),
                SchemaAlternative("By name.", MemoryKeys::definition),
            ],
        )
    }
}

/// A size that a program fits into.
struct MemoryLimitForm;

impl ValueForm for MemoryLimitForm {
    type Value = Bytes;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Bytes> {
        let bytes = Bytes::read(from, field)?;
        if bytes < Demand::MEMORY_MIN {
            let message = format!("memory: `{bytes}` is less than {}", Demand::MEMORY_MIN);
            from.mistake_with_hint(field.wrong(), message, "no program could start with that");
            return None;
        }
        Some(bytes)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        Bytes::schema(definitions)
    }
}

map! {
    /// Limits that change while a node runs: at least one of these.
    NewLimitKeys as "NewLimits" {
        /// How much processor time it may use from now on: `25%` of a processor, or `2.5` processors.
        "cpu" CPU: ProcessorCountForm,
        /// Memory that it may use from now on.
        "memory" MEMORY: MemoryLimitForm,
        /// How many processes and threads it may have from now on.
        "pids" PIDS: BoundedInteger<1, { Demand::PIDS_MAX as u64 }>,
        /// What it may read of each disk from now on, and write. Needs control groups of version 2.
        "disk" DISK: DiskRate,
    }
}

/// Limits that an event sets.
pub(super) struct LimitChangeForm;

impl ValueForm for LimitChangeForm {
    type Value = Demand;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Demand> {
        let fields = from.table::<NewLimitKeys>(field, "limit")?;
        let cpu_millis = from.read(&fields, NewLimitKeys::CPU)?;
        let memory = from.read(&fields, NewLimitKeys::MEMORY)?;
        let pids = number(from, &fields, NewLimitKeys::PIDS)?;
        let disk = from.read(&fields, NewLimitKeys::DISK)?;
        if fields.all().next().is_none() && !fields.unknown {
            let message = format!("limit lacks one of {}", list(&NewLimitKeys::list()));
            from.mistake(fields.place, message);
            return None;
        }
        Some(Demand { cpu_millis, memory, pids, disk, ..Demand::default() })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        NewLimitKeys::definition(definitions)
    }
}

/// `cpu` of a node or reservation that is changed while it runs: its limit, or its minimum, its
/// weight or both.
pub(crate) fn decode_new_cpu(from: &mut Decoder<'_>, value: &YamlValue) -> Option<Demand> {
    let field = YamlMapEntry { key: "cpu", place: value.place, value };
    let CpuDemandDraft { limit, min, weight, .. } = CpuDemandDraft::read(from, field)?;
    if limit.is_some() && (min.is_some() || weight.is_some()) {
        let message = "cpu: a limit and a share are set one at a time";
        from.mistake_with_hint(value.place, message, "a limit is written without `{limit: …}`");
        return None;
    }
    let nothing = Demand::default();
    Some(Demand { cpu_millis: limit, cpu_min_millis: min, cpu_weight: weight, ..nothing })
}

/// Reads the limits of a node, a program or `defaults.node`.
pub(super) fn read_limits(from: &mut Decoder<'_>, fields: &Fields<'_>) -> LimitKeys {
    LimitKeys {
        cpu: from.read_at_key(fields, LimitTable::CPU),
        memory: from.read_at_key(fields, LimitTable::MEMORY),
        pids: number(from, fields, LimitTable::PIDS).flatten(),
        open_files: number(from, fields, LimitTable::OPEN_FILES).flatten(),
        disk: from.read(fields, LimitTable::DISK).flatten(),
    }
}

/// Reads the rates of a node or `defaults.node`.
pub(super) fn read_rates(from: &mut Decoder<'_>, fields: &Fields<'_>) -> RateKeys {
    RateKeys {
        send: from.read_at_key(fields, RateTable::SEND),
        receive: from.read_at_key(fields, RateTable::RECEIVE),
    }
}

/// A number that its form bounds.
pub(super) fn number<F: ValueForm<Value = u64>>(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
    key: SchemaKey<F>,
) -> Option<Option<u32>> {
    let value = from.read(fields, key)?;
    Some(value.map(|value| u32::try_from(value).unwrap_or(u32::MAX)))
}

/// A number of processors, or a percentage of one, in thousandths.
struct ProcessorCountForm;

impl ValueForm for ProcessorCountForm {
    type Value = u32;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<u32> {
        let text = from.text(field, NEEDED)?;
        match read_processors(text) {
            Ok(millis) => return Some(millis),
            Err((message, Some(hint))) => from.mistake_with_hint(field.wrong(), message, hint),
            Err((message, None)) => from.mistake(field.wrong(), message),
        }
        None
    }

    fn schema(_: &mut SchemaDefinitions) -> Json {
        json!({"anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_PROCESSORS},
            {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?%?$"},
        ]})
    }
}

/// Reads processors as `cpu` of a file does, `25%` of one or `2.5`: in thousandths.
///
/// # Errors
/// What is wrong, in words.
pub fn parse_processors(text: &str) -> Result<u32, String> {
    read_processors(text).map_err(|(message, hint)| {
        let message = message.strip_prefix("cpu: ").unwrap_or(&message);
        hint.map_or_else(|| message.to_owned(), |hint| format!("{message}: {hint}"))
    })
}

/// Thousandths of a processor; or what is wrong, and how to repair it.
fn read_processors(text: &str) -> Result<u32, (String, Option<&'static str>)> {
    let shown = shorten(text);
    let message = match millis_of(text) {
        Ok(0) => {
            let hint = "the least is 0.1%; without `cpu` nothing is limited";
            return Err((format!("cpu: with `{shown}` nothing would ever run"), Some(hint)));
        }
        Ok(millis) => return Ok(millis),
        Err(NotProcessors::Text) => format!("cpu: `{shown}` is not {NEEDED}"),
        Err(NotProcessors::Fine) => {
            format!("cpu: `{shown}` is finer than a thousandth of a processor")
        }
        Err(NotProcessors::Many) => {
            format!("cpu: `{shown}` is more than {MOST_PROCESSORS} processors")
        }
    };
    Err((message, None))
}

/// Why a text is no number of processors.
enum NotProcessors {
    Text,
    Fine,
    Many,
}

/// Thousandths of a processor.
fn millis_of(text: &str) -> Result<u32, NotProcessors> {
    let (number, places) = match text.strip_suffix('%') {
        Some(percent) => (percent, 1),
        None => (text, 3),
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) {
        return Err(NotProcessors::Text);
    }
    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > places {
        return Err(NotProcessors::Fine);
    }
    let millis = format!("{whole}{decimals:0<places$}").parse::<u64>().ok();
    let most = u64::from(MOST_PROCESSORS) * 1000;
    let millis = millis.filter(|millis| *millis <= most).ok_or(NotProcessors::Many)?;
    u32::try_from(millis).map_err(|_| NotProcessors::Many)
}

const NEEDED: &str = "a number of processors such as 0.5, or a percentage of one such as 25%";
/// More than any machine has.
const MOST_PROCESSORS: u32 = 100_000;
