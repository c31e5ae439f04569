//! Probes of replicas.

use serde_json::Value as Json;
use windtunnel_model::Span;
use windtunnel_model::plan::{HealthProbe, HealthProbeDatagram, ReplicaHealthCheck};

use crate::decode::command::CommandForm;
use crate::grammar::{
    BoundedInteger, Decoder, SchemaDefinitions, ValueForm, YamlMapEntry, form, map,
};
use crate::text::{list, shorten};

map! {
    /// A probe: one of `tcp`, `http`, `udp`, `command`.
    HealthKeys as "Health" {
        /// Opens a connection to the first TCP port, each time that this has passed.
        "tcp" TCP: Period,
        /// Asks the first TCP port for this path over HTTP; a status below 400 is healthy.
        "http" HTTP: HttpPath,
        /// Runs this command in the node of the replica; an exit code of 0 is healthy.
        "command" COMMAND: CommandForm,
        /// Sends this text, or `hex:` and bytes, as a datagram to the first UDP port; an answer is
        /// healthy.
        "udp" UDP: Payload,
        /// With `udp`: what the answer must contain, written like it; default: anything.
        "expect" EXPECT: Payload,
        /// With `http`, `udp` and `command`: from one probe to the next; default 1s.
        "every" EVERY: Period,
        /// A probe that takes longer has failed; default 1s.
        "timeout" TIMEOUT: Period,
        /// So many probes one after the other must go well before an unhealthy replica is healthy
        /// again; default 1.
        "rise" RISE: BoundedInteger<1, { ReplicaHealthCheck::STREAK_MAX as u64 }>,
        /// So many probes one after the other must fail before a healthy replica is unhealthy;
        /// default 1.
        "fall" FALL: BoundedInteger<1, { ReplicaHealthCheck::STREAK_MAX as u64 }>,
    }
}

/// A probe.
pub(super) struct HealthForm;

impl ValueForm for HealthForm {
    type Value = ReplicaHealthCheck;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<ReplicaHealthCheck> {
        let fields = from.table::<HealthKeys>(field, "health")?;
        const PROBES: [&str; 4] = ["tcp", "http", "udp", "command"];
        let mut probes = fields.all().filter(|field| PROBES.contains(&field.key));
        let Some(first) = probes.next() else {
            if !fields.unknown {
                let message = format!("health lacks one of {}", list(&PROBES));
                from.mistake(fields.place, message);
            }
            return None;
        };
        if let Some(second) = probes.next() {
            let message = format!("`{}` does not go with `{}`", second.key, first.key);
            from.mistake_with_hint(second.place, message, "a service has one probe");
            return None;
        }
        if let (Some(every), "tcp") = (fields.get(HealthKeys::EVERY), first.key) {
            let message = "`every` does not go with `tcp`, which says it itself";
            from.mistake(every.place, message);
            return None;
        }
        if let (Some(expect), true) = (fields.get(HealthKeys::EXPECT), first.key != "udp") {
            from.mistake(expect.place, format!("`expect` does not go with `{}`", first.key));
            return None;
        }
        let period = from.read(&fields, HealthKeys::TCP)?;
        let every = from.read_or(&fields, HealthKeys::EVERY, PERIOD)?;
        let http = from.read(&fields, HealthKeys::HTTP)?.map(HealthProbe::Http);
        let command = from.read(&fields, HealthKeys::COMMAND)?;
        let command = command.map(|(words, _)| HealthProbe::Command(words));
        let expect = from.read_or(&fields, HealthKeys::EXPECT, Vec::new())?;
        let udp = from.read(&fields, HealthKeys::UDP)?;
        let udp = udp.map(|send| HealthProbe::Udp(HealthProbeDatagram { send, expect }));
        let streak = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Some(ReplicaHealthCheck {
            probe: http.or(command).or(udp).unwrap_or(HealthProbe::Tcp),
            rise: streak(from.read_or(&fields, HealthKeys::RISE, 1)?),
            fall: streak(from.read_or(&fields, HealthKeys::FALL, 1)?),
            every: period.unwrap_or(every),
            timeout: from.read_or(&fields, HealthKeys::TIMEOUT, PERIOD)?,
        })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        HealthKeys::definition(definitions)
    }
}

form! {
    /// A time that is not none.
    pub(in crate::decode) Period: Span, by read_period, like Span::schema
}

fn read_period(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Span> {
    let period = Span::read(from, field)?;
    if period < Span::from_millis(1) {
        let message = format!("{}: `{period}` is less than 1ms", field.key);
        from.mistake(field.wrong(), message);
        return None;
    }
    Some(period)
}

form! {
    /// The path of an URL.
    HttpPath: String, by read_path, like String::schema
}

fn read_path(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<String> {
    let path = from.text(field, "a path such as /ready")?;
    if !path.starts_with('/') || path.contains(|c: char| c.is_control() || c == ' ') {
        let message = format!("http: `{}` is not a path such as /ready", shorten(path));
        from.mistake(field.wrong(), message);
        return None;
    }
    Some(path.to_owned())
}

form! {
    /// Bytes of a datagram.
    Payload: Vec<u8>, by read_payload, like String::schema
}

fn read_payload(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<u8>> {
    let text = from.text(field, "a text, or `hex:` and bytes such as hex:00ff")?;
    let bytes = match text.strip_prefix("hex:") {
        Some(digits) => bytes_of(digits),
        None => Some(text.as_bytes().to_vec()),
    };
    let Some(bytes) = bytes else {
        let message = format!("{}: `{}` is no row of bytes", field.key, shorten(text));
        from.mistake_with_hint(field.wrong(), message, "write two digits a byte: `hex:00ff`");
        return None;
    };
    let (count, most) = (bytes.len(), HealthProbeDatagram::BYTES_MAX);
    if count > most {
        from.mistake(field.wrong(), format!("{}: {count} bytes are more than {most}", field.key));
        return None;
    }
    Some(bytes)
}

/// Bytes in hexadecimal, two digits each; spaces between them do not count.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = digits
        .chars()
        .filter(|c| *c != ' ')
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// From one probe to the next, and the longest that one may take.
const PERIOD: Span = Span::from_secs(1);
