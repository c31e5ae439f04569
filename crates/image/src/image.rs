//! Images that have been looked at: which layers they have, and what they say of their programs.

use std::fs::File;
use std::io::Take;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::digest::Digest;
use crate::document::{ARCHITECTURE, Configuration, Descriptor, Index, Manifest, Platform, Saved};
use crate::error::ImageError;
use crate::store::Store;

/// An image whose documents have been read; its layers have not.
#[derive(Debug)]
pub struct Image {
    path: PathBuf,
    store: Store,
    id: Digest,
    config: Config,
    layers: Vec<Layer>,
}

/// A layer of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The digest of its content, a tar file: what it is known by.
    pub id: Digest,
    /// Its digest as it is stored, compressed or not; `None`: the image does not say.
    pub stored: Option<Digest>,
    file: String,
}

impl Image {
    /// Looks at the image in a folder or a tar file: the only one, or that called `name`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open(path: &Path, name: Option<&str>) -> Result<Image, ImageError> {
        let store = Store::open(path)?;
        let reader = Reader { path, store: &store };
        let (id, configuration, files) = if store.has("oci-layout") && store.has("index.json") {
            reader.layout(name)?
        } else if store.has("manifest.json") {
            reader.saved(name)?
        } else {
            let why =
                "it has neither `oci-layout` with `index.json` nor `manifest.json`".to_owned();
            return Err(ImageError::NotAnImage { path: path.to_owned(), why });
        };
        reader.check_platform(&configuration)?;
        let layers = reader.layers(&configuration, files)?;
        let config = configuration.config.map(Config::from).unwrap_or_default();
        Ok(Image { path: path.to_owned(), id, config, layers, store })
    }

    /// The digest of its configuration, which names its layers: what it is known by.
    #[must_use]
    pub fn id(&self) -> &Digest {
        &self.id
    }

    /// Its file or folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says of its programs.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Its layers, the lowest first.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Opens a layer as it is stored; it and its bytes.
    pub(crate) fn read(&self, layer: &Layer) -> std::io::Result<(Take<File>, u64)> {
        self.store.read(&layer.file)
    }

    /// The bytes that a layer has as it is stored; 0 if it cannot be read.
    #[must_use]
    pub fn stored_bytes(&self, layer: &Layer) -> u64 {
        self.read(layer).map_or(0, |(_, bytes)| bytes)
    }
}

/// Its layers' files, each with its digest if that is known.
type Files = Vec<(String, Option<Digest>)>;

struct Reader<'a> {
    path: &'a Path,
    store: &'a Store,
}

impl Reader<'_> {
    fn layout(&self, name: Option<&str>) -> Result<(Digest, Configuration, Files), ImageError> {
        let index: Index = self.parse("index.json", &self.bytes("index.json")?)?;
        let chosen = self.choose(index.manifests, name)?;
        let (_, manifest): (_, Manifest) = self.blob(&self.of_platform(chosen)?)?;
        let (id, configuration) = self.blob(&manifest.config)?;
        let file = |layer: &Descriptor| {
            let digest = self.digest(&layer.digest)?;
            Ok((blob_name(&digest), Some(digest)))
        };
        let files = manifest.layers.iter().map(file).collect::<Result<_, _>>()?;
        Ok((id, configuration, files))
    }

    fn saved(&self, name: Option<&str>) -> Result<(Digest, Configuration, Files), ImageError> {
        let all: Vec<Saved> = self.parse("manifest.json", &self.bytes("manifest.json")?)?;
        let tags = |saved: &Saved| saved.repo_tags.clone().unwrap_or_default();
        let names: Vec<String> = all.iter().flat_map(tags).collect();
        let mut all = all;
        let chosen = match name {
            Some(name) => all.into_iter().find(|saved| tags(saved).iter().any(|tag| tag == name)),
            None if all.len() > 1 => return Err(self.several(names)),
            None => all.pop(),
        };
        let chosen = chosen.ok_or_else(|| self.no_such(name, names))?;
        let bytes = self.bytes(&chosen.config)?;
        let configuration = self.parse(&chosen.config, &bytes)?;
        // A layer's file may be named by any digest or none: it is checked by its content.
        let files = chosen.layers.into_iter().map(|file| (file, None)).collect();
        Ok((Digest::of(&bytes), configuration, files))
    }

    fn choose(&self, all: Vec<Descriptor>, name: Option<&str>) -> Result<Descriptor, ImageError> {
        let mut all: Vec<_> = all.into_iter().filter(|one| !one.is_attestation()).collect();
        let names: Vec<String> =
            all.iter().filter_map(Descriptor::name).map(str::to_owned).collect();
        if let Some(name) = name {
            let found = all.into_iter().find(|one| one.is_called(name));
            return found.ok_or_else(|| self.no_such(Some(name), names));
        }
        // Several platforms of one image have no other difference.
        let plain =
            all.len() > 1 && all.iter().all(|one| one.platform.is_some() && one.name().is_none());
        if plain {
            return self.for_here(all);
        }
        match all.len() {
            0 | 1 => all.pop().ok_or_else(|| self.no_such(None, names)),
            _ => Err(self.several(names)),
        }
    }

    /// Follows indexes down to the manifest for this machine.
    fn of_platform(&self, mut chosen: Descriptor) -> Result<Descriptor, ImageError> {
        for _ in 0..INDEXES_DEEP {
            if !chosen.is_index() {
                return Ok(chosen);
            }
            let (_, index): (_, Index) = self.blob(&chosen)?;
            let all = index.manifests.into_iter().filter(|one| !one.is_attestation());
            chosen = self.for_here(all.collect())?;
        }
        Err(self.document("index.json", "leads from index to index"))
    }

    fn for_here(&self, all: Vec<Descriptor>) -> Result<Descriptor, ImageError> {
        let fits =
            |platform: &Platform| platform.os == "linux" && platform.architecture == ARCHITECTURE;
        let shown = |one: &Descriptor| {
            one.platform.as_ref().map(|it| format!("{}/{}", it.os, it.architecture))
        };
        let found = all.iter().filter_map(shown).collect();
        let fitting = all.into_iter().find(|one| one.platform.as_ref().is_none_or(fits));
        let path = self.path.to_owned();
        fitting.ok_or(ImageError::Platform { path, wanted: ARCHITECTURE, found })
    }

    fn check_platform(&self, configuration: &Configuration) -> Result<(), ImageError> {
        let Configuration { os, architecture, .. } = configuration;
        let fits = |found: &str, wanted: &str| found.is_empty() || found == wanted;
        if fits(os, "linux") && fits(architecture, ARCHITECTURE) {
            return Ok(());
        }
        let found = vec![format!("{os}/{architecture}")];
        Err(ImageError::Platform { path: self.path.to_owned(), wanted: ARCHITECTURE, found })
    }

    fn layers(&self, from: &Configuration, files: Files) -> Result<Vec<Layer>, ImageError> {
        let ids = &from.rootfs.diff_ids;
        if ids.len() != files.len() {
            let why = format!("names {} layers, and the image has {}", ids.len(), files.len());
            return Err(self.document("the configuration", &why));
        }
        if ids.len() > LAYERS_MAX {
            return Err(self.document("the configuration", "has more than 500 layers"));
        }
        let pairs = ids.iter().zip(files);
        let layer = |(id, (file, stored)): (&String, (String, Option<Digest>))| {
            if !self.store.has(&file) {
                return Err(self
                    .document("the manifest", &format!("names a layer {file} that is not there")));
            }
            Ok(Layer { id: self.digest(id)?, stored, file })
        };
        pairs.map(layer).collect()
    }

    /// A document by its digest.
    fn blob<T: DeserializeOwned>(&self, of: &Descriptor) -> Result<(Digest, T), ImageError> {
        let expected = self.digest(&of.digest)?;
        let name = blob_name(&expected);
        let bytes = self.bytes(&name)?;
        let found = Digest::of(&bytes);
        if found != expected {
            return Err(ImageError::Digest {
                path: self.path.to_owned(),
                what: name,
                expected,
                found,
            });
        }
        let parsed = self.parse(&name, &bytes)?;
        Ok((found, parsed))
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, ImageError> {
        let failed =
            |error: std::io::Error| self.document(name, &format!("cannot be read: {error}"));
        self.store.document(name).map_err(failed)
    }

    fn parse<T: DeserializeOwned>(&self, name: &str, bytes: &[u8]) -> Result<T, ImageError> {
        serde_json::from_slice(bytes)
            .map_err(|error| self.document(name, &format!("does not say what it should: {error}")))
    }

    fn digest(&self, text: &str) -> Result<Digest, ImageError> {
        let why = || {
            self.document("a document", &format!("names `{text:.80}`, which is no SHA-256 digest"))
        };
        Digest::parse(text).ok_or_else(why)
    }

    fn document(&self, document: &str, why: &str) -> ImageError {
        let (document, why) = (document.to_owned(), why.to_owned());
        ImageError::Document { path: self.path.to_owned(), document, why }
    }

    fn several(&self, names: Vec<String>) -> ImageError {
        ImageError::Several { path: self.path.to_owned(), names }
    }

    fn no_such(&self, name: Option<&str>, names: Vec<String>) -> ImageError {
        match name {
            Some(name) => {
                ImageError::NoSuchName { path: self.path.to_owned(), name: name.to_owned(), names }
            }
            None => self.document("its index", "names no image"),
        }
    }
}

fn blob_name(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

/// An index of a registry may lead to an index of platforms.
const INDEXES_DEEP: usize = 4;
/// What overlayfs takes (`OVL_MAX_STACK`).
const LAYERS_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Builder, file};

    #[test]
    fn a_layout_an_archive_of_it_and_one_of_docker_are_the_same_image() {
        let folder = tempfile::tempdir().unwrap();
        let builder = Builder::new(r#"{"Cmd": ["serve"], "User": "7"}"#).layer(&[file("a", b"1")]);
        let layout = builder.layout(&folder.path().join("layout"));
        let archive = builder.archive(&folder.path().join("oci.tar"));
        let saved = builder.saved(&folder.path().join("docker.tar"), "x:1");
        let images = [&layout, &archive, &saved].map(|path| Image::open(path, None).unwrap());
        for image in &images {
            assert_eq!(image.id(), images[0].id());
            assert_eq!(image.config().cmd, ["serve"]);
            assert_eq!(image.config().user.as_deref(), Some("7"));
            assert_eq!(image.layers()[0].id, images[0].layers()[0].id);
        }
        assert!(Image::open(&saved, Some("x:1")).is_ok());
        let error = Image::open(&saved, Some("y")).unwrap_err();
        assert_eq!(error.hint().as_deref(), Some("there are: x:1"));
    }

    #[test]
    fn a_document_with_another_digest_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Builder::new("{}").layer(&[file("a", b"1")]).layout(folder.path());
        let id = Image::open(&layout, None).unwrap().id().clone();
        let config = layout.join(blob_name(&id));
        let mut text = std::fs::read_to_string(&config).unwrap();
        text = text.replace("linux", "LINUX");
        std::fs::write(config, text).unwrap();
        assert!(matches!(Image::open(&layout, None), Err(ImageError::Digest { .. })));
    }

    #[test]
    fn what_is_no_image_is_named_with_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let error = Image::open(folder.path(), None).unwrap_err();
        assert!(error.to_string().contains("neither `oci-layout`"), "{error}");
        let file = folder.path().join("x.tar");
        std::fs::write(&file, b"\x1f\x8b\x08\0\0\0").unwrap();
        assert!(Image::open(&file, None).unwrap_err().to_string().contains("gunzip"));
        std::fs::write(&file, [b'x'; 600]).unwrap();
        assert!(matches!(Image::open(&file, None), Err(ImageError::NotAnImage { .. })));
    }

    #[test]
    fn an_image_for_another_processor_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let builder = Builder::new("{}").layer(&[]).for_architecture("s390x");
        let error = Image::open(&builder.layout(folder.path()), None).unwrap_err();
        assert!(error.to_string().contains("only for linux/s390x"), "{error}");
    }
}
