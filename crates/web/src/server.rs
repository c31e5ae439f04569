//! Listening, and which request goes where.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State};
use axum::http::{Response, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::routing::{get, post};
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use windtunnel_report::{ReportDocument, page};

use crate::edit::{EditedScenarioFile, ScenarioEditRequest};
use crate::runs::{LiveRunLocation, RunCatalogue};
use crate::{WebAccessToken, answer, command, guard, stream};

/// What is served.
pub enum WebServerContent {
    /// Live runs, or one run.
    Runs {
        /// The folder of the one.
        only: Option<PathBuf>,
        /// Finds the live runs of this user.
        lister: Arc<dyn Fn() -> Vec<LiveRunLocation> + Send + Sync>,
        /// End with the run, or with the last of all runs.
        until_end: bool,
    },
    /// A scenario file.
    File {
        path: PathBuf,
        /// Checks a text of it: the response of `POST /api/check`.
        check: Arc<dyn Fn(&str) -> serde_json::Value + Send + Sync>,
    },
}

/// How it is served.
pub struct WebServerOptions {
    /// Port 0: a free one.
    pub listen: SocketAddr,
    /// This program, for commands.
    pub program: PathBuf,
    pub shown: WebServerContent,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebError {
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot read {path}")]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the system has no random numbers for a token")]
    Random(#[source] std::io::Error),
    #[error("cannot start the server")]
    Start(#[source] std::io::Error),
}

/// A server that listens.
pub struct WebServer {
    runtime: tokio::runtime::Runtime,
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<WebServerState>,
    until_end: bool,
}

struct WebServerState {
    token: WebAccessToken,
    port: u16,
    program: PathBuf,
    source: WebContentSource,
    /// Room for streams.
    streams: Arc<Semaphore>,
}

enum WebContentSource {
    Runs(Arc<RunCatalogue>),
    File(Arc<EditedScenarioFile>),
}

impl WebServer {
    /// Listens; requests are answered by [`WebServer::run`].
    ///
    /// # Errors
    /// If the address cannot be listened on, or the file cannot be read.
    pub fn bind(options: WebServerOptions) -> Result<Self, WebError> {
        let WebServerOptions { listen, program, shown } = options;
        let token = WebAccessToken::random().map_err(WebError::Random)?;
        let (source, until_end) = match shown {
            WebServerContent::Runs { only, lister, until_end } => {
                (WebContentSource::Runs(RunCatalogue::new(only, lister)), until_end)
            }
            WebServerContent::File { path, check } => {
                let edited = EditedScenarioFile::open(&path, check);
                (
                    WebContentSource::File(
                        edited.map_err(|source| WebError::File { path, source })?,
                    ),
                    false,
                )
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(WebError::Start)?;
        let wrong = |source| WebError::Listen { address: listen, source };
        let listener = runtime.block_on(TcpListener::bind(listen)).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let streams = Arc::new(Semaphore::new(STREAMS_MAX));
        let state = WebServerState { token, port: address.port(), program, source, streams };
        Ok(WebServer { runtime, listener, address, state: Arc::new(state), until_end })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The page, with the token.
    #[must_use]
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            let loopback = match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            };
            address.set_ip(loopback);
        }
        format!("http://{address}/?token={}", self.state.token.text())
    }

    /// Answers requests until `stop` is ready, Ctrl-C comes, or the runs are over where that is asked
    /// for.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn run(self, stop: impl Future<Output = ()>) -> Result<(), WebError> {
        let WebServer { runtime, listener, state, until_end, .. } = self;
        let result = runtime.block_on(async {
            if let WebContentSource::File(edited) = &state.source {
                tokio::spawn(Arc::clone(edited).follow());
            }
            let serve = axum::serve(listener, router(&state)).into_future();
            tokio::select! {
                result = serve => result,
                () = stop => Ok(()),
                _ = tokio::signal::ctrl_c() => Ok(()),
                () = over(&state), if until_end => Ok(()),
            }
        });
        // Streams and commands end here.
        runtime.shutdown_background();
        result.map_err(WebError::Start)
    }
}

/// Until a run was there and none is any more, and pages had time to get the end.
async fn over(state: &WebServerState) {
    let WebContentSource::Runs(runs) = &state.source else { return std::future::pending().await };
    let mut seen = false;
    loop {
        let (runs, look) = (Arc::clone(runs), Duration::from_millis(500));
        let alive = tokio::task::spawn_blocking(move || runs.list().iter().any(|card| card.alive));
        let alive = alive.await.unwrap_or(false);
        seen |= alive;
        if seen && !alive {
            break;
        }
        tokio::time::sleep(look).await;
    }
    // The last event of the streams is sent when results are there.
    let streams = u32::try_from(STREAMS_MAX).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(FAREWELL, state.streams.acquire_many(streams)).await;
}

fn router(state: &Arc<WebServerState>) -> Router {
    let router = match state.source {
        WebContentSource::Runs(_) => Router::new()
            .route("/api/runs", get(list))
            .route("/api/runs/{id}/document", get(document))
            .route("/api/runs/{id}/stream", get(run_stream))
            .route("/api/runs/{id}/command", post(run_command))
            .route("/api/runs/{id}/exec", post(exec)),
        WebContentSource::File(_) => Router::new()
            .route("/api/file", get(content).put(save))
            .route("/api/check", post(check))
            .route("/api/file/stream", get(file_stream)),
    };
    router
        .route("/", get(index))
        .fallback(|| async { answer::wrong(StatusCode::NOT_FOUND, "there is no such page", None) })
        .method_not_allowed_fallback(|| async {
            answer::wrong(StatusCode::METHOD_NOT_ALLOWED, "it cannot be asked for like this", None)
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn_with_state(Arc::clone(state), guarded))
        .with_state(Arc::clone(state))
}

async fn guarded(
    State(state): State<Arc<WebServerState>>,
    request: Request,
    next: Next,
) -> Response<Body> {
    match guard::check(request.headers(), request.uri(), state.port, &state.token) {
        Ok(()) => next.run(request).await,
        Err(refusal) => answer::wrong(refusal.status(), refusal.text(), None),
    }
}

async fn index(State(state): State<Arc<WebServerState>>) -> Response<Body> {
    let token = state.token.text();
    answer::html(match state.source {
        WebContentSource::Runs(_) => page::live(token),
        WebContentSource::File(_) => page::edit(token),
    })
}

async fn list(State(state): State<Arc<WebServerState>>) -> Response<Body> {
    // Runs are asked, and may not answer for a while.
    blocking(move || match &state.source {
        WebContentSource::Runs(runs) => answer::json(StatusCode::OK, &runs.list()),
        WebContentSource::File(_) => no_run(),
    })
    .await
}

async fn document(
    State(state): State<Arc<WebServerState>>,
    Path(id): Path<String>,
) -> Response<Body> {
    blocking(move || {
        // Followed first: what comes after the document is not missed.
        let Some(followed) = state.runs().and_then(|runs| runs.followed(&id)) else {
            return no_run();
        };
        match ReportDocument::live(followed.folder()) {
            Ok(document) => answer::json(StatusCode::OK, &document),
            Err(error) => {
                answer::wrong(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string(), error.hint())
            }
        }
    })
    .await
}

async fn run_stream(
    State(state): State<Arc<WebServerState>>,
    Path(id): Path<String>,
    uri: Uri,
    headers: axum::http::HeaderMap,
) -> Response<Body> {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let after = last.or_else(|| guard::parameter(&uri, "after")).and_then(|text| text.parse().ok());
    let asked = Arc::clone(&state);
    let followed = tokio::task::spawn_blocking(move || asked.runs()?.followed(&id)).await;
    match followed {
        Ok(Some(followed)) => stream::events(followed.reader(after), &state.streams),
        _ => no_run(),
    }
}

async fn run_command(
    State(state): State<Arc<WebServerState>>,
    Path(id): Path<String>,
    Json(order): Json<command::WebCommandRequest>,
) -> Response<Body> {
    match state.folder(id).await {
        Some(folder) => command::run(&state.program, &folder, &order).await,
        None => no_run(),
    }
}

async fn exec(
    State(state): State<Arc<WebServerState>>,
    Path(id): Path<String>,
    Json(shell): Json<command::WebShellRequest>,
) -> Response<Body> {
    match state.folder(id).await {
        Some(folder) => command::shell(&state.program, &folder, &shell),
        None => no_run(),
    }
}

async fn content(State(state): State<Arc<WebServerState>>) -> Response<Body> {
    state.file().map_or_else(no_run, |file| file.content())
}

async fn check(
    State(state): State<Arc<WebServerState>>,
    Json(draft): Json<ScenarioEditRequest>,
) -> Response<Body> {
    match state.file() {
        Some(file) => Arc::clone(file).check(draft).await,
        None => no_run(),
    }
}

async fn save(
    State(state): State<Arc<WebServerState>>,
    Json(draft): Json<ScenarioEditRequest>,
) -> Response<Body> {
    match state.file() {
        Some(file) => file.save(&draft).await,
        None => no_run(),
    }
}

async fn file_stream(State(state): State<Arc<WebServerState>>) -> Response<Body> {
    match state.file() {
        Some(file) => stream::events(file.changes().reader(None), &state.streams),
        None => no_run(),
    }
}

impl WebServerState {
    fn runs(&self) -> Option<&Arc<RunCatalogue>> {
        match &self.source {
            WebContentSource::Runs(runs) => Some(runs),
            WebContentSource::File(_) => None,
        }
    }

    fn file(&self) -> Option<&Arc<EditedScenarioFile>> {
        match &self.source {
            WebContentSource::Runs(_) => None,
            WebContentSource::File(file) => Some(file),
        }
    }

    /// The folder of a run.
    async fn folder(self: &Arc<Self>, id: String) -> Option<PathBuf> {
        let state = Arc::clone(self);
        tokio::task::spawn_blocking(move || state.runs()?.folder(&id)).await.ok()?
    }
}

/// What takes time without waiting for the network.
async fn blocking(work: impl FnOnce() -> Response<Body> + Send + 'static) -> Response<Body> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        answer::wrong(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string(), None)
    })
}

fn no_run() -> Response<Body> {
    answer::wrong(StatusCode::NOT_FOUND, "there is no such run", Some("GET /api/runs lists them"))
}

/// A body of JSON, refused in JSON.
struct Json<T>(T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Response<Body>;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response<Body>> {
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|error| answer::wrong(error.status(), &error.body_text(), None))?;
        let value = serde_json::from_slice(&bytes);
        value.map(Json).map_err(|error| {
            answer::wrong(StatusCode::BAD_REQUEST, &format!("unreadable: {error}"), None)
        })
    }
}

/// What a page sends: texts of files are the longest.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Pages that look at once.
const STREAMS_MAX: usize = 64;
/// How long pages may take to get the end of their runs.
const FAREWELL: Duration = Duration::from_secs(30);
