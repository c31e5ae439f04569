//! Images that have been looked at: which layers they have, and what they say of their programs.

mod asked;
mod reader;

use std::fs::File;
use std::io::Take;
use std::iter;
use std::path::{Path, PathBuf};

use windtunnel_model::plan::Platform;

use crate::config::ImageExecutionConfig;
use crate::digest::Sha256Digest;
use crate::document::{ImageIndex, Manifest};
use crate::error::ImageError;
use crate::store::ImageStorage;
use asked::PlatformRequest;
use reader::{INDEXES_DEEP, ImageReader, ResolvedImageManifest};

/// An image whose documents have been read; its layers have not.
#[derive(Debug)]
pub struct Image {
    path: PathBuf,
    store: ImageStorage,
    id: Sha256Digest,
    config: ImageExecutionConfig,
    platform: Platform,
    layers: Vec<ImageLayer>,
}

/// A layer of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageLayer {
    /// The digest of its content, a tar file.
    pub id: Sha256Digest,
    /// The digest of it and all below it, `ChainID` of the OCI Image Specification: what it is known by
    /// where it is unpacked, because that depends on those.
    pub chain: Sha256Digest,
    /// Its digest as it is stored, compressed or not; `None`: the image does not say.
    pub stored: Option<Sha256Digest>,
    file: String,
}

impl Image {
    /// Looks at the image in a folder or a tar file: the only one, or that called `name`, for a platform,
    /// or else for this machine.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open(
        path: &Path,
        name: Option<&str>,
        platform: Option<&Platform>,
    ) -> Result<Image, ImageError> {
        let store = ImageStorage::open(path)?;
        let reader = ImageReader { path, store: &store, asked: PlatformRequest::new(platform) };
        let ResolvedImageManifest { id, configuration, platform, files } =
            if store.has("oci-layout") && store.has("index.json") {
                reader.layout(name)?
            } else if store.has("manifest.json") {
                reader.saved(name)?
            } else {
                let why =
                    "it has neither `oci-layout` with `index.json` nor `manifest.json`".to_owned();
                return Err(ImageError::NotAnImage { path: path.to_owned(), why });
            };
        let platform = reader.check_platform(platform, &configuration)?;
        let layers = reader.layers(&configuration, files)?;
        let config = configuration.config.map(ImageExecutionConfig::from).unwrap_or_default();
        Ok(Image { path: path.to_owned(), id, config, platform, layers, store })
    }

    /// The digest of its configuration, which names its layers: what it is known by.
    #[must_use]
    pub fn id(&self) -> &Sha256Digest {
        &self.id
    }

    /// Its file or folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its programs are for.
    #[must_use]
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// What it says of its programs.
    #[must_use]
    pub fn config(&self) -> &ImageExecutionConfig {
        &self.config
    }

    /// Its layers, the lowest first.
    #[must_use]
    pub fn layers(&self) -> &[ImageLayer] {
        &self.layers
    }

    /// Opens a layer as it is stored; it and its bytes.
    pub(crate) fn read(&self, layer: &ImageLayer) -> std::io::Result<(Take<File>, u64)> {
        self.store.read(&layer.file)
    }

    /// The bytes that a layer has as it is stored; 0 if it cannot be read.
    #[must_use]
    pub fn stored_bytes(&self, layer: &ImageLayer) -> u64 {
        self.read(layer).map_or(0, |(_, bytes)| bytes)
    }
}

/// A file that an image names, and its folder has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingImageBlob {
    pub digest: Sha256Digest,
    /// As the image says.
    pub bytes: u64,
    /// Whether it is a manifest or an index, which registries give by another address than blobs.
    pub is_manifest: bool,
}

/// What the image in a folder still lacks for a platform, or else for this machine, as far as can be said by
/// the files that are there: first its manifest, then the rest. Nothing: it is whole.
///
/// # Errors
/// What is wrong with the files that are there.
pub fn missing(
    folder: &Path,
    platform: Option<&Platform>,
) -> Result<Vec<MissingImageBlob>, ImageError> {
    let store = ImageStorage::open(folder)?;
    let reader = ImageReader { path: folder, store: &store, asked: PlatformRequest::new(platform) };
    let index: ImageIndex = reader.parse("index.json", &reader.bytes("index.json")?)?;
    let mut chosen = reader.choose(index.manifests, None)?;
    for _ in 0..INDEXES_DEEP {
        let lacks = reader.lacks([&chosen], true)?;
        if !lacks.is_empty() {
            return Ok(lacks);
        }
        if !chosen.is_index() {
            let (_, Manifest { config, layers }) = reader.blob(&chosen)?;
            return reader.lacks(iter::once(&config).chain(&layers), false);
        }
        chosen = reader.below(&chosen)?;
    }
    Err(reader.endless())
}

#[cfg(test)]
mod tests {
    use super::reader::blob_name;
    use super::*;
    use crate::testing::{TestImageBuilder, file, layout_of_platforms, saved_of_platforms};

    #[test]
    fn a_layout_an_archive_of_it_and_one_of_docker_are_the_same_image() {
        let folder = tempfile::tempdir().unwrap();
        let builder =
            TestImageBuilder::new(r#"{"Cmd": ["serve"], "User": "7"}"#).layer(&[file("a", b"1")]);
        let layout = builder.layout(&folder.path().join("layout"));
        let archive = builder.archive(&folder.path().join("oci.tar"));
        let saved = builder.saved(&folder.path().join("docker.tar"), "x:1");
        let images = [&layout, &archive, &saved].map(|path| Image::open(path, None, None).unwrap());
        for image in &images {
            assert_eq!(image.id(), images[0].id());
            assert_eq!(image.config().cmd, ["serve"]);
            assert_eq!(image.config().user.as_deref(), Some("7"));
            assert_eq!(image.layers()[0].id, images[0].layers()[0].id);
        }
        assert!(Image::open(&saved, Some("x:1"), None).is_ok());
        let error = Image::open(&saved, Some("y"), None).unwrap_err();
        assert_eq!(error.hint().as_deref(), Some("there are: x:1"));
    }

    #[test]
    fn a_document_with_another_digest_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let layout = TestImageBuilder::new("{}").layer(&[file("a", b"1")]).layout(folder.path());
        let id = Image::open(&layout, None, None).unwrap().id().clone();
        let config = layout.join(blob_name(&id));
        let mut text = std::fs::read_to_string(&config).unwrap();
        text = text.replace("linux", "LINUX");
        std::fs::write(config, text).unwrap();
        assert!(matches!(Image::open(&layout, None, None), Err(ImageError::Digest { .. })));
    }

    #[test]
    fn what_is_no_image_is_named_with_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let error = Image::open(folder.path(), None, None).unwrap_err();
        assert!(error.to_string().contains("neither `oci-layout`"), "{error}");
        let file = folder.path().join("x.tar");
        std::fs::write(&file, b"\x1f\x8b\x08\0\0\0").unwrap();
        assert!(Image::open(&file, None, None).unwrap_err().to_string().contains("gunzip"));
        std::fs::write(&file, [b'x'; 600]).unwrap();
        assert!(matches!(Image::open(&file, None, None), Err(ImageError::NotAnImage { .. })));
    }

    #[test]
    fn an_image_for_another_processor_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let builder = TestImageBuilder::new("{}").layer(&[]).for_platform("linux/s390x");
        let layout = builder.layout(folder.path());
        let error = Image::open(&layout, None, None).unwrap_err();
        assert!(error.to_string().ends_with("only for linux/s390x"), "{error}");
        assert!(error.hint().unwrap().starts_with("`platform: linux/s390x` "));
        let asked = |text: &str| Image::open(&layout, None, Some(&text.parse().unwrap()));
        assert_eq!(asked("linux/s390x").unwrap().platform().to_string(), "linux/s390x");
        let error = asked("linux/arm").unwrap_err();
        let end = "has no image for linux/arm/v7, only for linux/s390x";
        assert!(error.to_string().ends_with(end), "{error}");
        assert_eq!(error.hint(), None);
    }

    fn for_platform(text: &str) -> TestImageBuilder {
        let config = format!(r#"{{"Cmd": ["{text}"]}}"#);
        TestImageBuilder::new(&config).layer(&[file("a", text.as_bytes())]).for_platform(text)
    }

    #[test]
    fn an_image_of_several_platforms_is_that_which_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let all = ["linux/s390x", "linux/arm/v6", "linux/arm/v7", "linux/arm64", "linux/amd64"];
        let images = all.map(for_platform);
        let layout = layout_of_platforms(&images, &folder.path().join("layout"));
        let saved = saved_of_platforms(&images, &folder.path().join("saved.tar"), "x:1");
        for (path, name) in [(&layout, None), (&saved, None), (&saved, Some("x:1"))] {
            for text in all {
                let image = Image::open(path, name, Some(&text.parse().unwrap())).unwrap();
                assert_eq!(image.config().cmd, [text]);
                assert_eq!(image.platform().to_string(), text);
            }
            let near = Image::open(path, name, Some(&"linux/arm/v8".parse().unwrap())).unwrap();
            assert_eq!(near.platform().to_string(), "linux/arm/v7");
            let error = Image::open(path, name, Some(&"linux/386".parse().unwrap())).unwrap_err();
            let end = format!("has no image for linux/386, only for {}", all.join(", "));
            assert!(error.to_string().ends_with(&end), "{error}");
        }
    }

    #[test]
    fn layers_of_other_platforms_have_other_names_in_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let images = ["linux/amd64", "linux/arm64"].map(for_platform);
        let layout = layout_of_platforms(&images, folder.path());
        let chain = |text: &str| {
            let image = Image::open(&layout, None, Some(&text.parse().unwrap())).unwrap();
            (image.id().clone(), image.layers()[0].chain.clone())
        };
        assert_ne!(chain("linux/amd64"), chain("linux/arm64"));
    }

    #[test]
    fn a_platform_that_an_index_names_without_its_files_is_said_not_to_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let images = ["linux/amd64", "linux/arm64"].map(for_platform);
        let layout = layout_of_platforms(&images, folder.path());
        let manifest = Sha256Digest::of(&images[1].blobs().0);
        std::fs::remove_file(layout.join(blob_name(&manifest))).unwrap();
        let error = Image::open(&layout, None, Some(&"linux/arm64".parse().unwrap())).unwrap_err();
        let end = "its index names an image for linux/arm64, of which it has no files";
        assert!(error.to_string().ends_with(end), "{error}");
        assert!(Image::open(&layout, None, Some(&"linux/amd64".parse().unwrap())).is_ok());
    }
}
