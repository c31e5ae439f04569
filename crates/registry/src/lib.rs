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
//! | `reference` | [`Reference`]: what names an image in a registry; pure |
//! | `credentials` | what users have stored by `docker login` or `podman login` |
//! | `blob` | a file that is being fetched |
//! | `token` | what a registry's token service gives |
//! | `manifest` | documents, read no further than they may be long |
//! | `fetch` | [`fetch`]: from a reference to an image in the cache |
//! | `error` | [`RegistryError`]: why that could not be |
//!
//! Sources: OCI Distribution Specification 1.1, "Pull"; OCI Image Specification 1.1.
//!
//! ```
//! use windtunnel_registry::Reference;
//!
//! let reference = Reference::parse("redis:7")?;
//! assert_eq!(reference.to_string(), "docker.io/library/redis:7");
//! # Ok::<(), windtunnel_registry::RegistryError>(())
//! ```

mod blob;
mod credentials;
mod error;
mod fetch;
mod manifest;
mod reference;
mod token;

pub use error::RegistryError;
pub use fetch::{Progress, fetch};
pub use reference::Reference;
