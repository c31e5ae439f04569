//! The compiled BPF programs are those of the source.

#[test]
fn the_object_is_of_the_present_source() {
    let faults = xtask::bpf::stale(&xtask::root()).unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
