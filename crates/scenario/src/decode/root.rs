//! A file system of a node's own: a folder or an image, and what is mounted in it.

use windtunnel_model::plan::{
    ImageLocation, NodeFilesystem, ProgramUser, RootSource, Volume, VolumeSource,
};

use super::account::AccountDraft;
use super::platform::WrittenPlatform;
use crate::grammar::{Decoder, Fields, NameListForm, YamlMapEntry, form, map, texts};
use crate::position::{LocatedValue, SourceLocation};
use crate::text::shorten;

/// What a node says of its files; paths are as they are written.
#[derive(Debug, Clone, Default)]
pub(crate) struct RootKeys {
    pub(crate) source: Option<LocatedValue<RootSource>>,
    /// Where its platform is written.
    pub(crate) platform: Option<SourceLocation>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) keep: bool,
    /// The user of these files that programs are.
    pub(crate) account: Option<String>,
}

map! {
    /// What nodes say of their files.
    RootTable {
        /// A folder whose files the node has as its own, instead of the machine's. What it writes
        /// there is its own, and gone at the end; the folder stays as it is. A relative path starts
        /// at the file's folder.
        "root" ROOT: String,
        /// An image of OCI or Docker whose files the node has as its own: a folder (an OCI layout),
        /// or a tar file of one, or of `docker save` or `podman save`; `FILE#NAME` is one of several
        /// in a file. Or one in a registry, `oci://HOST/NAME:TAG` or `oci://HOST/NAME@sha256:DIGEST`,
        /// which is fetched once. Without `run`, the node runs the image's own command. A relative
        /// path starts at the file's folder.
        "image" IMAGE: String,
        /// Which platform of the image: `linux/arm64`, `linux/arm/v7`; default the machine's own. Programs
        /// that the machine's processor cannot execute need an emulator that its kernel knows.
        "platform" PLATFORM: WrittenPlatform,
        /// Words for the entry point of the image, in place of the image's own.
        "args" ARGS: Args,
        /// Files from outside that a node with `root` or `image` has: `SOURCE:/TARGET`, with `:ro`
        /// behind it where the node must not write. A source with a `/` is a file or folder of the
        /// machine; one without is the name of a folder of the run, which all nodes that name it
        /// share, and which is gone at the end.
        "volumes" VOLUMES: Volumes,
        /// Whether what the node writes into its own files stays in the run folder; default false.
        "keep-files" KEEP: bool,
    }
}

/// Reads the keys of a node.
pub(super) fn read_root(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
    account: Option<&AccountDraft>,
) -> Option<RootKeys> {
    let (folder, image) = (fields.get(RootTable::ROOT), fields.get(RootTable::IMAGE));
    let args = from.read(fields, RootTable::ARGS).flatten();
    let platform = from.read(fields, RootTable::PLATFORM).flatten();
    let platform_place = fields.get(RootTable::PLATFORM).map(|field| field.place);
    let volumes = from.read(fields, RootTable::VOLUMES).flatten().unwrap_or_default();
    let keep = from.read(fields, RootTable::KEEP).flatten().unwrap_or(false);
    let source = match (folder, image) {
        (Some(_), Some(image)) => {
            from.mistake(image.place, "a node has one of `root` and `image`");
            return None;
        }
        (Some(folder), None) => Some((folder, read_folder(from, folder)?)),
        (None, Some(image)) => Some((image, read_image(from, image, args)?)),
        (None, None) => None,
    };
    let source = source.map(|(field, mut value)| {
        if let RootSource::Image { platform: of_image, .. } = &mut value {
            *of_image = platform;
        }
        LocatedValue { value, place: field.place }
    });
    refuse_useless(from, fields, source.as_ref(), account);
    let account = match account {
        Some(AccountDraft::Written(text)) => Some(text.clone()),
        _ => None,
    };
    Some(RootKeys { source, platform: platform_place, volumes, keep, account })
}

/// Keys that mean nothing without others, or with them.
fn refuse_useless(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
    source: Option<&LocatedValue<RootSource>>,
    account: Option<&AccountDraft>,
) {
    if let (None, Some(AccountDraft::Written(user)), Some(field)) =
        (source, account, fields.find("user"))
    {
        let message = format!("user: `{}` is not `invoker` or `root`", shorten(user));
        let hint = "other users are those of a node's own files: `image` or `root`";
        from.mistake_with_hint(field.wrong(), message, hint);
    }
    let is_image = source.is_some_and(|it| matches!(it.value, RootSource::Image { .. }));
    let mut refuse = |key: &str, message: &str| {
        if let Some(field) = fields.find(key) {
            from.mistake(field.place, message);
        }
    };
    if !is_image {
        refuse("args", "`args` are for the entry point of an `image`, which this node has not");
        refuse("platform", "`platform` is that of an `image`, which this node has not");
    }
    if matches!(account, Some(AccountDraft::User(ProgramUser::Image))) && !is_image {
        refuse("user", "user: `image` is the user of an `image`, which this node has not");
    }
    if source.is_none() {
        refuse("volumes", "`volumes` need `root` or `image`: this node has the machine's files");
        refuse(
            "keep-files",
            "`keep-files` needs `root` or `image`: this node has the machine's files",
        );
    } else {
        refuse(
            "results",
            "`results` needs the run folder, which a node with `root` or `image` does not see: \
             write `keep-files`, or `volumes`",
        );
        refuse("replay", "`replay` needs the machine's files: leave `root` and `image` out");
    }
}

/// Whether the node runs an image's own command where it says nothing else.
pub(super) fn image_place(fields: &Fields<'_>) -> Option<SourceLocation> {
    fields.get(RootTable::IMAGE).map(|image| image.value.place)
}

fn read_folder(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<RootSource> {
    let path = from.text(field, "the path of a folder")?;
    if path.is_empty() {
        from.mistake(field.wrong(), "root: the path is empty");
        return None;
    }
    Some(RootSource::Folder(path.to_owned()))
}

fn read_image(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    args: Option<Vec<String>>,
) -> Option<RootSource> {
    let text = from.text(field, "the path of an image")?;
    if let Some((kind, reference)) = text.split_once("://") {
        return read_reference(from, field, kind, reference, args);
    }
    let (path, name) = match text.rsplit_once('#') {
        Some((path, name)) => (path, Some(name.to_owned())),
        None => (text, None),
    };
    if path.is_empty() || name.as_deref() == Some("") {
        from.mistake(field.wrong(), "image: write the path of a file or folder, or `FILE#NAME`");
        return None;
    }
    let location = ImageLocation::Path(path.to_owned());
    Some(RootSource::Image { location, name, platform: None, digest: None, args })
}

/// `oci://` and what names an image in a registry.
fn read_reference(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    kind: &str,
    reference: &str,
    args: Option<Vec<String>>,
) -> Option<RootSource> {
    let is_name = !reference.is_empty()
        && reference.len() <= REFERENCE_BYTES_MAX
        && reference.bytes().all(|byte| byte.is_ascii_graphic());
    let hint = match kind {
        "oci" if is_name => {
            let location = ImageLocation::Registry(reference.to_owned());
            let (name, platform, digest) = (None, None, None);
            return Some(RootSource::Image { location, name, platform, digest, args });
        }
        "docker" if is_name => format!("write `oci://{reference}`"),
        _ => "write `oci://HOST/NAME:TAG`, or the path of a file or folder".to_owned(),
    };
    let shown = shorten(&format!("{kind}://{reference}"));
    let message = format!("image: `{shown}` is neither a path nor a reference");
    from.mistake_with_hint(field.wrong(), message, hint);
    None
}

/// A name has 255 at the most, a tag 128, a digest 71.
const REFERENCE_BYTES_MAX: usize = 500;

form! {
    /// Words of a command line.
    Args: Vec<String>, by read_args, like texts
}

fn read_args(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<String>> {
    let items = from.list(field, "a list of words")?;
    items.map(|item| from.text(item, "a word").map(str::to_owned)).collect()
}

form! {
    /// Files from outside of a node's own.
    Volumes: Vec<Volume>, by read_volumes, like NameListForm::schema
}

fn read_volumes(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<Volume>> {
    let texts =
        from.names(field, "a list of volumes, each `SOURCE:/TARGET` or `SOURCE:/TARGET:ro`")?;
    texts.iter().map(|text| read_volume(from, text)).collect()
}

fn read_volume(from: &mut Decoder<'_>, text: &LocatedValue<String>) -> Option<Volume> {
    let read = volume(&text.value);
    if let Err(why) = &read {
        let message = format!("volumes: `{}` {why}", shorten(&text.value));
        let hint = "write `./config:/etc/app:ro`, or `data:/var/lib/app` for a folder of the run";
        from.mistake_with_hint(text.place, message, hint);
    }
    read.ok()
}

/// `SOURCE:/TARGET[:ro|:rw]`.
fn volume(text: &str) -> Result<Volume, &'static str> {
    let (rest, read_only) = match text.rsplit_once(':') {
        Some((rest, "ro")) => (rest, true),
        Some((rest, "rw")) => (rest, false),
        _ => (text, false),
    };
    let (source, target) = rest.rsplit_once(':').ok_or("has no `:` between source and target")?;
    if !NodeFilesystem::is_target(target) {
        return Err("has a target that is not an absolute path below the root");
    }
    let source = if source.contains('/') || source.starts_with('.') {
        VolumeSource::Path(source.to_owned())
    } else if NodeFilesystem::is_volume_name(source) {
        VolumeSource::Named(source.to_owned())
    } else {
        return Err("has a source that is neither a path nor a name");
    };
    Ok(Volume { source, target: target.to_owned(), read_only })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_a_source_a_target_and_whether_it_may_be_written() {
        let path = |path: &str| VolumeSource::Path(path.to_owned());
        let cases = [
            ("./conf:/etc/app:ro", path("./conf"), "/etc/app", true),
            ("/data:/x:rw", path("/data"), "/x", false),
            (".:/src", path("."), "/src", false),
            ("data:/var/lib/x", VolumeSource::Named("data".into()), "/var/lib/x", false),
        ];
        for (text, source, target, read_only) in cases {
            let expected = Volume { source, target: target.into(), read_only };
            assert_eq!(volume(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_volume_that_leads_nowhere_or_upwards_is_refused() {
        for text in ["data", "data:var", "data:/", "data:/a/../b", ":/a", "a b:/a", "data:/a:xx"] {
            assert!(volume(text).is_err(), "{text}");
        }
    }
}
