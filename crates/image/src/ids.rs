//! Which owners unpacked files can have.

/// A run of identities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubordinateIdRange {
    pub first: u32,
    pub count: u32,
}

/// How the owners of an image's files are called where they are unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageOwnerMapping {
    /// As the image calls them: the machine's root unpacks.
    Same,
    /// Root is the user that unpacks; the others are subordinate identities, in order.
    Subordinate { own: (u32, u32), users: SubordinateIdRange, groups: SubordinateIdRange },
    /// All are the user that unpacks.
    One,
}

impl ImageOwnerMapping {
    /// What the owner `uid:gid` of the image is called; `None`: the user that unpacks.
    #[must_use]
    pub fn owner(&self, uid: u64, gid: u64) -> Option<(u32, u32)> {
        let of = |own: u32, range: SubordinateIdRange, id: u64| match u32::try_from(id).ok()? {
            0 => Some(own),
            id if id <= range.count => Some(range.first + (id - 1)),
            _ => None,
        };
        match *self {
            ImageOwnerMapping::Same => Some((u32::try_from(uid).ok()?, u32::try_from(gid).ok()?)),
            ImageOwnerMapping::Subordinate { own, users, groups } => {
                Some((of(own.0, users, uid)?, of(own.1, groups, gid)?))
            }
            ImageOwnerMapping::One => None,
        }
    }

    /// Names a part of the cache: the same layer has other owners there. The number is of the way in which
    /// layers are unpacked: those of another version are not taken.
    pub(crate) fn key(&self) -> String {
        format!("2-{}", self.owners())
    }

    fn owners(&self) -> String {
        match self {
            ImageOwnerMapping::Same => "same".into(),
            ImageOwnerMapping::Subordinate { own, users, groups } => format!(
                "sub-{}-{}-{}-{}-{}-{}",
                own.0, own.1, users.first, users.count, groups.first, groups.count
            ),
            ImageOwnerMapping::One => "one".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_the_user_itself_and_the_first_of_the_others_is_1() {
        let range = |first| SubordinateIdRange { first, count: 10 };
        let ids = ImageOwnerMapping::Subordinate {
            own: (1000, 100),
            users: range(500),
            groups: range(700),
        };
        assert_eq!(ids.owner(0, 0), Some((1000, 100)));
        assert_eq!(ids.owner(1, 10), Some((500, 709)));
        assert_eq!(ids.owner(11, 0), None, "beyond the range");
        assert_eq!(ImageOwnerMapping::Same.owner(33, 33), Some((33, 33)));
        assert_eq!(ImageOwnerMapping::One.owner(33, 33), None);
    }
}
