//! A scenario file: reading, checking, saving, changes on disk.

mod file;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer;
use crate::hub::{ServerSentEvent, ServerSentEventHub};
use file::ScenarioSaveOutcome;

/// The file that is edited.
pub(crate) struct EditedScenarioFile {
    path: PathBuf,
    /// Checks a text of it: the response of `POST /api/check`.
    check: Arc<dyn Fn(&str) -> Value + Send + Sync>,
    hub: Arc<ServerSentEventHub>,
    /// The version that was last seen on disk or written.
    seen: Mutex<String>,
    /// One text is checked, one file written at a time.
    busy: tokio::sync::Mutex<()>,
}

#[derive(Debug, Serialize)]
struct ScenarioFileResponse {
    path: PathBuf,
    text: String,
    version: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ScenarioEditRequest {
    text: String,
    #[serde(default)]
    version: String,
}

impl EditedScenarioFile {
    /// # Errors
    /// If the file cannot be read, or is no text.
    pub(crate) fn open(
        path: &Path,
        check: Arc<dyn Fn(&str) -> Value + Send + Sync>,
    ) -> std::io::Result<Arc<Self>> {
        // A link stays one: what it leads to is written.
        let path = path.canonicalize()?;
        let (_, version) = file::read(&path)?;
        let (hub, busy) = (ServerSentEventHub::new(BUFFER_BYTES), tokio::sync::Mutex::default());
        Ok(Arc::new(EditedScenarioFile { path, check, hub, seen: Mutex::new(version), busy }))
    }

    pub(crate) fn content(&self) -> Response<Body> {
        match file::read(&self.path) {
            Ok((text, version)) => {
                let path = self.path.clone();
                answer::json(StatusCode::OK, &ScenarioFileResponse { path, text, version })
            }
            Err(error) => self.failed("read", &error),
        }
    }

    /// The mistakes of a text, or what it describes.
    pub(crate) async fn check(self: Arc<Self>, draft: ScenarioEditRequest) -> Response<Body> {
        let _one = self.busy.lock().await;
        let check = Arc::clone(&self.check);
        match tokio::task::spawn_blocking(move || check(&draft.text)).await {
            Ok(value) => answer::json(StatusCode::OK, &value),
            Err(error) => {
                answer::wrong(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string(), None)
            }
        }
    }

    /// Saves a text if the file is as it was when the page read it.
    pub(crate) async fn save(&self, draft: &ScenarioEditRequest) -> Response<Body> {
        let _one = self.busy.lock().await;
        match file::save(&self.path, &draft.text, &draft.version) {
            Ok(ScenarioSaveOutcome::New(version)) => {
                self.see(&version);
                answer::json(StatusCode::OK, &json!({ "version": version }))
            }
            Ok(ScenarioSaveOutcome::Conflict { text, version }) => {
                answer::json(StatusCode::CONFLICT, &json!({ "text": text, "version": version }))
            }
            Err(error) => self.failed("save", &error),
        }
    }

    /// Changes that other programs make.
    pub(crate) fn changes(&self) -> Arc<ServerSentEventHub> {
        Arc::clone(&self.hub)
    }

    /// Looks at the file until the server ends.
    pub(crate) async fn follow(self: Arc<Self>) {
        let mut looked_at = None;
        loop {
            tokio::time::sleep(EACH).await;
            let state = file::state(&self.path);
            if state == looked_at {
                continue;
            }
            let _one = self.busy.lock().await;
            // An editor may be in the middle of writing: what cannot be read is read again.
            let Ok((text, version)) = file::read(&self.path) else { continue };
            looked_at = state;
            if self.see(&version) {
                let message = json!({ "text": text, "version": version });
                self.hub.write(ServerSentEvent::new("changed", &message));
            }
        }
    }

    /// Whether the version is new.
    fn see(&self, version: &str) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let new = *seen != version;
        version.clone_into(&mut seen);
        new
    }

    fn failed(&self, verb: &str, error: &std::io::Error) -> Response<Body> {
        let text = format!("cannot {verb} {}: {error}", self.path.display());
        answer::wrong(StatusCode::INTERNAL_SERVER_ERROR, &text, None)
    }
}

const EACH: Duration = Duration::from_millis(500);
const BUFFER_BYTES: usize = 4 << 20;
