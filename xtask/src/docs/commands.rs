//! `commands.md`, from the command line's types.

use clap::{Arg, Command};

use super::{GENERATED, cell};

/// The page.
pub(super) fn page(command: &Command) -> String {
    let mut command = command.clone();
    command.build();
    let mut text = format!("{GENERATED}# Commands\n\n");
    text.push_str(&about(&command));
    text.push_str(
        "\nEvery option can be given as an environment variable; the command line wins.\n",
    );
    for verb in command.get_subcommands() {
        text.push_str(&section(verb));
        let tasks = verb.get_subcommands().filter(|task| task.get_name() != "help");
        text.extend(tasks.map(section));
    }
    text
}

fn section(verb: &Command) -> String {
    let name = verb.get_bin_name().unwrap_or(verb.get_name());
    let mut text = format!("\n## {name}\n\n{}", about(verb));
    let usage = verb.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    text.push_str(&format!("\n```text\n{usage}\n```\n"));
    let shown = |arg: &&Arg| arg.get_id() != "help" && !arg.is_hide_set();
    let arguments: Vec<&Arg> = verb.get_arguments().filter(shown).collect();
    if !arguments.is_empty() {
        text.push_str(
            "\n| argument | meaning | default | environment |\n| --- | --- | --- | --- |\n",
        );
        text.extend(arguments.into_iter().map(row));
    }
    text
}

fn about(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    about.map(|about| format!("{about}\n")).unwrap_or_default()
}

fn row(argument: &Arg) -> String {
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .filter(|_| argument.get_action().takes_values())
        .collect();
    let environment = argument.get_env().map(|name| format!("`{}`", name.to_string_lossy()));
    format!(
        "| `{}` | {} | {} | {} |\n",
        cell(&name(argument)),
        cell(&help),
        if defaults.is_empty() { String::new() } else { format!("`{}`", defaults.join(" ")) },
        environment.unwrap_or_default()
    )
}

fn name(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let values: Vec<String> = values.iter().map(|value| format!("<{value}>")).collect();
    match argument.get_long() {
        Some(long) if argument.get_action().takes_values() => {
            format!("--{long} {}", values.join(" "))
        }
        Some(long) => format!("--{long}"),
        None => values.join(" "),
    }
}
