//! From where IPv4 addresses are seen, where NATs part the network into realms.

use alloc::vec::Vec;
use core::net::IpAddr;

use windtunnel_model::plan::{MiddleboxSide, Plan};
use windtunnel_model::realm::AddressRealms;
use windtunnel_model::{LinkId, RouterId, Subnet};

/// Which addresses routers have routes to.
#[derive(Debug)]
pub(super) struct AddressVisibility {
    realms: AddressRealms,
    /// By router: the realm from which it sends, if it has a link.
    routers: Vec<Option<u32>>,
    /// IPv4 addresses of interfaces, in order, and their realms.
    addresses: Vec<(u32, u32)>,
    /// Subnets of LANs, for addresses that no interface has.
    lans: Vec<(Subnet, u32)>,
}

impl AddressVisibility {
    /// `None` where nothing is translated.
    ///
    /// # Panics
    /// If the plan is not valid: a NAT is not the only way between its sides.
    pub(super) fn new(plan: &Plan) -> Option<AddressVisibility> {
        let realms =
            AddressRealms::of(plan).expect("a valid plan has its NATs between two realms")?;
        let nodes = plan.ports().map(|(_, it)| (it.v4, it.link));
        let routers = plan.routers.iter().flat_map(|it| &it.interfaces).map(|it| (it.v4, it.link));
        let addresses = nodes.chain(routers);
        let addresses =
            addresses.filter_map(|(v4, link)| Some((v4?.to_bits(), realms.of_link(link))));
        let mut addresses: Vec<(u32, u32)> = addresses.collect();
        addresses.sort_unstable();
        let lans = plan
            .lans
            .iter()
            .filter_map(|lan| Some((lan.v4?, realms.of_link(lan.attachments.first()?.link))));
        let routers = plan.routers.iter().enumerate().map(|(id, router)| {
            // A NAT sends to both of its sides, which are seen from its inside.
            let sides = plan.middlebox(RouterId::from_index(id)).map(|it| &it.sides);
            let inside =
                sides.and_then(|sides| sides.iter().position(|it| *it == MiddleboxSide::Inside));
            let interface = router.interfaces.get(inside.unwrap_or(0))?;
            Some(realms.of_link(interface.link))
        });
        Some(AddressVisibility {
            routers: routers.collect(),
            lans: lans.collect(),
            addresses,
            realms,
        })
    }

    #[inline]
    pub(super) fn seen_by_router(&self, router: RouterId, realm: u32) -> bool {
        let from = self.routers.get(router.index()).copied().flatten();
        from.is_none_or(|from| self.realms.reaches(from, realm))
    }

    pub(super) fn seen_by_link(&self, link: LinkId, address: IpAddr) -> bool {
        // What is in no realm is a service's, or nowhere.
        let from = self.realms.of_link(link);
        self.realm_of(address).is_none_or(|to| self.realms.reaches(from, to))
    }

    /// The realm of an address, if it is in one.
    pub(super) fn realm_of(&self, address: IpAddr) -> Option<u32> {
        let IpAddr::V4(v4) = address else { return None };
        let bits = v4.to_bits();
        if let Ok(at) = self.addresses.binary_search_by_key(&bits, |(known, _)| *known) {
            return Some(self.addresses[at].1);
        }
        self.lans.iter().find(|(lan, _)| lan.contains(address)).map(|(_, realm)| *realm)
    }
}
