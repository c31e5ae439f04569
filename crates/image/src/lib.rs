//! Images of OCI and Docker: their formats, a cache of unpacked layers, and what layers are together.
//!
//! Promises: what is unpacked has the digest that its image names (SHA-256, of the layer as it is
//! stored and of its content); an unpacked layer is whole or not there, whatever is interrupted and
//! however many do it at once; nothing is written outside of the layer's own folder, whatever the
//! layer says. Refuses: talking to registries, signatures, and running anything.
//!
//! | module | nouns |
//! | --- | --- |
//! | `document` | the JSON documents of an image: index, manifest, configuration; pure |
//! | `config` | [`ImageExecutionConfig`]: what an image says of its command, variables, user, folder and health check; pure |
//! | `account` | [`ImageUserAccount`]: users of an image by name; pure |
//! | `name` | names of a layer's entries, and what they mean; pure |
//! | `ids` | [`ImageOwnerMapping`]: which owners unpacked files can have; pure |
//! | `store` | where blobs are: a folder, or a tar file |
//! | `image` | [`Image`]: an image that has been looked at |
//! | `entries` | the entries of a layer's tar file |
//! | `unpack` | from a layer to a folder |
//! | `copied` | entries as others: attributes, holes |
//! | `inside` | [`ConfinedRootFolder`]: paths below a folder that no link leads out of |
//! | `cache` | [`Cache`]: layers by digest, each unpacked once |
//! | `fetched` | [`RegistryImageCache`]: images from registries in the cache, with what they still lack |
//! | `merged` | [`MergedLayerTree`]: layers as the one tree that they are together |
//!
//! ```
//! let folder = tempfile::tempdir()?;
//! let error = windtunnel_image::Image::open(folder.path(), None, None).unwrap_err();
//! assert!(error.to_string().contains("is not an image"));
//! # Ok::<(), std::io::Error>(())
//! ```

mod account;
mod cache;
mod config;
mod copied;
mod digest;
mod document;
mod entries;
mod error;
mod fetched;
mod ids;
mod image;
mod inside;
mod merged;
mod name;
mod store;
#[cfg(test)]
mod testing;
mod unpack;

pub use account::{AccountError, ImageUserAccount};
pub use cache::{Cache, CachedImageLayer, ImageCacheClearOutcome};
pub use config::{ImageExecutionConfig, ImageHealthcheck};
pub use digest::{HashingReader, Sha256Digest};
pub use error::{ImageError, UnpackError};
pub use fetched::{FetchedImage, RegistryImageCache, fetched_place};
pub use ids::{ImageOwnerMapping, SubordinateIdRange};
pub use image::{Image, ImageLayer, MissingImageBlob, missing};
pub use inside::{ConfinedRootFolder, FilesystemEntryKind};
pub use merged::MergedLayerTree;
pub use unpack::LeftOut;
