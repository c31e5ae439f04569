use windtunnel_model::plan::ARCHITECTURES;

use super::*;

/// As the kernel shows what Debian's qemu-user-static registers.
const ARM64: &str = "enabled
interpreter /usr/libexec/qemu-binfmt/aarch64-binfmt-P
flags: POF
offset 0
magic 7f454c460201010000000000000000000200b700
mask ffffffffffffff00fffffffffffffffffeffffff
";

fn platform(text: &str) -> Platform {
    text.parse().unwrap()
}

fn verdict(text: &str, emulators: &[&str]) -> Result<(), NotExecutable> {
    let emulators: Vec<_> = emulators.iter().filter_map(|text| Emulator::read(text)).collect();
    judge(&platform(text), &emulators)
}

fn none(text: &str) -> Result<(), NotExecutable> {
    Err(NotExecutable::NoEmulator { platform: platform(text), is_mounted: true })
}

#[test]
fn an_emulator_takes_the_programs_that_its_magic_and_mask_say() {
    assert_eq!(verdict("linux/arm64", &[ARM64]), Ok(()));
    for other in ARCHITECTURES.iter().filter(|it| **it != "arm64") {
        let text = format!("linux/{other}");
        assert_eq!(verdict(&text, &[ARM64]), none(&text));
    }
    assert_eq!(verdict("linux/arm64", &[]), none("linux/arm64"));
}

#[test]
fn every_architecture_that_images_have_begins_in_a_way_of_its_own() {
    let all: Vec<_> = ARCHITECTURES.iter().map(|it| headers(it).unwrap()).collect();
    for (number, one) in all.iter().enumerate() {
        assert!(all[number + 1..].iter().all(|other| other != one));
    }
}

#[test]
fn an_emulator_without_the_flag_f_is_not_found_in_the_files_of_a_node() {
    let loose = ARM64.replace("flags: POF", "flags: OC");
    let interpreter = "/usr/libexec/qemu-binfmt/aarch64-binfmt-P".to_owned();
    let error = NotExecutable::NotFixed { platform: platform("linux/arm64"), interpreter };
    assert_eq!(verdict("linux/arm64", &[&loose]), Err(error));
    assert_eq!(verdict("linux/arm64", &[&loose, ARM64]), Ok(()));
    let without = ARM64.replace("flags: POF\n", "flags: \n");
    assert!(matches!(verdict("linux/arm64", &[&without]), Err(NotExecutable::NotFixed { .. })));
}

#[test]
fn an_entry_that_is_off_or_goes_by_names_of_files_is_no_emulator() {
    let off = ARM64.replace("enabled", "disabled");
    let by_name = "enabled\ninterpreter /bin/x\nflags: F\nextension .elf\n";
    let odd = ARM64.replace("magic 7f", "magic zz");
    let exact = ARM64.replace("mask ffffffffffffff00fffffffffffffffffeffffff\n", "");
    for text in [&off, by_name, &odd, "", "enabled\n"] {
        assert_eq!(verdict("linux/arm64", &[text]), none("linux/arm64"), "{text}");
    }
    // Without a mask it takes programs at fixed positions alone.
    assert_eq!(verdict("linux/arm64", &[&exact]), none("linux/arm64"));
}

#[test]
fn the_machine_executes_its_own_programs_and_says_what_is_missing_for_others() {
    assert_eq!(check(&Platform::of_machine(std::env::consts::ARCH)), Ok(()));
    let error = NotExecutable::NoEmulator { platform: platform("linux/mips"), is_mounted: false };
    assert!(error.hint().contains("mount -t binfmt_misc"), "{}", error.hint());
    assert!(error.to_string().ends_with("for linux/mips"));
}

#[test]
fn emulators_are_read_from_the_folder_of_the_kernel_unless_all_are_off() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    assert_eq!(registered(folder.path()), []);
    write("status", "enabled\n");
    write("qemu-aarch64", ARM64);
    write("register", "");
    assert_eq!(registered(folder.path()).len(), 1);
    write("status", "disabled\n");
    assert_eq!(registered(folder.path()), []);
}
