//! `attach`: follow a detached run over several machines.

use std::path::PathBuf;
use std::sync::Arc;

use windtunnel_cluster::protocol::AgentRequest;
use windtunnel_cluster::protocol::answers::{AgentAnswer, WatchedRunMessage};
use windtunnel_cluster::protocol::questions::AgentQuestion;
use windtunnel_cluster::protocol::run::{RunCard, text_of};
use windtunnel_cluster::{AgentClient, AgentClientError, ClusterKey};
use windtunnel_lead::{LiveClusterRun, options_of};

use crate::cluster::{ClusterKeySelector, progress};
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::render::face::Face;
use crate::verb::run::{RunOutputOptions, new_run_folder, show};

/// Follow a run over several machines, from any machine that has the cluster's key
///
/// Output of programs from now on is shown, the control verbs work in the run folder, and at the
/// end all results come here. Ctrl-C ends the run.
#[derive(Debug, clap::Args)]
pub(crate) struct AttachArguments {
    /// Number of the run [default: the only one]
    run: Option<String>,
    /// A machine that has a part of the run
    #[arg(long, value_name = "HOST", env = "WINDTUNNEL_HOST", default_value = "localhost")]
    host: String,
    /// The run folder, new or empty [default: runs/NAME-DATE-TIME, with a link `latest` beside it]
    #[arg(long, value_name = "DIR", env = "WINDTUNNEL_OUT")]
    out: Option<PathBuf>,
    #[command(flatten)]
    key: ClusterKeySelector,
    #[command(flatten)]
    showing: RunOutputOptions,
}

pub(crate) fn run(arguments: &AttachArguments) -> Outcome {
    let key = arguments.key.read()?;
    let run = chosen(arguments, &key)?;
    let client = AgentClient::connect(&arguments.host, &key)?;
    let none = "the agent sent no description of the run";
    let WatchedRunMessage::Run(setup) = asked(&client, &AgentRequest::watch(run), none)? else {
        return Err(VerbFailure::new(ExitCategory::Usage, none));
    };
    drop(client);
    let setup = *setup;
    let folder = new_run_folder(arguments.out.as_deref(), &setup.plan.name)?;
    let mut options = options_of(&setup, folder.clone());
    options.link_latest = arguments.out.is_none();
    let face = Arc::new(Face::new(&setup.plan, arguments.showing.manner()));
    let observer: Arc<dyn windtunnel_host::Observer> = Arc::<Face>::clone(&face);
    let run = LiveClusterRun::attend(setup, options, &key, &observer, &progress(false));
    let report = run.and_then(LiveClusterRun::finish);
    face.finish();
    let report = report?;
    show(&arguments.showing, &report, &folder)?;
    Ok(report.verdict.exit_code)
}

/// The answer of an agent; `none` is said of another one.
fn asked<A: AgentAnswer>(
    client: &AgentClient,
    question: &AgentQuestion<A>,
    none: &'static str,
) -> Result<A, VerbFailure> {
    client.ask(question).map_err(|error| match error {
        AgentClientError::Unexpected { .. } => VerbFailure::new(ExitCategory::Usage, none),
        other => other.into(),
    })
}

/// The run that is named, or the only one.
fn chosen(arguments: &AttachArguments, key: &ClusterKey) -> Result<u64, VerbFailure> {
    if let Some(text) = &arguments.run {
        return u64::from_str_radix(text, 16).map_err(|_| {
            VerbFailure::new(ExitCategory::Usage, format!("`{text}` is not a number of a run")).hint(
                "`windtunnel run --hosts` prints it: 16 hexadecimal digits; without one, the runs on --host are found",
            )
        });
    }
    let client = AgentClient::connect(&arguments.host, key)?;
    let runs = asked(&client, &AgentRequest::runs(), "the agent sent no list of its runs")?;
    drop(client);
    match &runs[..] {
        [] => Err(VerbFailure::new(
            ExitCategory::Usage,
            format!("no run has a part on {}", arguments.host),
        )
        .hint("name the run to see whether its results have expired (agent --keep-results)")),
        [one] => Ok(one.run),
        many => {
            let name = |run: &RunCard| format!("{} ({})", text_of(run.run), run.name);
            let names: Vec<String> = many.iter().map(name).collect();
            Err(VerbFailure::new(
                ExitCategory::Usage,
                format!("{} runs have parts there", many.len()),
            )
            .hint(format!("name one of {}", names.join(", "))))
        }
    }
}
