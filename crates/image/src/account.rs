//! Users of an image, by the names and numbers of its own files. Source: passwd(5), group(5), OCI Image
//! Specification, config.md, "User".

/// A user of an image, by the image's numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageUserAccount {
    pub uid: u32,
    pub gid: u32,
    /// Other groups that its files put the user into, where none is asked for with it.
    pub groups: Vec<u32>,
    /// The home that its files name.
    pub home: Option<String>,
}

/// Why a user cannot be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    #[error("the image has no user `{0}` in its /etc/passwd")]
    User(String),
    #[error("the image has no group `{0}` in its /etc/group")]
    Group(String),
}

impl ImageUserAccount {
    /// The user that `text` names (`user`, `uid`, `user:group` …), by the texts of `/etc/passwd` and
    /// `/etc/group`.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn find(text: &str, passwd: &str, group: &str) -> Result<ImageUserAccount, AccountError> {
        let (user, wanted) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let user = if user.is_empty() { "0" } else { user };
        let line = passwd
            .lines()
            .map(fields)
            .find(|fields| fields.len() >= 6 && (fields[0] == user || fields[2] == user));
        let number = |text: &str| text.parse::<u32>().ok().filter(|id| *id != u32::MAX);
        let missing = || AccountError::User(user.to_owned());
        let uid = match &line {
            Some(fields) => number(fields[2]),
            None => number(user),
        };
        let uid = uid.ok_or_else(missing)?;
        let usual = line.as_ref().and_then(|fields| number(fields[3])).unwrap_or(0);
        let gid = wanted.map_or(Ok(usual), |wanted| group_of(wanted, group))?;
        // As container engines have it: a number that no line has is in no other group.
        let groups = match (&line, wanted) {
            (Some(fields), None) => groups_with(fields[0], group),
            _ => Vec::new(),
        };
        let home = line.map(|fields| fields[5].to_owned()).filter(|home| home.starts_with('/'));
        Ok(ImageUserAccount { uid, gid, groups, home })
    }
}

fn group_of(wanted: &str, table: &str) -> Result<u32, AccountError> {
    let line = table.lines().map(fields).find(|fields| fields.len() >= 3 && fields[0] == wanted);
    let id = line.as_ref().map_or(wanted, |fields| fields[2]);
    id.parse().map_err(|_| AccountError::Group(wanted.to_owned()))
}

/// The groups that list a user as a member.
fn groups_with(user: &str, table: &str) -> Vec<u32> {
    let is_member = |fields: &Vec<&str>| {
        fields.get(3).is_some_and(|members| members.split(',').any(|member| member.trim() == user))
    };
    let lines = table.lines().map(fields).filter(is_member);
    let mut found: Vec<u32> = Vec::new();
    for id in lines.filter_map(|fields| fields[2].parse().ok()) {
        if !found.contains(&id) && found.len() < GROUPS_MAX {
            found.push(id);
        }
    }
    found
}

/// `NGROUPS_MAX`, limits(5).
const GROUPS_MAX: usize = 65_536;

fn fields(line: &str) -> Vec<&str> {
    line.split(':').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nredis:x:999:1000::/data:/bin/false\nodd\n";
    const GROUP: &str = "root:x:0:\nweb:x:33:\n";

    fn found(text: &str) -> Result<(u32, u32, Option<String>), AccountError> {
        let account = ImageUserAccount::find(text, PASSWD, GROUP)?;
        Ok((account.uid, account.gid, account.home))
    }

    #[test]
    fn users_are_found_by_name_or_number_with_their_group_or_another() {
        let data = Some("/data".to_owned());
        assert_eq!(found("redis"), Ok((999, 1000, data.clone())));
        assert_eq!(found("999"), Ok((999, 1000, data.clone())));
        assert_eq!(found("redis:web"), Ok((999, 33, data.clone())));
        assert_eq!(found("redis:7"), Ok((999, 7, data)));
        assert_eq!(found("1234"), Ok((1234, 0, None)));
        assert_eq!(found(""), Ok((0, 0, Some("/root".into()))));
    }

    #[test]
    fn supplementary_groups_are_those_that_list_the_user_unless_a_group_is_asked_for() {
        let table = "root:x:0:\nadm:x:4:root,redis\ntty:x:5:redisx\nwheel:x:10:root\ncd:x:24:redis\n\
                     again:x:24:redis\n";
        let groups = |text| ImageUserAccount::find(text, PASSWD, table).unwrap().groups;
        assert_eq!(groups("redis"), [4, 24]);
        assert_eq!(groups("999"), [4, 24], "by its number, too");
        assert_eq!(groups("root"), [4, 10]);
        assert_eq!(groups(""), [4, 10]);
        assert_eq!(groups("redis:adm"), [0; 0]);
        assert_eq!(groups("1234"), [0; 0]);
    }

    #[test]
    fn a_name_that_the_image_does_not_know_is_named() {
        assert_eq!(found("eve"), Err(AccountError::User("eve".into())));
        assert_eq!(found("redis:eve"), Err(AccountError::Group("eve".into())));
        assert_eq!(found("4294967295"), Err(AccountError::User("4294967295".into())));
    }
}
