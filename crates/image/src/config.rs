//! What an image says of the programs that are run of it. Source: OCI Image Specification, config.md.

use std::collections::BTreeMap;

use crate::document::Execution;

/// What an image says of its programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    pub entrypoint: Vec<String>,
    /// The words behind the entry point, or the command where there is none.
    pub cmd: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// `999`, `redis`, `redis:redis`; `None`: root.
    pub user: Option<String>,
    /// Where programs start; `None`: `/`.
    pub cwd: Option<String>,
}

impl Config {
    /// The command that the image runs, with other words for its entry point if there are `args`.
    /// It has no words if the image has no command.
    #[must_use]
    pub fn command(&self, args: Option<&[String]>) -> Vec<String> {
        [&self.entrypoint[..], args.unwrap_or(&self.cmd)].concat()
    }
}

impl From<Execution> for Config {
    fn from(from: Execution) -> Self {
        let pair = |entry: String| {
            let (name, value) = entry.split_once('=')?;
            (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
        };
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        Config {
            entrypoint: from.entrypoint.unwrap_or_default(),
            cmd: from.cmd.unwrap_or_default(),
            env: from.env.unwrap_or_default().into_iter().filter_map(pair).collect(),
            user: said(from.user),
            cwd: said(from.working_dir).map(absolute),
        }
    }
}

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
        let config = Config {
            entrypoint: words("docker-entrypoint.sh --"),
            cmd: words("redis-server -v"),
            ..Config::default()
        };
        assert_eq!(config.command(None), words("docker-entrypoint.sh -- redis-server -v"));
        assert_eq!(config.command(Some(&words("sh"))), words("docker-entrypoint.sh -- sh"));
        assert!(Config::default().command(None).is_empty());
    }

    #[test]
    fn variables_without_a_name_and_empty_texts_say_nothing() {
        let text =
            r#"{"User": "", "Env": ["PATH=/bin:/x=y", "=odd", "plain"], "WorkingDir": "srv"}"#;
        let config = Config::from(serde_json::from_str::<Execution>(text).unwrap());
        let env = BTreeMap::from([("PATH".to_owned(), "/bin:/x=y".to_owned())]);
        let expected = Config { env, cwd: Some("/srv".into()), ..Config::default() };
        assert_eq!(config, expected);
    }
}
