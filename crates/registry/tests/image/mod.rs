//! A small image, and what fetching it comes to.

use std::path::Path;

use serde_json::json;
use windtunnel_image::{RegistryImageCache, Sha256Digest};
use windtunnel_registry::{ImageReference, RegistryError, fetch};

use crate::server::{Answer, Server};

/// An image in a registry: its blobs and its manifest.
pub(crate) struct Made {
    pub(crate) manifest: Vec<u8>,
    pub(crate) config: Vec<u8>,
    pub(crate) layer: Vec<u8>,
}

impl Made {
    pub(crate) fn new() -> Made {
        // An empty tar file is a layer without entries.
        let layer = vec![0; 1024];
        let rootfs = json!({"type": "layers", "diff_ids": [Sha256Digest::of(&layer).to_string()]});
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let config = json!({"os": "linux", "architecture": architecture, "config": {"Cmd": ["serve"]},
                            "rootfs": rootfs});
        let config = config.to_string().into_bytes();
        let named = |bytes: &[u8]| json!({"mediaType": "x", "digest": Sha256Digest::of(bytes).to_string(), "size": bytes.len()});
        let manifest =
            json!({"schemaVersion": 2, "config": named(&config), "layers": [named(&layer)]});
        Made { manifest: manifest.to_string().into_bytes(), config, layer }
    }

    pub(crate) fn serve(&self) -> Server {
        self.give_to(Server::new())
    }

    pub(crate) fn give_to(&self, server: Server) -> Server {
        server
            .give("/v2/a/manifests/1", Answer::Bytes(self.manifest.clone()))
            .give(
                &format!("/v2/a/manifests/{}", Sha256Digest::of(&self.manifest)),
                Answer::Bytes(self.manifest.clone()),
            )
            .give(&blob(&self.config), Answer::Bytes(self.config.clone()))
            .give(&blob(&self.layer), Answer::Bytes(self.layer.clone()))
    }
}

pub(crate) fn blob(bytes: &[u8]) -> String {
    format!("/v2/a/blobs/{}", Sha256Digest::of(bytes))
}

pub(crate) fn get(
    server: &Server,
    cache: &Path,
    name: &str,
) -> Result<std::path::PathBuf, RegistryError> {
    let reference = ImageReference::parse(&format!("{}/{name}", server.address()))?;
    let fetched = RegistryImageCache::open(cache)?;
    let (digest, place) =
        fetch(&reference, None, &fetched, &mut |done, total| assert!(done <= total))?;
    assert_eq!(place, fetched.place(&digest));
    Ok(place)
}

pub(crate) fn error_of(server: &Server, cache: &Path) -> String {
    let error = get(server, cache, "a:1").unwrap_err();
    let mut text = error.to_string();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(next) = cause.source() {
        text = format!("{text}: {next}");
        cause = next;
    }
    format!("{text}\nhint: {}", error.hint().unwrap_or_default())
}

/// An image for a processor, whose command is its name, and what a registry has of it.
pub(crate) fn made_for(architecture: &str) -> Made {
    let mut made = Made::new();
    let text = String::from_utf8(made.config.clone()).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
    config["architecture"] = json!(architecture);
    config["config"]["Cmd"] = json!([architecture]);
    let before = Sha256Digest::of(&made.config);
    made.config = config.to_string().into_bytes();
    let manifest = String::from_utf8(made.manifest).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["config"]["digest"], before.to_string());
    manifest["config"]["digest"] = json!(Sha256Digest::of(&made.config).to_string());
    manifest["config"]["size"] = json!(made.config.len());
    made.manifest = manifest.to_string().into_bytes();
    made
}
