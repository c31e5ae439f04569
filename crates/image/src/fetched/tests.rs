use windtunnel_model::plan::Platform;

use super::*;
use crate::image::{Image, MissingImageBlob, missing};
use crate::testing::{TestImageBuilder, file};

/// What a registry would have: the manifest's digest, and all blobs.
fn source(folder: &Path) -> (Sha256Digest, PathBuf) {
    let layout =
        TestImageBuilder::new(r#"{"Cmd": ["serve"]}"#).layer(&[file("a", b"1")]).layout(folder);
    let index: ImageIndex =
        serde_json::from_slice(&fs::read(layout.join("index.json")).unwrap()).unwrap();
    (Sha256Digest::parse(&index.manifests[0].digest).unwrap(), layout.join(BLOBS))
}

fn give(from: &Path, to: &RegistryImageCache, lacks: &[MissingImageBlob]) {
    for MissingImageBlob { digest, bytes, .. } in lacks {
        let content = fs::read(from.join(digest.hex())).unwrap();
        assert_eq!(content.len() as u64, *bytes);
        fs::write(to.blob(digest), content).unwrap();
    }
}

#[test]
fn an_image_is_whole_when_nothing_that_it_names_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (root, blobs) = source(&folder.path().join("source"));
    let cache = folder.path().join("cache");
    let fetched = RegistryImageCache::open(&cache).unwrap();
    let manifest = fs::read(blobs.join(root.hex())).unwrap();
    let place = fetched.begin(&root, &manifest, "example.org/a:1").unwrap();
    assert_eq!(place, fetched_place(&cache, &root));
    assert!(Image::open(&place, None, None).is_err());
    let lacks = missing(&place, None).unwrap();
    assert_eq!(lacks.len(), 2, "configuration and layer: {lacks:?}");
    assert!(lacks.iter().all(|one| !one.is_manifest));
    give(&blobs, &fetched, &lacks);
    assert_eq!(missing(&place, None).unwrap(), []);
    assert_eq!(Image::open(&place, None, None).unwrap().config().cmd, ["serve"]);
    let listed = RegistryImageCache::list(&cache).unwrap();
    assert_eq!(listed, [FetchedImage { digest: root, reference: "example.org/a:1".into() }]);
}

#[test]
fn an_index_leads_to_the_manifest_for_this_processor() {
    let folder = tempfile::tempdir().unwrap();
    let (manifest, blobs) = source(&folder.path().join("source"));
    let own = Platform::of_machine(std::env::consts::ARCH);
    let architecture = own.architecture();
    let index = format!(
        r#"{{"schemaVersion":2,"manifests":[
            {{"digest":"sha256:{}","platform":{{"os":"linux","architecture":"s390x"}}}},
            {{"digest":"{manifest}","platform":{{"os":"linux","architecture":"{architecture}"}}}}]}}"#,
        "0".repeat(64)
    );
    let fetched = RegistryImageCache::open(&folder.path().join("cache")).unwrap();
    let place = fetched.begin(&Sha256Digest::of(index.as_bytes()), index.as_bytes(), "a").unwrap();
    let wanted = MissingImageBlob { digest: manifest.clone(), bytes: 0, is_manifest: true };
    assert_eq!(missing(&place, None).unwrap(), [wanted]);
    fs::copy(blobs.join(manifest.hex()), fetched.blob(&manifest)).unwrap();
    assert_eq!(missing(&place, None).unwrap().len(), 2);
}

#[test]
fn images_in_use_are_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (root, blobs) = source(&folder.path().join("source"));
    let cache = folder.path().join("cache");
    let fetched = RegistryImageCache::open(&cache).unwrap();
    let manifest = fs::read(blobs.join(root.hex())).unwrap();
    let place = fetched.begin(&root, &manifest, "a").unwrap();
    let removed = RegistryImageCache::clear(&cache).unwrap();
    assert_eq!((removed.layers, removed.in_use), (0, 1));
    assert!(place.is_dir());
    drop(fetched);
    let removed = RegistryImageCache::clear(&cache).unwrap();
    assert_eq!((removed.layers, removed.in_use), (1, 0));
    assert!(removed.bytes > 0 && !place.exists());
    assert_eq!(RegistryImageCache::list(&cache).unwrap(), []);
}
