//! Which users may connect to a run, beyond the permissions of the socket's file, which only its
//! owner and the machine's root may open.

use std::fs;
use std::io;

#[derive(Debug)]
pub(crate) struct UserAdmission {
    own: u32,
    /// What the machine's other users are called here if none of them has a number of its own
    /// here.
    unmapped: Option<u32>,
}

impl UserAdmission {
    /// In the user namespace of the calling process.
    pub(crate) fn here() -> io::Result<Self> {
        let overflow = fs::read_to_string(OVERFLOW_UID).ok();
        let overflow: Option<u32> = overflow.and_then(|text| text.trim().parse().ok());
        let overflow = overflow.unwrap_or(OVERFLOW_UID_DEFAULT);
        let users = windtunnel_sys::namespace::current_id_map()?.users;
        let is_user = users.iter().any(|range| overflow.wrapping_sub(range.inside) < range.count);
        let own = windtunnel_sys::process::current_user().uid;
        Ok(UserAdmission { own, unmapped: (!is_user).then_some(overflow) })
    }

    /// The machine's root has no number of its own in the user namespace of an ordinary user's run.
    pub(crate) fn allows(&self, uid: u32) -> bool {
        uid == self.own || uid == 0 || self.unmapped == Some(uid)
    }
}

/// What users without a number are called (user_namespaces(7)).
const OVERFLOW_UID: &str = "/proc/sys/kernel/overflowuid";
const OVERFLOW_UID_DEFAULT: u32 = 65_534;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_without_a_number_are_admitted_only_where_it_is_unambiguous() {
        // A run of user 1000 in a namespace of one user: root comes as 65534.
        let alone = UserAdmission { own: 1000, unmapped: Some(65_534) };
        assert!(alone.allows(1000) && alone.allows(65_534) && !alone.allows(1001));
        // Root's run: 65534 is a user of the machine.
        let all = UserAdmission { own: 0, unmapped: None };
        assert!(all.allows(0) && !all.allows(65_534));
    }
}
