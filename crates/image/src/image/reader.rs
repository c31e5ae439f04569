//! Reading the documents of an image, from the one that names the others down to its configuration.

use std::path::Path;

use serde::de::DeserializeOwned;
use windtunnel_model::plan::Platform;

use super::asked::PlatformRequest;
use super::{ImageLayer, MissingImageBlob};
use crate::digest::Sha256Digest;
use crate::document::{
    Configuration, ContentDescriptor, DockerManifestEntry, ImageIndex, Manifest,
};
use crate::error::ImageError;
use crate::store::ImageStorage;

/// A layer as it is stored, with what is said of it.
pub(super) struct LayerFile {
    file: String,
    digest: Option<Sha256Digest>,
    bytes: Option<u64>,
}

pub(super) struct ImageReader<'a> {
    pub(super) path: &'a Path,
    pub(super) store: &'a ImageStorage,
    pub(super) asked: PlatformRequest,
}

/// What an image's documents lead to.
pub(super) struct ResolvedImageManifest {
    pub(super) id: Sha256Digest,
    pub(super) configuration: Configuration,
    /// What the image is for by what names it.
    pub(super) platform: Option<Platform>,
    pub(super) files: Vec<LayerFile>,
}

impl ImageReader<'_> {
    pub(super) fn layout(&self, name: Option<&str>) -> Result<ResolvedImageManifest, ImageError> {
        let index: ImageIndex = self.parse("index.json", &self.bytes("index.json")?)?;
        let chosen = self.of_platform(self.choose(index.manifests, name)?)?;
        let platform = chosen.platform();
        if let (Some(platform), true) = (&platform, !self.lacks([&chosen], true)?.is_empty()) {
            let why = format!("names an image for {platform}, of which it has no files");
            return Err(self.document("its index", &why));
        }
        let (_, manifest): (_, Manifest) = self.blob(&chosen)?;
        let (id, configuration) = self.blob(&manifest.config)?;
        let file = |layer: &ContentDescriptor| {
            let digest = self.digest(&layer.digest)?;
            Ok(LayerFile { file: blob_name(&digest), digest: Some(digest), bytes: layer.size })
        };
        let files = manifest.layers.iter().map(file).collect::<Result<_, _>>()?;
        Ok(ResolvedImageManifest { id, configuration, platform, files })
    }

    pub(super) fn saved(&self, name: Option<&str>) -> Result<ResolvedImageManifest, ImageError> {
        let all: Vec<DockerManifestEntry> =
            self.parse("manifest.json", &self.bytes("manifest.json")?)?;
        let names: Vec<String> = all.iter().flat_map(DockerManifestEntry::tags).cloned().collect();
        let is_called = |saved: &DockerManifestEntry| {
            name.is_none_or(|name| saved.tags().iter().any(|tag| tag == name))
        };
        let mut candidates: Vec<DockerManifestEntry> = all.into_iter().filter(is_called).collect();
        let tags = candidates.first().map(|first| first.tags().to_vec()).unwrap_or_default();
        let is_one = !tags.is_empty() && candidates.iter().all(|one| *one.tags() == *tags);
        let chosen = match candidates.len() {
            0 | 1 => candidates.pop().ok_or_else(|| self.no_such(name, names))?,
            // Several platforms of one image.
            _ if is_one => self.saved_for(candidates)?,
            _ => return Err(self.several(names)),
        };
        let bytes = self.bytes(&chosen.config)?;
        let configuration = self.parse(&chosen.config, &bytes)?;
        // A layer's file may be named by any digest or none: it is checked by its content.
        let files = chosen.layers.into_iter();
        let files = files.map(|file| LayerFile { file, digest: None, bytes: None }).collect();
        Ok(ResolvedImageManifest {
            id: Sha256Digest::of(&bytes),
            configuration,
            platform: None,
            files,
        })
    }

    /// The one whose configuration names the platform.
    fn saved_for(&self, all: Vec<DockerManifestEntry>) -> Result<DockerManifestEntry, ImageError> {
        let platform = |saved: DockerManifestEntry| {
            let read = self.parse(&saved.config, &self.bytes(&saved.config)?);
            Ok((read.map(|it: Configuration| it.platform())?, saved))
        };
        let all = all.into_iter().map(platform).collect::<Result<Vec<_>, ImageError>>()?;
        let best = self.asked.best(all, |(platform, _)| platform.clone());
        best.map(|(_, saved)| saved).map_err(|found| self.asked.refusal(self.path, found))
    }

    pub(super) fn choose(
        &self,
        all: Vec<ContentDescriptor>,
        name: Option<&str>,
    ) -> Result<ContentDescriptor, ImageError> {
        let mut all: Vec<_> = all.into_iter().filter(|one| !one.is_attestation()).collect();
        let names: Vec<String> =
            all.iter().filter_map(ContentDescriptor::name).map(str::to_owned).collect();
        all.retain(|one| name.is_none_or(|name| one.is_called(name)));
        // Several platforms of one image have no other difference.
        let called = all.first().and_then(ContentDescriptor::name);
        let is_one = all.iter().all(|one| one.platform.is_some() && one.name() == called);
        match all.len() {
            0 | 1 => all.pop().ok_or_else(|| self.no_such(name, names)),
            _ if is_one => self.for_platform(all),
            _ if name.is_some() => Ok(all.swap_remove(0)),
            _ => Err(self.several(names)),
        }
    }

    /// Follows indexes down to the manifest for the platform.
    pub(super) fn of_platform(
        &self,
        mut chosen: ContentDescriptor,
    ) -> Result<ContentDescriptor, ImageError> {
        for _ in 0..INDEXES_DEEP {
            if !chosen.is_index() {
                return Ok(chosen);
            }
            chosen = self.below(&chosen)?;
        }
        Err(self.endless())
    }

    /// What an index has for the platform.
    pub(super) fn below(
        &self,
        chosen: &ContentDescriptor,
    ) -> Result<ContentDescriptor, ImageError> {
        let (_, index): (_, ImageIndex) = self.blob(chosen)?;
        let all = index.manifests.into_iter().filter(|one| !one.is_attestation());
        self.for_platform(all.collect())
    }

    pub(super) fn endless(&self) -> ImageError {
        self.document("index.json", "leads from index to index")
    }

    pub(super) fn lacks<'d>(
        &self,
        all: impl IntoIterator<Item = &'d ContentDescriptor>,
        is_manifest: bool,
    ) -> Result<Vec<MissingImageBlob>, ImageError> {
        let mut lacks = Vec::new();
        for one in all {
            let digest = self.digest(&one.digest)?;
            if !self.store.has(&blob_name(&digest)) {
                lacks.push(MissingImageBlob { digest, bytes: one.size.unwrap_or(0), is_manifest });
            }
        }
        Ok(lacks)
    }

    fn for_platform(&self, all: Vec<ContentDescriptor>) -> Result<ContentDescriptor, ImageError> {
        let best = self.asked.best(all, ContentDescriptor::platform);
        best.map_err(|found| self.asked.refusal(self.path, found))
    }

    /// What the image's programs are for: by what names it, or else by itself.
    pub(super) fn check_platform(
        &self,
        named: Option<Platform>,
        configuration: &Configuration,
    ) -> Result<Platform, ImageError> {
        let own = configuration.platform();
        let Some(found) = named.or_else(|| own.clone()) else {
            return Ok(self.asked.platform().clone());
        };
        // Many say nothing of a variant.
        let is_so = own.as_ref().is_none_or(|own| own.is_kin(&found));
        match is_so && self.asked.is_met_by(&found) {
            true => Ok(found),
            false => Err(self.asked.refusal(self.path, vec![own.unwrap_or(found)])),
        }
    }

    pub(super) fn layers(
        &self,
        from: &Configuration,
        files: Vec<LayerFile>,
    ) -> Result<Vec<ImageLayer>, ImageError> {
        let ids = &from.rootfs.diff_ids;
        if ids.len() != files.len() {
            let why = format!("names {} layers, and the image has {}", ids.len(), files.len());
            return Err(self.document("the configuration", &why));
        }
        if ids.len() > LAYERS_MAX {
            return Err(self.document("the configuration", "has more than 500 layers"));
        }
        let mut layers: Vec<ImageLayer> = Vec::new();
        for (id, LayerFile { file, digest, bytes }) in ids.iter().zip(files) {
            if !self.store.has(&file) {
                return Err(self
                    .document("the manifest", &format!("names a layer {file} that is not there")));
            }
            self.check_size(&file, bytes)?;
            let id = self.digest(id)?;
            let chain = match layers.last() {
                None => id.clone(),
                Some(below) => Sha256Digest::of(format!("{} {id}", below.chain).as_bytes()),
            };
            layers.push(ImageLayer { id, chain, stored: digest, file });
        }
        Ok(layers)
    }

    /// Whether a file has as many bytes as what names it says.
    fn check_size(&self, file: &str, said: Option<u64>) -> Result<(), ImageError> {
        let Some(said) = said else { return Ok(()) };
        let found = self
            .store
            .read(file)
            .map_err(|source| ImageError::Read { path: self.path.join(file), source })?;
        if found.1 == said {
            return Ok(());
        }
        let why = format!("names {file} with {said} bytes, and it has {}", found.1);
        Err(self.document("the manifest or index", &why))
    }

    /// A document by its digest.
    pub(super) fn blob<T: DeserializeOwned>(
        &self,
        of: &ContentDescriptor,
    ) -> Result<(Sha256Digest, T), ImageError> {
        let expected = self.digest(&of.digest)?;
        let name = blob_name(&expected);
        self.check_size(&name, of.size)?;
        let bytes = self.bytes(&name)?;
        let found = Sha256Digest::of(&bytes);
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

    pub(super) fn bytes(&self, name: &str) -> Result<Vec<u8>, ImageError> {
        let failed =
            |error: std::io::Error| self.document(name, &format!("cannot be read: {error}"));
        self.store.document(name).map_err(failed)
    }

    pub(super) fn parse<T: DeserializeOwned>(
        &self,
        name: &str,
        bytes: &[u8],
    ) -> Result<T, ImageError> {
        serde_json::from_slice(bytes)
            .map_err(|error| self.document(name, &format!("does not say what it should: {error}")))
    }

    pub(super) fn digest(&self, text: &str) -> Result<Sha256Digest, ImageError> {
        let why = || {
            self.document("a document", &format!("names `{text:.80}`, which is no SHA-256 digest"))
        };
        Sha256Digest::parse(text).ok_or_else(why)
    }

    pub(super) fn document(&self, document: &str, why: &str) -> ImageError {
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

pub(super) fn blob_name(digest: &Sha256Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

/// An index of a registry may lead to an index of platforms.
pub(super) const INDEXES_DEEP: usize = 4;
/// What overlayfs takes (`OVL_MAX_STACK`).
const LAYERS_MAX: usize = 500;
