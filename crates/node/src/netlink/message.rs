//! A message to the kernel as bytes: a header, the header of its family, attributes. Source:
//! netlink(7), rtnetlink(7).

/// A request without the netlink header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RtnetlinkMessage {
    /// `RTM_…`.
    kind: u16,
    body: Vec<u8>,
}

impl RtnetlinkMessage {
    /// A message of this kind with its family's header and no attributes.
    pub(crate) fn new(kind: u16, family_header: &[u8]) -> Self {
        let mut message = RtnetlinkMessage { kind, body: Vec::new() };
        message.append(family_header);
        message
    }

    /// Adds an attribute.
    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let start = self.body.len();
        self.body.extend([0; ATTRIBUTE_HEADER]);
        self.append(value);
        self.finish_attribute(start, kind, start + ATTRIBUTE_HEADER + value.len());
        self
    }

    /// Adds an attribute that is a number.
    pub(crate) fn number(self, kind: u16, value: u32) -> Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute that is a text.
    pub(crate) fn text(self, kind: u16, value: &str) -> Self {
        self.attribute(kind, &[value.as_bytes(), &[0]].concat())
    }

    /// Adds an attribute that begins with `header` and goes on with the attributes of `fill`.
    pub(crate) fn nested(
        mut self,
        kind: u16,
        header: &[u8],
        fill: impl FnOnce(RtnetlinkMessage) -> RtnetlinkMessage,
    ) -> Self {
        let start = self.body.len();
        self.body.extend([0; ATTRIBUTE_HEADER]);
        self.append(header);
        let mut filled = fill(self);
        filled.finish_attribute(start, kind, filled.body.len());
        filled
    }

    /// Appends the whole message to a batch.
    pub(crate) fn write(self, batch: &mut Vec<u8>, flags: u16, sequence: u32) {
        let length = u32::try_from(HEADER + self.body.len()).unwrap_or(u32::MAX);
        batch.extend(length.to_ne_bytes());
        batch.extend(self.kind.to_ne_bytes());
        batch.extend(flags.to_ne_bytes());
        batch.extend(sequence.to_ne_bytes());
        // The kernel fills in the port.
        batch.extend([0; 4]);
        batch.extend(self.body);
    }

    /// Appends bytes, and as many zeros as put what follows at a multiple of four.
    fn append(&mut self, bytes: &[u8]) {
        self.body.extend(bytes);
        self.body.resize(self.body.len().next_multiple_of(ALIGNMENT), 0);
    }

    /// Fills in the header of the attribute that starts at `start`.
    fn finish_attribute(&mut self, start: usize, kind: u16, end: usize) {
        // The longest holds a device with a name: far below 64 KiB.
        let length = u16::try_from(end - start).unwrap_or(u16::MAX);
        self.body[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.body[start + 2..start + ATTRIBUTE_HEADER].copy_from_slice(&kind.to_ne_bytes());
    }
}

/// Messages and attributes start at a multiple of so many bytes.
pub(super) const ALIGNMENT: usize = 4;
/// `nlmsghdr`: length, type, flags, sequence number, port.
pub(super) const HEADER: usize = 16;
/// `nlattr`: length, type.
pub(super) const ATTRIBUTE_HEADER: usize = 4;
