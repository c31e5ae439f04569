//! Commands of this program, as the page sends them: no shell, no other program, verbs from a list.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::sync::mpsc;

use crate::{answer, stream};

/// A command line without the program, and without the run.
#[derive(Debug, Deserialize)]
pub(crate) struct WebCommandRequest {
    argv: Vec<String>,
}

/// What came of it.
#[derive(Debug, Serialize)]
struct WebCommandResponse {
    exit: i32,
    stdout: String,
    stderr: String,
}

/// A command line of a shell in a node.
#[derive(Debug, Deserialize)]
pub(crate) struct WebShellRequest {
    node: String,
    command: String,
}

/// Runs it and waits for it. If the browser goes, it is ended.
pub(crate) async fn run(
    program: &Path,
    folder: &Path,
    order: &WebCommandRequest,
) -> Response<Body> {
    let words = match words(&order.argv, folder) {
        Ok(words) => words,
        Err((error, hint)) => return answer::wrong(StatusCode::BAD_REQUEST, &error, hint),
    };
    let mut command = command(program);
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return not_started(&error),
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr, status) = tokio::join!(text(stdout), text(stderr), child.wait());
    match status {
        Ok(status) => {
            answer::json(StatusCode::OK, &WebCommandResponse { exit: exit(status), stdout, stderr })
        }
        Err(error) => not_started(&error),
    }
}

/// Runs a command line in a node; both of its streams are the body, as they come, then `[exit N]`.
pub(crate) fn shell(program: &Path, folder: &Path, shell: &WebShellRequest) -> Response<Body> {
    let is_wrong = |text: &str| text.contains('\0') || text.len() > WORD_BYTES_MAX;
    if shell.node.starts_with('-') || shell.node.is_empty() || is_wrong(&shell.node) {
        return answer::wrong(StatusCode::BAD_REQUEST, "no node has such a name", None);
    }
    if is_wrong(&shell.command) {
        return answer::wrong(StatusCode::BAD_REQUEST, "the command line is too long", None);
    }
    let mut command = command(program);
    command.args(["exec", "--run"]).arg(folder).arg(&shell.node);
    command.args(["--", "sh", "-c", &shell.command]);
    let started = std::io::pipe().and_then(|(reader, writer)| {
        let child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
        Ok((pipe::Receiver::from_owned_fd(reader.into())?, child))
    });
    // Its copies of the pipe: else the pipe would never end.
    drop(command);
    let (mut output, mut child) = match started {
        Ok(started) => started,
        Err(error) => return not_started(&error),
    };
    let (sender, body) = stream::body();
    tokio::spawn(async move {
        tokio::select! {
            () = pass(&mut output, &sender) => {}
            // The browser has gone, and the command goes with it.
            () = sender.closed() => return,
        }
        if let Ok(status) = child.wait().await {
            // The browser may have gone.
            let _ = sender.send(Bytes::from(format!("[exit {}]\n", exit(status)))).await;
        }
    });
    answer::response(StatusCode::OK, "text/plain; charset=utf-8", body)
}

/// The program again, without what the environment says of options.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    let variables = std::env::vars_os().map(|(name, _)| name);
    for name in variables.filter(|name| name.to_string_lossy().starts_with("WINDTUNNEL_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// The words with `--run FOLDER` behind the verb.
fn words(argv: &[String], folder: &Path) -> Result<Vec<PathBuf>, (String, Option<&'static str>)> {
    if argv.len() > WORDS_MAX
        || argv.iter().any(|word| word.len() > WORD_BYTES_MAX || word.contains('\0'))
    {
        return Err(("the command line is too long".to_owned(), None));
    }
    let verb = argv.first().map_or("", String::as_str);
    let second = argv.get(1).map_or("", String::as_str);
    let length = match VERBS.iter().find(|(name, _)| *name == verb) {
        None => {
            let text = format!("`{verb}` is not a command of the page");
            return Err((text, Some("use it in a terminal")));
        }
        Some((_, [])) => 1,
        Some((_, seconds)) if seconds.contains(&second) => 2,
        Some((_, _)) => {
            let text = format!("`{verb} {second}` is not a command of the page");
            return Err((text, Some("use it in a terminal")));
        }
    };
    let (verbs, rest) = argv.split_at(length);
    let run = [PathBuf::from("--run"), folder.to_owned()];
    let path = |word: &String| PathBuf::from(word);
    Ok(verbs.iter().map(path).chain(run).chain(rest.iter().map(path)).collect())
}

/// Passes on what a command writes.
async fn pass(from: &mut (impl AsyncRead + Unpin), to: &mpsc::Sender<Bytes>) {
    let mut buffer = vec![0; CHUNK_BYTES];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if to.send(Bytes::copy_from_slice(&buffer[..read])).await.is_err() {
            break;
        }
    }
}

/// All that a stream has, of which so much is kept.
async fn text(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut from) = from else { return String::new() };
    let (mut kept, mut left_out) = (Vec::new(), 0_usize);
    let mut buffer = vec![0; CHUNK_BYTES];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let room = KEPT_BYTES_MAX.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(&buffer[..room]);
        left_out += read - room;
    }
    let mut text = String::from_utf8_lossy(&kept).into_owned();
    if left_out > 0 {
        text.push_str(&format!("\n… {left_out} more bytes\n"));
    }
    text
}

/// The exit code, or 128+n for a signal n.
fn exit(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn not_started(error: &std::io::Error) -> Response<Body> {
    let text = format!("cannot start the command: {error}");
    answer::wrong(StatusCode::INTERNAL_SERVER_ERROR, &text, None)
}

/// Verbs that only concern a run, with those of their verbs that do: `record COMMAND`, for one, would
/// be a command on the machine itself.
const VERBS: [(&str, &[&str]); 10] = [
    ("set", &[]),
    ("down", &[]),
    ("up", &[]),
    ("do", &[]),
    ("links", &[]),
    ("ps", &[]),
    ("exec", &[]),
    ("stop", &[]),
    ("service", &["list", "show", "add", "remove", "drain", "weight"]),
    ("record", &["start", "stop", "status"]),
];
const WORDS_MAX: usize = 256;
const WORD_BYTES_MAX: usize = 64 << 10;
const CHUNK_BYTES: usize = 16 << 10;
const KEPT_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn made(line: &str) -> Result<String, String> {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let words = words(&argv, Path::new("/runs/a")).map_err(|(error, _)| error)?;
        Ok(words.iter().map(|word| word.display().to_string()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_run_is_named_behind_the_verb() {
        assert_eq!(made("set ocean loss=1%").unwrap(), "set --run /runs/a ocean loss=1%");
        assert_eq!(made("service drain www s1").unwrap(), "service drain --run /runs/a www s1");
        assert_eq!(made("exec web -- ls").unwrap(), "exec --run /runs/a web -- ls");
        assert_eq!(made("record stop").unwrap(), "record stop --run /runs/a");
    }

    #[test]
    fn verbs_that_concern_more_than_a_run_are_refused() {
        for line in ["run x.yaml", "", "--help", "record", "record sh", "service", "agent", "top"] {
            assert!(made(line).unwrap_err().ends_with("is not a command of the page"), "{line}");
        }
        assert!(words(&["set".to_owned(), "a\0b".to_owned()], Path::new("/")).is_err());
        assert!(words(&vec!["set".to_owned(); 300], Path::new("/")).is_err());
    }
}
