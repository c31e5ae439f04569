//! Images from registries: references, credentials, and fetching into the cache.
//!
//! Promises: what is fetched has the digests that its reference and its manifest name; an image is
//! whole or cannot be opened, whatever is interrupted; one that a reference names by digest and that
//! is there needs no network; no thread is left behind. Credentials go to the registry that they are
//! for, and to loopback addresses alone without TLS. Refuses: pushing, signatures, and anything that
//! a registry says beyond its documents.
//!
//! | module | nouns |
//! | --- | --- |
//! | `reference` | [`ImageReference`]: what names an image in a registry; pure |
//! | `credentials` | what users have stored by `docker login` or `podman login` |
//! | `http` | requests: certificates, proxies, redirects, time limits |
//! | `token` | what a registry's token service gives |
//! | `repository` | manifests, read no further than they may be long, and blobs |
//! | `blob` | a file that is being fetched |
//! | `waiting` | work that is seen to be waited for |
//! | `failure` | what went wrong in one exchange |
//! | `fetch` | [`fetch`]: from a reference to an image in the cache |
//! | `error` | [`RegistryError`]: why that could not be |
//!
//! Sources: OCI Distribution Specification 1.1, "Pull"; OCI Image Specification 1.1.
//!
//! ```
//! use windtunnel_registry::ImageReference;
//!
//! let reference = ImageReference::parse("redis:7")?;
//! assert_eq!(reference.to_string(), "docker.io/library/redis:7");
//! # Ok::<(), windtunnel_registry::RegistryError>(())
//! ```

mod blob;
mod credentials;
mod error;
mod failure;
mod fetch;
mod http;
mod reference;
mod repository;
mod token;
mod waiting;

pub use error::RegistryError;
pub use fetch::{Progress, fetch};
pub use reference::ImageReference;
