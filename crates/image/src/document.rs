//! The JSON documents of an image. Source: OCI Image Specification 1.1 (image-layout.md,
//! image-index.md, manifest.md, config.md); Docker Image Specification 1.2, "Combined Image JSON +
//! Filesystem Changeset Format".

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use windtunnel_model::plan::Platform;

/// `index.json` of a layout, or a document that one of its entries leads to.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ImageIndex {
    #[serde(default)]
    pub(crate) manifests: Vec<ContentDescriptor>,
}

/// Something that is named by its digest.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContentDescriptor {
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) digest: String,
    /// Bytes, where it is said.
    #[serde(default)]
    pub(crate) size: Option<u64>,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) platform: Option<PlatformDocument>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PlatformDocument {
    pub(crate) architecture: String,
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) variant: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) config: ContentDescriptor,
    pub(crate) layers: Vec<ContentDescriptor>,
}

/// An image's configuration.
#[derive(Debug, Deserialize)]
pub(crate) struct Configuration {
    #[serde(default)]
    pub(crate) architecture: String,
    #[serde(default)]
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) variant: String,
    #[serde(default)]
    pub(crate) config: Option<ImageExecutionDocument>,
    pub(crate) rootfs: RootFs,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RootFs {
    pub(crate) diff_ids: Vec<String>,
}

/// What is run, and how.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ImageExecutionDocument {
    #[serde(default)]
    pub(crate) user: Option<String>,
    #[serde(default)]
    pub(crate) env: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) entrypoint: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) cmd: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) working_dir: Option<String>,
    /// Of Docker, and not of OCI: whatever stands there, the image can be used.
    #[serde(default)]
    pub(crate) healthcheck: Value,
    /// Of Docker: what reads commands that are texts.
    #[serde(default)]
    pub(crate) shell: Value,
}

/// `HEALTHCHECK`; times are nanoseconds, and 0 where they are not said.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct HealthDocument {
    pub(crate) test: Option<Vec<String>>,
    pub(crate) interval: i64,
    pub(crate) timeout: i64,
    pub(crate) start_period: i64,
    pub(crate) start_interval: i64,
    pub(crate) retries: i64,
}

/// An entry of `manifest.json` of an archive of Docker's.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DockerManifestEntry {
    pub(crate) config: String,
    #[serde(default)]
    pub(crate) repo_tags: Option<Vec<String>>,
    pub(crate) layers: Vec<String>,
}

impl DockerManifestEntry {
    /// What it is called.
    pub(crate) fn tags(&self) -> &[String] {
        self.repo_tags.as_deref().unwrap_or_default()
    }
}

impl ContentDescriptor {
    /// What it is called.
    pub(crate) fn name(&self) -> Option<&str> {
        // Docker and containerd write the whole reference into the second.
        let names = ["org.opencontainers.image.ref.name", "io.containerd.image.name"];
        names.iter().find_map(|name| self.annotations.get(*name)).map(String::as_str)
    }

    /// Whether it has this name, by itself or with what stands before a tag.
    pub(crate) fn is_called(&self, wanted: &str) -> bool {
        self.annotations.values().any(|value| value == wanted)
    }

    /// What it is for, if it says so.
    pub(crate) fn platform(&self) -> Option<Platform> {
        let said = self.platform.as_ref().filter(|said| !said.architecture.is_empty())?;
        Some(Platform::new(&said.os, &said.architecture, &said.variant))
    }

    /// Whether it leads to an index.
    pub(crate) fn is_index(&self) -> bool {
        INDEX_TYPES.contains(&self.media_type.as_str())
    }

    /// Whether it describes other entries, as provenance that builders add.
    pub(crate) fn is_attestation(&self) -> bool {
        self.annotations.contains_key("vnd.docker.reference.type")
    }
}

impl Configuration {
    /// What its programs are for, if it says so.
    pub(crate) fn platform(&self) -> Option<Platform> {
        let Configuration { os, architecture, variant, .. } = self;
        (!architecture.is_empty()).then(|| Platform::new(os, architecture, variant))
    }
}

/// Media types of what is an index: of OCI, and of Docker.
pub(crate) const INDEX_TYPES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
