//! Leaving the machine's network: the first thing a run does.
//!
//! Stages of [`enter`], for which the process must have one thread only:
//!
//! 1. raise the limit of open descriptors: a run needs several per node;
//! 2. move into a new user namespace: an ordinary user is mapped to itself; root keeps every
//!    identity that it has, and goes on without a user namespace where that is denied; where nodes
//!    have programs that are root, an ordinary user's subordinate identities are mapped as well;
//! 3. move into a new network namespace, the *fabric*, where the host's ends of all links will be;
//! 4. switch IPv6 off there, so that the fabric itself never says a word.

mod fabric;
mod identity;
pub(crate) mod subordinate;

use std::io;

use windtunnel_image::{ImageOwnerMapping, SubordinateIdRange};
use windtunnel_model::{Plan, plan};
use windtunnel_sys::limits;
use windtunnel_sys::namespace::{self, IdMap, IdRange, NamespaceFlags, UserNamespaceTarget};
use windtunnel_sys::process::{self, UserIdentity};

use crate::hint;

/// How the process is cut off from the machine's network. Exists only after [`enter`].
#[derive(Debug, Clone)]
pub struct Namespaces {
    invoker: UserIdentity,
    /// The id maps of the user namespace between the run and the machine; `None` without one.
    identities: Option<IdMap>,
    open_files: Option<u64>,
    notes: Vec<String>,
}

/// Why the process could not leave the machine's network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnterError {
    #[error("cannot make a user namespace")]
    User(#[source] io::Error),
    /// The user namespace's maps.
    #[error("cannot map user {uid} into a user namespace")]
    Map { uid: u32, source: io::Error },
    #[error("cannot make a network namespace")]
    Network(#[source] io::Error),
    /// The fabric could not be silenced.
    #[error("cannot switch IPv6 off in the fabric ({path})")]
    Fabric { path: &'static str, source: io::Error },
}

impl EnterError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            EnterError::User(error) => Some(hint::user_namespace(error)),
            EnterError::Map { .. } => Some(hint::user_namespace_powerless()),
            EnterError::Network(error) => Some(hint::network_namespace(error)),
            EnterError::Fabric { .. } => Some(hint::PROC_SYS.into()),
        }
    }
}

impl Namespaces {
    /// The user that runs windtunnel, by the numbers of the machine's own user namespace.
    #[must_use]
    pub fn invoker(&self) -> UserIdentity {
        self.invoker
    }

    /// Whether there is a user namespace between the run and the machine.
    #[must_use]
    pub fn has_user_namespace(&self) -> bool {
        self.identities.is_some()
    }

    /// The id maps of the user namespace of a node's programs, where they have one of their own:
    /// root of a node must not be able to undo what the node's init has set up, so
    /// the init stays outside of it. An ordinary user's programs that are not root need none:
    /// they have no rights to undo anything.
    ///
    /// `account` is the user that programs are to be. Without other identities to become, it is what the
    /// only one there is called.
    pub(crate) fn identities_inside(
        &self,
        node: &plan::Node,
        account: Option<UserIdentity>,
    ) -> Option<IdMap> {
        let outside = self.identities.as_ref()?;
        // The kernel counts processes in each user namespace by itself.
        let counted = node.user == plan::ProgramUser::Invoker && node.demand.pids.is_some();
        if self.invoker.uid == 0 || counted {
            return Some(identity::same(outside));
        }
        if let Some(account) = account.filter(|_| !self.has_other_users()) {
            let only = |inside, outside| vec![IdRange { inside, outside, count: 1 }];
            let users = only(account.uid, self.invoker.uid);
            return Some(IdMap { users, groups: only(account.gid, self.invoker.gid) });
        }
        // The invoker comes first and is root, its subordinate identities follow.
        let root = |ranges: &[IdRange]| {
            let mut next = 0;
            let range = |range: &IdRange| {
                let inside = next;
                next += range.count;
                IdRange { inside, outside: range.inside, count: range.count }
            };
            ranges.iter().map(range).collect()
        };
        let maps = IdMap { users: root(&outside.users), groups: root(&outside.groups) };
        (node.user != plan::ProgramUser::Invoker).then_some(maps)
    }

    /// Whether programs can become other users than the one that they are started as.
    #[must_use]
    pub fn has_other_users(&self) -> bool {
        self.invoker.uid == 0 || self.identities.as_ref().is_some_and(|maps| maps.users.len() > 1)
    }

    /// The owners that files of nodes can have.
    #[must_use]
    pub fn owners(&self) -> ImageOwnerMapping {
        if self.invoker.uid == 0 {
            return ImageOwnerMapping::Same;
        }
        let other = |ranges: &[IdRange]| {
            ranges
                .get(1)
                .map(|range| SubordinateIdRange { first: range.inside, count: range.count })
        };
        let maps = self.identities.as_ref();
        match maps.and_then(|maps| Some((other(&maps.users)?, other(&maps.groups)?))) {
            Some((users, groups)) => ImageOwnerMapping::Subordinate {
                own: (self.invoker.uid, self.invoker.gid),
                users,
                groups,
            },
            None => ImageOwnerMapping::One,
        }
    }

    /// How many descriptors the process may have open; `None`: no limit.
    #[must_use]
    pub fn open_files(&self) -> Option<u64> {
        self.open_files
    }

    /// What is not as it could be, a sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Leaves the machine's network for good, for this process and its children.
///
/// # Errors
/// The stage that failed; [`EnterError::hint`] says what to do about it. The process may be
/// half-way in then and should end.
pub fn enter() -> Result<Namespaces, EnterError> {
    leave(false)
}

/// [`enter`] for the nodes of a plan.
///
/// # Errors
/// As of [`enter`].
pub fn enter_for(plan: &Plan) -> Result<Namespaces, EnterError> {
    leave(plan.nodes.iter().any(|node| node.user == plan::ProgramUser::Root || node.root.is_some()))
}

/// [`enter`] for work on the files of nodes, in which they can have the owners that nodes give them.
///
/// # Errors
/// As of [`enter`].
pub fn enter_for_files() -> Result<Namespaces, EnterError> {
    leave(true)
}

/// `with_root`: programs of nodes may be root, and would like to know other users.
fn leave(with_root: bool) -> Result<Namespaces, EnterError> {
    let mut notes = Vec::new();
    let open_files = raise_open_files(&mut notes);
    let invoker = process::current_user();
    let identities = if invoker.uid == 0 {
        enter_as_root(&mut notes)?
    } else {
        Some(enter_as_user(invoker, with_root)?)
    };
    namespace::unshare(NamespaceFlags::NET).map_err(EnterError::Network)?;
    fabric::settle()?;
    Ok(Namespaces { invoker, identities, open_files, notes })
}

fn raise_open_files(notes: &mut Vec<String>) -> Option<u64> {
    match limits::raise_open_files() {
        Ok(limit) => limit.soft,
        Err(error) => {
            notes.push(format!("the limit of open descriptors could not be raised: {error}"));
            limits::open_files().soft
        }
    }
}

/// An ordinary user may map itself only, and must give up setgroups(2) for its group
/// (user_namespaces(7)).
fn enter_as_user(invoker: UserIdentity, with_root: bool) -> Result<IdMap, EnterError> {
    match subordinate::identities(invoker).filter(|_| with_root) {
        Some(maps) => match identity::unshare_user(&maps, subordinate::write) {
            Ok(()) => return Ok(maps),
            Err(identity::IdentityError::Denied(error)) => return Err(EnterError::User(error)),
            // Without the programs that map them: as if there were none.
            Err(identity::IdentityError::Unmapped(_)) => {}
        },
        None => namespace::unshare(NamespaceFlags::USER).map_err(EnterError::User)?,
    }
    let same = |id| vec![IdRange { inside: id, outside: id, count: 1 }];
    let maps = IdMap { users: same(invoker.uid), groups: same(invoker.gid) };
    namespace::write_id_maps(UserNamespaceTarget::Current, &maps, true)
        .map_err(|source| EnterError::Map { uid: invoker.uid, source })?;
    Ok(maps)
}

/// Root goes without a user namespace rather than not at all.
fn enter_as_root(notes: &mut Vec<String>) -> Result<Option<IdMap>, EnterError> {
    let unshared = namespace::current_id_map().map(|maps| identity::same(&maps));
    let unshared = unshared.map_err(identity::IdentityError::Denied).and_then(|maps| {
        let write = |process, maps: &IdMap| {
            namespace::write_id_maps(UserNamespaceTarget::Process(process), maps, false)
        };
        identity::unshare_user(&maps, write).map(|()| maps)
    });
    match unshared {
        Ok(maps) => Ok(Some(maps)),
        Err(identity::IdentityError::Denied(error)) => {
            notes.push(format!(
                "user namespaces are denied ({error}): running as the machine's root"
            ));
            Ok(None)
        }
        Err(identity::IdentityError::Unmapped(source)) => Err(EnterError::Map { uid: 0, source }),
    }
}
