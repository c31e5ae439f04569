use super::*;
use crate::digest::Sha256Digest;
use crate::testing::{TestImageBuilder, file, tar};

fn image(builder: &TestImageBuilder, folder: &Path) -> Image {
    Image::open(&builder.archive(&folder.join("image.tar")), None, None).unwrap()
}

fn cache(folder: &Path) -> Cache {
    Cache::open(&folder.join("cache"), ImageOwnerMapping::One).unwrap()
}

fn names(cache: &Cache) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(cache.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".lock"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_layer_is_unpacked_once_and_only_its_owner_can_enter_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(&TestImageBuilder::new("{}").layer(&[file("a", b"1")]), folder.path());
    let cache = cache(folder.path());
    let layer = &image.layers()[0];
    let mut read = 0;
    let first = cache.layer(&image, layer, &[], &mut |bytes| read += bytes).unwrap();
    assert_eq!(fs::read(first.folder.join("a")).unwrap(), b"1");
    assert_eq!(read, image.stored_bytes(layer));
    let again = cache.layer(&image, layer, &[], &mut |_| ()).unwrap();
    assert_eq!((first.is_new, again.is_new), (true, false));
    let mode = fs::metadata(folder.path().join("cache")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn layers_may_be_compressed_by_zstd_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let content = tar(&[file("a", &[7; 100_000])]);
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let stored = ruzstd::encoding::compress_to_vec(&content[..], level);
    let other = tar(&[file("b", b"2")]);
    let builder = TestImageBuilder::new("{}").stored(content, stored).stored(other.clone(), other);
    let (image, cache) = (image(&builder, folder.path()), cache(folder.path()));
    let unpacked =
        image.layers().iter().map(|layer| cache.layer(&image, layer, &[], &mut |_| ()).unwrap());
    let unpacked: Vec<CachedImageLayer> = unpacked.collect();
    assert_eq!(fs::read(unpacked[0].folder.join("a")).unwrap(), [7; 100_000]);
    assert_eq!(fs::read(unpacked[1].folder.join("b")).unwrap(), b"2");
}

#[test]
fn a_layer_with_another_digest_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // Stored is another tar file than the one that the configuration names.
    let builder =
        TestImageBuilder::new("{}").stored(tar(&[file("a", b"1")]), tar(&[file("a", b"2")]));
    let (image, cache) = (image(&builder, folder.path()), cache(folder.path()));
    let error = cache.layer(&image, &image.layers()[0], &[], &mut |_| ()).unwrap_err();
    let expected = Sha256Digest::of(&tar(&[file("a", b"1")]));
    assert!(error.to_string().contains(&expected.to_string()), "{error}");
    assert_eq!(names(&cache), Vec::<String>::new());
}

#[test]
fn a_hostile_layer_is_named_with_its_entry_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let builder = TestImageBuilder::new("{}").layer(&[file("good", b"1"), file("../x", b"2")]);
    let (image, cache) = (image(&builder, folder.path()), cache(folder.path()));
    let error = cache.layer(&image, &image.layers()[0], &[], &mut |_| ()).unwrap_err();
    assert!(error.to_string().ends_with("`../x` leads out of its folder by `..`"), "{error}");
    assert_eq!(names(&cache), Vec::<String>::new());
}

#[test]
fn what_an_interrupted_process_left_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(&TestImageBuilder::new("{}").layer(&[file("a", b"1")]), folder.path());
    let cache = cache(folder.path());
    let partial = cache.folder().join(key(&image.layers()[0])).with_extension("partial");
    fs::create_dir_all(partial.join("half")).unwrap();
    assert!(!cache.has(&image.layers()[0]));
    let cached = cache.layer(&image, &image.layers()[0], &[], &mut |_| ()).unwrap();
    assert!(!cached.folder.join("half").exists() && !partial.exists());
}

#[test]
fn many_at_once_unpack_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let image =
        image(&TestImageBuilder::new("{}").layer(&[file("a", &[1; 300_000])]), folder.path());
    let (image, cache) = (&image, &cache(folder.path()));
    let layer = &image.layers()[0];
    let news = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(move || cache.layer(image, layer, &[], &mut |_| ()).unwrap().is_new)
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|is_new| *is_new).count()
    });
    assert_eq!(news, 1);
}

#[test]
fn a_layer_that_is_in_use_is_not_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let builder = TestImageBuilder::new("{}").layer(&[file("a", b"1")]).layer(&[file("b", b"2")]);
    let (image, cache) = (image(&builder, folder.path()), cache(folder.path()));
    let used = cache.layer(&image, &image.layers()[0], &[], &mut |_| ()).unwrap();
    drop(cache.layer(&image, &image.layers()[1], &[], &mut |_| ()).unwrap());
    assert_eq!(cache.layers().unwrap().len(), 2);
    let removed = cache.clear().unwrap();
    assert_eq!((removed.layers, removed.in_use), (1, 1));
    assert!(used.folder.join("a").exists() && !cache.has(&image.layers()[1]));
    drop(used);
    assert_eq!(cache.clear().unwrap().layers, 1);
    assert_eq!(names(&cache), Vec::<String>::new());
}

#[test]
fn a_layer_above_others_is_another_one_than_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let entries = [file("d/x", b"1")];
    let alone = TestImageBuilder::new("{}").layer(&entries);
    let mut private = crate::testing::other("d", tar::EntryType::Directory, "");
    private.mode = 0o700;
    let above = TestImageBuilder::new("{}").layer(&[private]).layer(&entries);
    let alone = Image::open(&alone.archive(&folder.path().join("alone.tar")), None, None).unwrap();
    let above = Image::open(&above.archive(&folder.path().join("above.tar")), None, None).unwrap();
    let cache = cache(folder.path());
    let mode = |cached: &CachedImageLayer| {
        fs::metadata(cached.folder.join("d")).unwrap().permissions().mode() & 0o7777
    };
    let first = cache.layer(&alone, &alone.layers()[0], &[], &mut |_| ()).unwrap();
    let lower = cache.layer(&above, &above.layers()[0], &[], &mut |_| ()).unwrap();
    let below = [lower.folder.clone()];
    let second = cache.layer(&above, &above.layers()[1], &below, &mut |_| ()).unwrap();
    assert_eq!(alone.layers()[0].id, above.layers()[1].id, "the same content");
    assert_eq!((mode(&first), mode(&second)), (0o755, 0o700));
}
