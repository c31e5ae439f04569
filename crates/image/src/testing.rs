//! Images that tests make.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};
use windtunnel_model::plan::Platform;

use crate::digest::Sha256Digest;

/// An entry of a layer.
#[derive(Debug, Clone)]
pub(crate) struct TestLayerEntry {
    pub(crate) name: &'static str,
    pub(crate) kind: EntryType,
    pub(crate) content: Vec<u8>,
    pub(crate) link: &'static str,
    pub(crate) owner: u64,
    pub(crate) mode: u32,
}

pub(crate) fn file(name: &'static str, content: &[u8]) -> TestLayerEntry {
    let (kind, content) = (EntryType::Regular, content.to_vec());
    TestLayerEntry { name, kind, content, link: "", owner: 0, mode: 0o644 }
}

pub(crate) fn other(name: &'static str, kind: EntryType, link: &'static str) -> TestLayerEntry {
    let mode = if kind.is_dir() { 0o755 } else { 0o644 };
    TestLayerEntry { name, kind, content: Vec::new(), link, owner: 0, mode }
}

/// A tar file of entries, whose names are written as they are.
pub(crate) fn tar(entries: &[TestLayerEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for made in entries {
        let mut header = Header::new_ustar();
        let field = &mut header.as_old_mut().name;
        field[..made.name.len()].copy_from_slice(made.name.as_bytes());
        let field = &mut header.as_old_mut().linkname;
        field[..made.link.len()].copy_from_slice(made.link.as_bytes());
        header.set_entry_type(made.kind);
        header.set_size(made.content.len() as u64);
        header.set_uid(made.owner);
        header.set_gid(made.owner);
        header.set_mode(made.mode);
        header.set_mtime(1_000_000_000);
        header.set_cksum();
        bytes.extend(header.as_bytes());
        bytes.extend(&made.content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// Makes an image, in any of the formats.
#[derive(Debug, Clone)]
pub(crate) struct TestImageBuilder {
    config: String,
    platform: Platform,
    /// Content, and as it is stored.
    layers: Vec<(Vec<u8>, Vec<u8>)>,
}

impl TestImageBuilder {
    pub(crate) fn new(config: &str) -> TestImageBuilder {
        let platform = Platform::of_machine(std::env::consts::ARCH);
        TestImageBuilder { config: config.into(), platform, layers: Vec::new() }
    }

    pub(crate) fn for_platform(mut self, text: &str) -> TestImageBuilder {
        self.platform = text.parse().unwrap();
        self
    }

    /// A layer that is stored compressed by gzip.
    pub(crate) fn layer(self, entries: &[TestLayerEntry]) -> TestImageBuilder {
        let content = tar(entries);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&content).unwrap();
        let stored = encoder.finish().unwrap();
        self.stored(content, stored)
    }

    pub(crate) fn stored(mut self, content: Vec<u8>, stored: Vec<u8>) -> TestImageBuilder {
        self.layers.push((content, stored));
        self
    }

    fn configuration(&self) -> Vec<u8> {
        let ids: Vec<String> = self
            .layers
            .iter()
            .map(|(content, _)| format!("\"{}\"", Sha256Digest::of(content)))
            .collect();
        let config = &self.config;
        let rootfs = format!(r#"{{"type":"layers","diff_ids":[{}]}}"#, ids.join(","));
        format!(r#"{{{},"config":{config},"rootfs":{rootfs}}}"#, self.platform_keys()).into_bytes()
    }

    /// What documents say of the platform.
    fn platform_keys(&self) -> String {
        let text = self.platform.to_string();
        let parts: Vec<&str> = text.split('/').collect();
        let names = ["os", "architecture", "variant"];
        let pairs = names.iter().zip(parts).map(|(name, part)| format!(r#""{name}":"{part}""#));
        pairs.collect::<Vec<_>>().join(",")
    }

    /// The files of an OCI layout.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let (manifest, mut files) = self.blobs();
        files.extend(top(&[descriptor("manifest.v1+json", &manifest, "")]));
        files
    }

    /// Its manifest, and the files that this leads to, with itself.
    pub(crate) fn blobs(&self) -> (Vec<u8>, Vec<(String, Vec<u8>)>) {
        let configuration = self.configuration();
        let layers: Vec<String> = self
            .layers
            .iter()
            .map(|(_, stored)| descriptor("layer.v1.tar+gzip", stored, ""))
            .collect();
        let manifest = format!(
            r#"{{"schemaVersion":2,"config":{},"layers":[{}]}}"#,
            descriptor("config.v1+json", &configuration, ""),
            layers.join(",")
        )
        .into_bytes();
        let mut files = vec![blob(&manifest), blob(&configuration)];
        files.extend(self.layers.iter().map(|(_, stored)| blob(stored)));
        (manifest, files)
    }

    pub(crate) fn layout(&self, folder: &Path) -> PathBuf {
        write_files(folder, self.files())
    }

    pub(crate) fn archive(&self, path: &Path) -> PathBuf {
        write_tar(path, self.files())
    }

    pub(crate) fn saved(&self, path: &Path, tag: &str) -> PathBuf {
        let configuration = self.configuration();
        let config = format!("{}.json", Sha256Digest::of(&configuration).hex());
        let names: Vec<String> = (0..self.layers.len()).map(|n| format!("{n}/layer.tar")).collect();
        let manifest = format!(
            r#"[{{"Config":"{config}","RepoTags":["{tag}"],"Layers":{}}}]"#,
            serde_json::to_string(&names).unwrap()
        );
        let layers = names.into_iter().zip(self.layers.iter().map(|(content, _)| content.clone()));
        let documents = [(config, configuration), ("manifest.json".into(), manifest.into_bytes())];
        write_tar(path, layers.chain(documents).collect())
    }
}

/// A layout of one image for several platforms: its index leads to one of them.
pub(crate) fn layout_of_platforms(images: &[TestImageBuilder], folder: &Path) -> PathBuf {
    let mut files = Vec::new();
    let mut entries = Vec::new();
    for image in images {
        let (manifest, blobs) = image.blobs();
        let platform = format!(r#","platform":{{{}}}"#, image.platform_keys());
        entries.push(descriptor("manifest.v1+json", &manifest, &platform));
        files.extend(blobs);
    }
    let index = index(&entries);
    files.push(blob(&index));
    files.extend(top(&[descriptor("index.v1+json", &index, "")]));
    write_files(folder, files)
}

/// What Docker saves of one image for several platforms.
pub(crate) fn saved_of_platforms(images: &[TestImageBuilder], path: &Path, tag: &str) -> PathBuf {
    let (mut files, mut entries) = (Vec::new(), Vec::new());
    for (number, image) in images.iter().enumerate() {
        let config = format!("{number}.json");
        entries.push(format!(
            r#"{{"Config":"{config}","RepoTags":["{tag}"],"Layers":["{number}.tar"]}}"#
        ));
        files.push((config, image.configuration()));
        files.push((format!("{number}.tar"), image.layers[0].0.clone()));
    }
    files.push(("manifest.json".into(), format!("[{}]", entries.join(",")).into_bytes()));
    write_tar(path, files)
}

fn index(entries: &[String]) -> Vec<u8> {
    format!(r#"{{"schemaVersion":2,"manifests":[{}]}}"#, entries.join(",")).into_bytes()
}

/// The files of a layout that are not named by digests.
fn top(entries: &[String]) -> [(String, Vec<u8>); 2] {
    let version = br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec();
    [("oci-layout".to_owned(), version), ("index.json".to_owned(), index(entries))]
}

fn blob(bytes: &[u8]) -> (String, Vec<u8>) {
    (format!("blobs/sha256/{}", Sha256Digest::of(bytes).hex()), bytes.to_vec())
}

fn descriptor(kind: &str, bytes: &[u8], more: &str) -> String {
    let (digest, size) = (Sha256Digest::of(bytes), bytes.len());
    format!(
        r#"{{"mediaType":"application/vnd.oci.image.{kind}","digest":"{digest}","size":{size}{more}}}"#
    )
}

fn write_files(folder: &Path, files: Vec<(String, Vec<u8>)>) -> PathBuf {
    fs::create_dir_all(folder.join("blobs/sha256")).unwrap();
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).unwrap();
    }
    folder.to_owned()
}

fn write_tar(path: &Path, files: Vec<(String, Vec<u8>)>) -> PathBuf {
    let mut builder = tar::Builder::new(fs::File::create(path).unwrap());
    for (name, bytes) in files {
        let mut header = Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, name, &bytes[..]).unwrap();
    }
    builder.into_inner().unwrap();
    path.to_owned()
}

/// An extended header with these records, which the next entry has.
pub(crate) fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let mut content = String::new();
    for (key, value) in records {
        let rest = key.len() + value.len() + 3;
        let mut length = rest + 1;
        while length != rest + length.to_string().len() {
            length = rest + length.to_string().len();
        }
        content += &format!("{length} {key}={value}\n");
    }
    let header =
        TestLayerEntry { content: content.into_bytes(), ..other("x", EntryType::XHeader, "") };
    let mut bytes = tar(&[header]);
    // Without the end of an archive.
    bytes.truncate(bytes.len() - 1024);
    bytes
}
