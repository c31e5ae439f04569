//! When a service is healthy: health checks run a command inside of the container; here something
//! listens on a port, which is taken from the command.

use windtunnel_model::Span;
use windtunnel_scenario::Mistake;

use super::find;
use super::reader::{Map, Reader};
use crate::import::decimal;
use crate::topology::Notes;

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
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// The port that it asks.
    pub(super) port: Option<u16>,
    /// How long a container may take to be healthy.
    pub(super) within: Option<Span>,
}

/// Reads `healthcheck`.
pub(super) fn read(reader: &Reader<'_>, keys: &Map, notes: &mut Notes) -> Result<Check, Mistake> {
    let Some(check) = find(keys, "healthcheck") else { return Ok(Check::default()) };
    let check = reader.map(check, "healthcheck")?;
    let mut text = |key: &str| match find(check, key) {
        Some(value) => reader.texts(value, key, notes).map(|words| words.join(" ")),
        None => Ok(String::new()),
    };
    if text("disable")? == "true" {
        return Ok(Check::default());
    }
    let test = text("test")?;
    let mut time = |key: &str, default: u64| {
        text(key).map(|text| duration(&text).unwrap_or(Span::from_secs(default)))
    };
    // As Docker: unhealthy after so many failures in a row, which do not count at the beginning.
    let (interval, timeout) = (time("interval", 30)?, time("timeout", 30)?);
    let start = time("start_period", 0)?;
    let retries = text("retries")?.parse::<u64>().unwrap_or(3).clamp(1, 1000);
    let each = (interval + timeout).as_nanos().saturating_mul(retries);
    let within = Span::from_nanos(each) + start;
    let within = within.min(Span::from_secs(3600)).max(Span::from_secs(1));
    Ok(Check { port: port(&test), within: Some(within) })
}

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
    if rest.is_empty() {
        return None;
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
        assert_eq!(duration(""), None);
        assert_eq!(duration("10"), None);
    }
}
