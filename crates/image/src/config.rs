//! What an image says of the programs that are run of it. Source: OCI Image Specification, config.md.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::document::{HealthDocument, ImageExecutionDocument};

/// What an image says of its programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageExecutionConfig {
    pub entrypoint: Vec<String>,
    /// The words behind the entry point, or the command where there is none.
    pub cmd: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// `999`, `redis`, `redis:redis`; `None`: root.
    pub user: Option<String>,
    /// Where programs start; `None`: `/`.
    pub cwd: Option<String>,
    /// What says whether its program is well; `None`: nothing does.
    pub health: Option<ImageHealthcheck>,
    /// Why what stands there cannot be read; `None`: it can, or nothing does.
    pub health_fault: Option<String>,
}

/// `HEALTHCHECK` of Docker ("Docker Image Specification 1.2"). What is not said is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageHealthcheck {
    /// The words of the command, at least one.
    pub argv: Vec<String>,
    pub interval_ns: Option<u64>,
    pub timeout_ns: Option<u64>,
    pub start_period_ns: Option<u64>,
    pub start_interval_ns: Option<u64>,
    pub retries: Option<u64>,
}

impl ImageExecutionConfig {
    /// The command that the image runs, with other words for its entry point if there are `args`.
    /// It has no words if the image has no command.
    #[must_use]
    pub fn command(&self, args: Option<&[String]>) -> Vec<String> {
        [&self.entrypoint[..], args.unwrap_or(&self.cmd)].concat()
    }
}

impl From<ImageExecutionDocument> for ImageExecutionConfig {
    fn from(from: ImageExecutionDocument) -> Self {
        let pair = |entry: String| {
            let (name, value) = entry.split_once('=')?;
            (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
        };
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        let (health, health_fault) = match read_health(from.healthcheck, from.shell) {
            Ok(health) => (health, None),
            Err(why) => (None, Some(why)),
        };
        ImageExecutionConfig {
            health,
            health_fault,
            entrypoint: from.entrypoint.unwrap_or_default(),
            cmd: from.cmd.unwrap_or_default(),
            env: from.env.unwrap_or_default().into_iter().filter_map(pair).collect(),
            user: said(from.user),
            cwd: said(from.working_dir).map(absolute),
        }
    }
}

fn read_health(from: Value, shell: Value) -> Result<Option<ImageHealthcheck>, String> {
    let from: HealthDocument = read(from)?;
    let test = from.test.unwrap_or_default();
    let Some((kind, words)) = test.split_first() else { return Ok(None) };
    let argv = match (kind.as_str(), words) {
        ("CMD", [_, ..]) => words.to_vec(),
        ("CMD-SHELL", [_, ..]) => {
            let mut line: Vec<String> = read(shell)?;
            if line.is_empty() {
                line = ["/bin/sh", "-c"].map(str::to_owned).to_vec();
            }
            [&line[..], words].concat()
        }
        // `NONE`, and what Docker does not know either: nothing is run.
        _ => return Ok(None),
    };
    let said = |number: i64| u64::try_from(number).ok().filter(|number| *number > 0);
    Ok(Some(ImageHealthcheck {
        argv,
        interval_ns: said(from.interval),
        timeout_ns: said(from.timeout),
        start_period_ns: said(from.start_period),
        start_interval_ns: said(from.start_interval),
        retries: said(from.retries),
    }))
}

/// What a part of a document says; nothing of it is the default.
fn read<T: DeserializeOwned + Default>(part: Value) -> Result<T, String> {
    let read: Result<Option<T>, _> = serde_json::from_value(part);
    let short = |error: serde_json::Error| error.to_string().chars().take(SHOWN_MAX).collect();
    read.map(Option::unwrap_or_default).map_err(short)
}

/// Characters of what is wrong, which has texts of the document in it.
const SHOWN_MAX: usize = 200;

/// A relative folder starts at the root, as other tools have it.
fn absolute(path: String) -> String {
    if path.starts_with('/') { path } else { format!("/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_entry_point_with_its_usual_words_or_with_others() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let config = ImageExecutionConfig {
            entrypoint: words("docker-entrypoint.sh --"),
            cmd: words("redis-server -v"),
            ..ImageExecutionConfig::default()
        };
        assert_eq!(config.command(None), words("docker-entrypoint.sh -- redis-server -v"));
        assert_eq!(config.command(Some(&words("sh"))), words("docker-entrypoint.sh -- sh"));
        assert!(ImageExecutionConfig::default().command(None).is_empty());
    }

    #[test]
    fn variables_without_a_name_and_empty_texts_say_nothing() {
        let text =
            r#"{"User": "", "Env": ["PATH=/bin:/x=y", "=odd", "plain"], "WorkingDir": "srv"}"#;
        let config = ImageExecutionConfig::from(
            serde_json::from_str::<ImageExecutionDocument>(text).unwrap(),
        );
        let env = BTreeMap::from([("PATH".to_owned(), "/bin:/x=y".to_owned())]);
        let expected = ImageExecutionConfig {
            env,
            cwd: Some("/srv".into()),
            ..ImageExecutionConfig::default()
        };
        assert_eq!(config, expected);
    }

    fn health(text: &str) -> Option<ImageHealthcheck> {
        ImageExecutionConfig::from(serde_json::from_str::<ImageExecutionDocument>(text).unwrap())
            .health
    }

    #[test]
    fn a_health_check_is_a_command_or_a_line_for_the_shell_of_the_image() {
        let argv = |text: &str| health(text).unwrap().argv;
        let command = r#"{"Healthcheck": {"Test": ["CMD", "curl", "-f", "x"]}}"#;
        assert_eq!(argv(command), ["curl", "-f", "x"]);
        let line = r#"{"Healthcheck": {"Test": ["CMD-SHELL", "a || exit 1"]}}"#;
        assert_eq!(argv(line), ["/bin/sh", "-c", "a || exit 1"]);
        let shell = line.replacen('{', r#"{"Shell": ["/bin/bash", "-ec"], "#, 1);
        assert_eq!(argv(&shell), ["/bin/bash", "-ec", "a || exit 1"]);
    }

    #[test]
    fn times_of_a_health_check_are_nanoseconds_and_said_where_they_are_not_0() {
        let text = r#"{"Healthcheck": {"Test": ["CMD", "x"], "Interval": 2000000000, "Timeout": 0,
            "StartPeriod": 5, "StartInterval": -1, "Retries": 4}}"#;
        let expected = ImageHealthcheck {
            argv: vec!["x".into()],
            interval_ns: Some(2_000_000_000),
            start_period_ns: Some(5),
            retries: Some(4),
            ..ImageHealthcheck::default()
        };
        assert_eq!(health(text), Some(expected));
    }

    #[test]
    fn a_health_check_that_cannot_be_read_leaves_the_rest_of_the_image() {
        for check in [
            r#""curl -f x""#,
            r#"{"Test": "curl -f x"}"#,
            r#"{"Test": ["CMD", "x"], "Interval": "30s"}"#,
            r#"{"Test": ["CMD", 7]}"#,
            r#"{"Test": ["CMD-SHELL", "x"]}, "Shell": "/bin/sh""#,
        ] {
            let text = format!(r#"{{"Cmd": ["serve"], "Healthcheck": {check}}}"#);
            let config = ImageExecutionConfig::from(
                serde_json::from_str::<ImageExecutionDocument>(&text).unwrap(),
            );
            assert_eq!((config.cmd, config.health), (vec!["serve".to_owned()], None), "{check}");
            assert!(config.health_fault.is_some_and(|why| why.contains("invalid type")), "{check}");
        }
        // The shell is not needed.
        let text = r#"{"Healthcheck": {"Test": ["CMD", "x"]}, "Shell": "/bin/sh"}"#;
        let config = ImageExecutionConfig::from(
            serde_json::from_str::<ImageExecutionDocument>(text).unwrap(),
        );
        assert!(config.health.is_some() && config.health_fault.is_none());
    }

    #[test]
    fn a_health_check_without_a_command_is_none() {
        for test in ["null", "[]", r#"["NONE"]"#, r#"["CMD"]"#, r#"["CMD-SHELL"]"#, r#"["curl"]"#] {
            let text = format!(r#"{{"Healthcheck": {{"Test": {test}, "Interval": 1}}}}"#);
            assert_eq!(health(&text), None, "{test}");
        }
        assert_eq!(health(r#"{"Healthcheck": null}"#), None);
    }
}
