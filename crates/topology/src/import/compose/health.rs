//! When a service is healthy: what runs inside of the container says so. What is read, what is refused
//! and what is the default is as Docker Compose has it (compose-go, `healthcheck`).

use windtunnel_model::Span;
use windtunnel_model::plan::{ReadinessCheck, ReadinessCheckSettings};
use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::{YamlKey, YamlValue, YamlValueKind};

use super::reader::ComposeReader;
use crate::import::decimal;
use crate::import::input::shorten;
use crate::import::mapping::find;
use crate::topology::ConversionReport;
use crate::yaml::list_of;

/// Programs that ask a server, and where it listens unless the command says otherwise.
const CLIENTS: [(&str, u16); 12] = [
    ("pg_isready", 5432),
    ("psql", 5432),
    ("redis-cli", 6379),
    ("valkey-cli", 6379),
    ("mysqladmin", 3306),
    ("mysql", 3306),
    ("mariadb", 3306),
    ("mongo", 27_017),
    ("rabbitmq", 5672),
    ("cqlsh", 9042),
    ("https://", 443),
    ("http://", 80),
];

/// The health check of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ComposeHealthcheck {
    /// It has none, whatever its image says.
    Off,
    /// What it says in place of what its image says.
    Said(ReadinessCheckSettings),
}

impl ComposeHealthcheck {
    /// The port that its command asks, as far as that can be seen.
    pub(super) fn port(&self) -> Option<u16> {
        match self {
            ComposeHealthcheck::Off => None,
            ComposeHealthcheck::Said(said) => port(&said.argv.join(" ")),
        }
    }

    /// `ready` of a node.
    pub(super) fn ready(&self) -> Option<String> {
        let ComposeHealthcheck::Said(said) = self else { return None };
        if *said == ReadinessCheckSettings::default() {
            return Some("healthcheck".to_owned());
        }
        let argv = if said.argv.is_empty() { "true".to_owned() } else { list_of(&said.argv) };
        let time = |key: &str, time: Option<Span>| time.map(|time| format!(", {key}: {time}"));
        let all = [
            time("every", said.every),
            time("check-timeout", said.timeout),
            said.fall.map(|fall| format!(", fall: {fall}")),
            time("start-period", said.start_period),
            time("start-every", said.start_every),
        ];
        let all: String = all.into_iter().flatten().collect();
        Some(format!("{{healthcheck: {argv}{all}}}"))
    }
}

/// Reads `healthcheck` of a service.
pub(super) fn read(
    reader: &ComposeReader<'_>,
    keys: &[(YamlKey, YamlValue)],
    service: &str,
    notes: &mut ConversionReport,
) -> Result<ComposeHealthcheck, ScenarioMistake> {
    let check = find(keys, "healthcheck").map(|it| reader.map(it, "healthcheck")).transpose()?;
    let check = check.unwrap_or_default();
    for (key, _) in check.iter().filter(|(key, _)| !KEYS.contains(&&*key.text)) {
        if !key.text.starts_with("x-") {
            let what = format!("{} of {service}", shorten(&key.text));
            notes.lose_once("Keys of health checks that Docker does not know, either", what);
        }
    }
    let argv = find(check, "test").map(|it| test(reader, it, notes)).transpose()?.flatten();
    let mut time = |key: &str| -> Result<Option<Span>, ScenarioMistake> {
        let Some(value) = find(check, key) else { return Ok(None) };
        let text = reader.text(value, key, notes)?;
        time_of(&text).map_err(|why| {
            reader.at(value.place, format!("healthcheck: {key}: `{}` {why}", shorten(&text)))
        })
    };
    let said = ReadinessCheckSettings {
        every: time("interval")?,
        timeout: time("timeout")?,
        start_period: time("start_period")?,
        start_every: time("start_interval")?,
        fall: find(check, "retries").map(|it| retries(reader, it, notes)).transpose()?.flatten(),
        argv: argv.clone().unwrap_or_default(),
    };
    let disabled =
        find(check, "disable").map(|it| reader.text(it, "disable", notes)).transpose()?;
    match disabled.as_deref() {
        Some("true") => {
            if argv.is_some_and(|argv| !argv.is_empty()) {
                let text =
                    "Health checks that are disabled: their `test` is not run, as with Docker";
                notes.assume(text, service);
            }
            Ok(ComposeHealthcheck::Off)
        }
        // `NONE`.
        _ if argv.as_ref().is_some_and(Vec::is_empty) => Ok(ComposeHealthcheck::Off),
        _ => Ok(ComposeHealthcheck::Said(said)),
    }
}

/// The words of `test`: none for `NONE`. `None`: it is the image's.
fn test(
    reader: &ComposeReader<'_>,
    value: &YamlValue,
    notes: &mut ConversionReport,
) -> Result<Option<Vec<String>>, ScenarioMistake> {
    let shell = |words: &[String]| [&["/bin/sh".to_owned(), "-c".to_owned()][..], words].concat();
    let words = reader.texts(value, "test", notes)?;
    if let YamlValueKind::Text(_) = value.kind {
        return Ok(Some(shell(&words)));
    }
    let Some((kind, words)) = words.split_first() else { return Ok(None) };
    let mistake = |what: &str| Err(reader.at(value.place, format!("healthcheck: test {what}")));
    match (kind.as_str(), words) {
        ("NONE", _) => Ok(Some(Vec::new())),
        ("CMD" | "CMD-SHELL", []) => mistake("has no command"),
        ("CMD", [first, ..]) if first.is_empty() => mistake("has no command"),
        ("CMD", _) => Ok(Some(words.to_vec())),
        ("CMD-SHELL", _) => Ok(Some(shell(words))),
        // As Docker.
        _ => mistake("must start with CMD, CMD-SHELL or NONE"),
    }
}

/// How many failures make it unhealthy; 0 is the default.
fn retries(
    reader: &ComposeReader<'_>,
    value: &YamlValue,
    notes: &mut ConversionReport,
) -> Result<Option<u32>, ScenarioMistake> {
    let text = reader.text(value, "retries", notes)?;
    match text.parse::<u32>() {
        Ok(0) => Ok(None),
        Ok(count) if count <= ReadinessCheck::FALL_MAX => Ok(Some(count)),
        _ => {
            let text = shorten(&text);
            let message = format!("healthcheck: retries: `{text}` is no number of failures");
            Err(reader.at(value.place, message))
        }
    }
}

/// A time of a health check; 0 is the default.
fn time_of(text: &str) -> Result<Option<Span>, &'static str> {
    let time = duration(text).ok_or("is no time such as `1m30s`")?;
    match time {
        Span::ZERO => Ok(None),
        time if time < ReadinessCheck::TIME_MIN => Err("is less than 1ms"),
        time => Ok(Some(time)),
    }
}

const KEYS: [&str; 7] =
    ["test", "interval", "timeout", "retries", "start_period", "start_interval", "disable"];

/// The port of `localhost:PORT`, `127.0.0.1:PORT` or `-p PORT` in a command, or that of the program.
fn port(test: &str) -> Option<u16> {
    let number = |text: &str| {
        let text = text.trim_start();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse::<u16>().ok().filter(|port| *port > 0)
    };
    let marks = ["localhost:", "127.0.0.1:", "0.0.0.0:", "[::1]:", "/dev/tcp/localhost/"];
    let options = ["-p ", "-P ", "--port ", "--port=", "localhost ", "127.0.0.1 "];
    let written = marks
        .iter()
        .chain(&options)
        .find_map(|mark| number(&test[test.find(mark)? + mark.len()..]));
    let usual = || CLIENTS.iter().find(|(client, _)| test.contains(client)).map(|(_, port)| *port);
    written.or_else(usual)
}

/// `1m30s`, as Go writes it.
fn duration(text: &str) -> Option<Span> {
    let mut rest = text.trim();
    let mut sum = Span::ZERO;
    if rest.is_empty() || rest == "0" {
        return (rest == "0").then_some(sum);
    }
    while !rest.is_empty() {
        let unit = rest.find(|c: char| c.is_ascii_alphabetic() || c == 'µ')?;
        let behind =
            rest[unit..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| unit + at);
        sum = sum + decimal::time(&rest[..behind], None)?;
        rest = rest[behind..].trim_start();
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_health_check_names_its_port_or_the_program_that_asks() {
        let cases = [
            ("CMD curl -f http://localhost:8080/health", Some(8080)),
            ("CMD-SHELL redis-cli -p 6380 ping", Some(6380)),
            ("CMD-SHELL redis-cli ping", Some(6379)),
            ("CMD pg_isready -U postgres", Some(5432)),
            ("CMD mysqladmin ping -h 127.0.0.1 --silent", Some(3306)),
            ("CMD wget -q http://localhost/", Some(80)),
            ("CMD curl -fk https://localhost/", Some(443)),
            ("CMD-SHELL nc -z localhost 9092", Some(9092)),
            ("CMD true", None),
        ];
        for (test, expected) in cases {
            assert_eq!(port(test), expected, "{test}");
        }
    }

    #[test]
    fn durations_are_sums() {
        assert_eq!(duration("1m30s"), Some(Span::from_secs(90)));
        assert_eq!(duration("500ms"), Some(Span::from_millis(500)));
        assert_eq!(duration("0"), Some(Span::ZERO));
        assert_eq!(duration(""), None);
        assert_eq!(duration("-5s"), None);
        assert_eq!(duration("10"), None);
    }
}
