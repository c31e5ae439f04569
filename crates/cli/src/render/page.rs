//! A page that this program serves: its address, and the browser.

use std::fs;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::builder::FalseyValueParser;
use serde::Serialize;
use windtunnel_web::{WebError, WebServer, WebServerOptions};

use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output;

/// Whether a browser is opened.
#[derive(Debug, clap::Args)]
pub(crate) struct BrowserOptions {
    /// Open the page in the browser
    #[arg(long, env = "WINDTUNNEL_OPEN", value_parser = FalseyValueParser::new())]
    open: bool,
}

/// For `--json`.
#[derive(Debug, Serialize)]
struct PageAddressOutput {
    url: String,
}

/// Prints the page's address and serves it until Ctrl-C.
pub(crate) fn serve(options: WebServerOptions, opening: &BrowserOptions, json: bool) -> Outcome {
    let address = options.listen;
    let server = WebServer::bind(options).map_err(failure)?;
    let url = server.url();
    if !is_loopback(address.ip()) {
        output::talk(&format!(
            "warning: the page is reached from other machines at {address}, without encryption: what \
             reads along has its token, and can do with the runs what you can\n\
             hint: leave out --listen, and use `ssh -L` from there"
        ));
    }
    match json {
        true => output::json(&PageAddressOutput { url: url.clone() })?,
        false => output::data(&format!("{url}\n"))?,
    }
    let _opened = if opening.open { open(&url) } else { None };
    server.run(std::future::pending()).map_err(failure)?;
    Ok(ExitCategory::Fine.code())
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

fn failure(error: WebError) -> VerbFailure {
    match error {
        WebError::Listen { .. } => VerbFailure::caused(ExitCategory::Machine, error)
            .hint("port 0 takes a free one; the address has to be one of this machine"),
        WebError::File { .. } => VerbFailure::caused(ExitCategory::Scenario, error),
        _ => VerbFailure::caused(ExitCategory::Machine, error),
    }
}

/// A file that leads to the page, for this user only: arguments of a browser could be read by all.
struct BrowserRedirectFile {
    folder: PathBuf,
}

impl Drop for BrowserRedirectFile {
    fn drop(&mut self) {
        // It has no worth any more.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Opens the browser. That it cannot be opened is no failure: the address is there.
fn open(url: &str) -> Option<BrowserRedirectFile> {
    let opened = leading_to(url).and_then(|(opened, file)| {
        let mut command = Command::new("xdg-open");
        command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(|_| opened)
    });
    opened
        .map_err(|error| {
            output::talk(&format!("warning: cannot open a browser (xdg-open): {error}"));
        })
        .ok()
}

fn leading_to(url: &str) -> io::Result<(BrowserRedirectFile, PathBuf)> {
    let parent =
        std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| Path::new(folder).is_absolute());
    let parent = parent.map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = parent.join(format!("windtunnel-page-{}", std::process::id()));
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let opened = BrowserRedirectFile { folder };
    let path = opened.folder.join("page.html");
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    write!(file, "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={url}\">")?;
    Ok((opened, path))
}

/// This program again, also if its file has been replaced meanwhile.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";
