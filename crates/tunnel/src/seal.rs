//! Keys and seals. Every datagram is sealed with AES-128-GCM (NIST SP 800-38D) under a
//! key that only one direction of one pair of members uses, for one series and for [`EPOCH`]
//! datagrams of it.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use windtunnel_wire::tunnel::{HEADER_LEN, TAG_LEN, TunnelDatagramKind};

/// Datagrams under one key: 2²², below the 2²³ that RFC 9001 (section 6.6, appendix B.1) allows
/// with AES-GCM for packets of up to 64 KiB.
const EPOCH: u64 = 1 << 22;
const KEY_LEN: usize = 16;
const NONCE_LEN: usize = 12;
const LABEL: &[u8] = b"windtunnel tunnel 1";

/// The secret that all members of a run share.
#[derive(Clone)]
pub(crate) struct Secret {
    prk: Prk,
    run: u64,
}

impl Secret {
    pub(crate) fn new(key: &[u8; 32], run: u64) -> Self {
        Secret { prk: Salt::new(HKDF_SHA256, LABEL).extract(key), run }
    }
}

/// The two series of datagrams of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatagramSeries {
    /// Frames: missing numbers are counted as lost.
    Data,
    /// Probes and their answers, some of which are sent to find out that they do not arrive.
    Control,
}

impl DatagramSeries {
    pub(crate) fn of(kind: TunnelDatagramKind) -> Self {
        match kind {
            TunnelDatagramKind::Data => DatagramSeries::Data,
            TunnelDatagramKind::Probe | TunnelDatagramKind::Ack => DatagramSeries::Control,
        }
    }
}

/// The keys of one series in one direction, made as its numbers ask for them.
pub(crate) struct EpochKeyring {
    secret: Secret,
    from: u16,
    to: u16,
    series: DatagramSeries,
    /// The key in use.
    current: Option<EpochKey>,
    /// One of another epoch, for datagrams that come late or early, or are forged.
    other: Option<EpochKey>,
}

struct EpochKey {
    epoch: u64,
    key: LessSafeKey,
    /// Added to the number, as in TLS 1.3 (RFC 8446, 5.3).
    mask: [u8; NONCE_LEN],
}

/// The seal was broken, or is not of this key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SealVerificationError;

impl EpochKeyring {
    pub(crate) fn new(secret: &Secret, from: u16, to: u16, series: DatagramSeries) -> Self {
        EpochKeyring { secret: secret.clone(), from, to, series, current: None, other: None }
    }

    /// Seals a datagram in place: `header`, the payload, and room for the tag.
    ///
    /// The caller never uses a number twice.
    pub(crate) fn seal(&mut self, number: u64, datagram: &mut [u8]) {
        let epoch = number / EPOCH;
        if self.current.as_ref().is_none_or(|key| key.epoch != epoch) {
            self.current = Some(self.derive(epoch));
        }
        let key = self.current.as_ref().expect("made above");
        let (header, rest) = datagram.split_at_mut(HEADER_LEN);
        let (payload, room) = rest.split_at_mut(rest.len() - TAG_LEN);
        let tag = key
            .key
            .seal_in_place_separate_tag(key.nonce(number), Aad::from(&*header), payload)
            .expect("only payloads of 64 GiB cannot be sealed");
        room.copy_from_slice(tag.as_ref());
    }

    /// Opens a datagram in place and returns its payload.
    ///
    /// # Errors
    /// If it was not sealed by this sender for this receiver.
    pub(crate) fn open<'a>(
        &mut self,
        number: u64,
        datagram: &'a mut [u8],
    ) -> Result<&'a mut [u8], SealVerificationError> {
        let epoch = number / EPOCH;
        let is = |key: &Option<EpochKey>| key.as_ref().is_some_and(|key| key.epoch == epoch);
        let in_use = is(&self.current);
        if !in_use && !is(&self.other) {
            self.other = Some(self.derive(epoch));
        }
        let key = if in_use { self.current.as_ref() } else { self.other.as_ref() };
        let key = key.expect("found or made above");
        let (header, rest) = datagram.split_at_mut(HEADER_LEN);
        let at = rest.len().checked_sub(TAG_LEN).ok_or(SealVerificationError)?;
        let (payload, tag) = rest.split_at_mut(at);
        let tag = Tag::try_from(&*tag).map_err(|_| SealVerificationError)?;
        key.key
            .open_in_place_separate_tag(key.nonce(number), Aad::from(&*header), tag, payload, 0..)
            .map_err(|_| SealVerificationError)?;
        let newer = self.current.as_ref().is_none_or(|key| key.epoch < epoch);
        if !in_use && newer {
            std::mem::swap(&mut self.current, &mut self.other);
        }
        Ok(payload)
    }

    fn derive(&self, epoch: u64) -> EpochKey {
        let series = match self.series {
            DatagramSeries::Data => [0],
            DatagramSeries::Control => [1],
        };
        let (run, from, to) =
            (self.secret.run.to_be_bytes(), self.from.to_be_bytes(), self.to.to_be_bytes());
        let epoch_bytes = epoch.to_be_bytes();
        let info: [&[u8]; 6] = [LABEL, &run, &from, &to, &series, &epoch_bytes];
        let mut made = [0; KEY_LEN + NONCE_LEN];
        self.secret
            .prk
            .expand(&info, HkdfOutputLength)
            .and_then(|okm| okm.fill(&mut made))
            .expect("28 bytes are less than HKDF's 255 blocks");
        let (key, rest) = made.split_at(KEY_LEN);
        let unbound = UnboundKey::new(&AES_128_GCM, key).expect("16 bytes are a key");
        let mut mask = [0; NONCE_LEN];
        mask.copy_from_slice(rest);
        EpochKey { epoch, key: LessSafeKey::new(unbound), mask }
    }
}

impl EpochKey {
    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = self.mask;
        for (byte, of_number) in nonce[NONCE_LEN - 8..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= of_number;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

/// The output of HKDF: a key and a mask.
struct HkdfOutputLength;

impl KeyType for HkdfOutputLength {
    fn len(&self) -> usize {
        KEY_LEN + NONCE_LEN
    }
}

/// Where a series begins: anywhere below 2⁶². So even if a run's key is used once more against the
/// rules, numbers, and with them nonces, do not meet.
///
/// # Errors
/// If the system has no entropy to give.
pub(crate) fn first_number() -> Option<u64> {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(u64::from_be_bytes(bytes) >> 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(from: u16, to: u16, series: DatagramSeries) -> EpochKeyring {
        EpochKeyring::new(&Secret::new(&[7; 32], 1), from, to, series)
    }

    fn sealed(keys: &mut EpochKeyring, number: u64) -> Vec<u8> {
        let mut datagram = vec![1; HEADER_LEN];
        datagram.extend(b"payload");
        datagram.extend([0; TAG_LEN]);
        keys.seal(number, &mut datagram);
        assert_ne!(&datagram[HEADER_LEN..HEADER_LEN + 7], b"payload");
        datagram
    }

    #[test]
    fn a_sealed_datagram_is_opened_by_the_other_side_only() {
        let datagram = sealed(&mut keys(1, 2, DatagramSeries::Data), 9);
        let open = |mut keys: EpochKeyring, number| {
            keys.open(number, &mut datagram.clone()).map(|payload| payload.to_vec())
        };
        assert_eq!(open(keys(1, 2, DatagramSeries::Data), 9), Ok(b"payload".to_vec()));
        assert_eq!(
            open(keys(2, 1, DatagramSeries::Data), 9),
            Err(SealVerificationError),
            "reflected"
        );
        assert_eq!(
            open(keys(1, 3, DatagramSeries::Data), 9),
            Err(SealVerificationError),
            "for another"
        );
        assert_eq!(
            open(keys(1, 2, DatagramSeries::Control), 9),
            Err(SealVerificationError),
            "of another series"
        );
        assert_eq!(
            open(keys(1, 2, DatagramSeries::Data), 10),
            Err(SealVerificationError),
            "with another number"
        );
        let other =
            |key, run| EpochKeyring::new(&Secret::new(&key, run), 1, 2, DatagramSeries::Data);
        assert_eq!(open(other([8; 32], 1), 9), Err(SealVerificationError), "with another key");
        assert_eq!(open(other([7; 32], 2), 9), Err(SealVerificationError), "of another run");
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let datagram = sealed(&mut keys(1, 2, DatagramSeries::Data), 9);
        let mut receiver = keys(1, 2, DatagramSeries::Data);
        for bit in 0..datagram.len() * 8 {
            let mut changed = datagram.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(receiver.open(9, &mut changed), Err(SealVerificationError), "bit {bit}");
        }
        assert!(receiver.open(9, &mut datagram.clone()).is_ok());
        assert_eq!(
            receiver.open(9, &mut datagram[..30].to_vec()),
            Err(SealVerificationError),
            "cut"
        );
    }

    #[test]
    fn keys_change_with_the_epoch_and_late_datagrams_are_still_opened() {
        let (mut sender, mut receiver) =
            (keys(1, 2, DatagramSeries::Data), keys(1, 2, DatagramSeries::Data));
        let mut late = sealed(&mut sender, EPOCH - 1);
        let mut early = sealed(&mut sender, EPOCH);
        let mut far = sealed(&mut sender, 5 * EPOCH);
        let mut before = sealed(&mut sender, EPOCH - 2);
        assert!(receiver.open(EPOCH - 2, &mut before).is_ok());
        assert!(receiver.open(EPOCH, &mut early).is_ok());
        assert!(receiver.open(EPOCH - 1, &mut late).is_ok());
        assert!(receiver.open(5 * EPOCH, &mut far).is_ok(), "after a long cut of the network");
    }

    #[test]
    fn no_two_numbers_of_an_epoch_have_the_same_nonce() {
        let key = keys(1, 2, DatagramSeries::Data).derive(3);
        let nonces: std::collections::BTreeSet<[u8; 12]> =
            (3 * EPOCH..3 * EPOCH + 10_000).map(|number| *key.nonce(number).as_ref()).collect();
        assert_eq!(nonces.len(), 10_000);
        let other = keys(1, 2, DatagramSeries::Data).derive(4);
        assert_ne!(key.mask, other.mask, "another epoch has another key and mask");
    }

    #[test]
    fn series_begin_anywhere_and_have_room() {
        let first = first_number().unwrap();
        assert!(first < 1 << 62);
        assert_ne!(Some(first), first_number());
    }
}
