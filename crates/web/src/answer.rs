//! Responses and their headers.

use axum::body::Body;
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

/// A response with all headers that protect the page.
pub(crate) fn response(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A page.
pub(crate) fn html(text: String) -> Response<Body> {
    response(StatusCode::OK, "text/html; charset=utf-8", text.into())
}

/// Values as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(bytes) => response(status, "application/json", bytes.into()),
        Err(error) => wrong(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string(), None),
    }
}

/// Why a request has no other answer.
pub(crate) fn wrong(status: StatusCode, error: &str, hint: Option<&str>) -> Response<Body> {
    let mut value = serde_json::json!({ "error": error });
    if let Some(hint) = hint {
        value["hint"] = hint.into();
    }
    response(status, "application/json", value.to_string().into())
}

/// Nothing but this page is loaded, by nothing but itself; no other page may show it in a frame; its
/// address, which has the token, is not sent elsewhere or kept.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
         img-src data: blob:; font-src data:; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];
