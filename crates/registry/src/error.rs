//! Why an image could not be fetched.

use std::error::Error;
use std::io;

use windtunnel_image::{ImageError, UnpackError};

use crate::failure::{LOG_IN, RegistryExchangeError};
use crate::reference::ImageReference;

/// Why an image is not in the cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    #[error("`{text}` is not a reference to an image in a registry: {why}")]
    Reference { text: String, why: String },
    #[error("the stored credentials for {registry} cannot be used: {why}")]
    Credentials { registry: String, why: String },
    /// The network or the registry is in the way.
    #[error("cannot fetch {reference}: {why}")]
    Fetch { reference: String, why: String, hint: Option<String> },
    /// The registry gave something else than was asked for.
    #[error("cannot fetch {reference}: the registry {why}")]
    Answer { reference: String, why: String },
    #[error("cannot use what the registry gave for {reference}: {why}")]
    Image { reference: String, why: String, hint: Option<String> },
    #[error(transparent)]
    Cache(#[from] UnpackError),
    #[error("cannot talk to a registry")]
    Runtime { source: io::Error },
}

impl RegistryError {
    pub(crate) fn fetch(
        reference: &ImageReference,
        error: &RegistryExchangeError,
    ) -> RegistryError {
        let (why, hint) = (shown(error), error.hint().map(str::to_owned));
        RegistryError::Fetch { reference: reference.to_string(), why, hint }
    }

    pub(crate) fn image(reference: &ImageReference, error: &ImageError) -> RegistryError {
        let (why, hint) = (shown(error), error.hint());
        RegistryError::Image { reference: reference.to_string(), why, hint }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            RegistryError::Reference { .. } => {
                Some("write `HOST/NAME:TAG` or `HOST/NAME@sha256:DIGEST`".into())
            }
            RegistryError::Credentials { .. } => Some(LOG_IN.into()),
            RegistryError::Fetch { hint, .. } | RegistryError::Image { hint, .. } => hint.clone(),
            RegistryError::Cache(source) => source.hint(),
            RegistryError::Answer { .. } | RegistryError::Runtime { .. } => None,
        }
    }
}

/// An error with its causes, of which some are texts that a registry gave: on one line, without control
/// characters, and not endless.
fn shown(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = plain.take(SHOWN_MAX).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        short.push('…');
    }
    short.trim_end().to_owned()
}

/// Characters of an error.
const SHOWN_MAX: usize = 500;
