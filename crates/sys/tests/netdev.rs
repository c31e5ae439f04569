//! Names and indices of network devices; every network namespace has `lo`.

use windtunnel_sys::netdev;

#[test]
fn the_loopback_device_has_an_index_and_the_index_its_name() {
    let index = netdev::index_of("lo").unwrap();
    assert_eq!(netdev::name_of(index).unwrap(), "lo");
}

#[test]
fn an_unknown_device_is_an_error() {
    assert_eq!(netdev::index_of("nothere0").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    assert_eq!(netdev::name_of(1 << 30).unwrap_err().raw_os_error(), Some(libc::ENODEV));
}
