//! What an established connection carries beside packets: bytes with
//! descriptors, for one mechanism or for the regions.

use std::os::fd::OwnedFd;

use crate::vocabulary::identity::MechanismTag;
use crate::vocabulary::peer_facts::Hello;

/// The first byte of what is for a mechanism; its tag follows.
const MECHANISM: u8 = 1;

/// The first byte of what is for the regions.
const REGION: u8 = 2;

/// From a mechanism to the peer's instance of it.
#[derive(Debug)]
pub(crate) struct OobMessage {
    pub mechanism: MechanismTag,
    pub content: Hello,
}

impl OobMessage {
    /// The bytes to send, and the descriptors to send with them.
    pub fn encode(self) -> (Vec<u8>, Vec<OwnedFd>) {
        let tag = self.mechanism.0.to_le_bytes();
        let bytes = [&[MECHANISM], &tag[..], &self.content.bytes].concat();
        (bytes, self.content.descriptors)
    }
}

/// The bytes of an answer that is for the regions.
pub(crate) fn for_regions(answer: &[u8]) -> Vec<u8> {
    [&[REGION], answer].concat()
}

/// What has arrived, and for whom.
#[derive(Debug)]
pub(crate) enum Arrival<'a> {
    OobMessage(OobMessage),
    Region(&'a [u8], Vec<OwnedFd>),
    /// Nobody knows what it is.
    Stray,
}

/// Reads what a peer has sent; only its shape is checked.
pub(crate) fn parse(bytes: &[u8], descriptors: Vec<OwnedFd>) -> Arrival<'_> {
    match bytes.split_first() {
        Some((&REGION, answer)) => Arrival::Region(answer, descriptors),
        Some((&MECHANISM, rest)) if descriptors.len() <= Hello::MAX_DESCRIPTORS => {
            match rest.split_first_chunk() {
                Some((tag, content)) if content.len() <= Hello::MAX_BYTES => {
                    Arrival::OobMessage(OobMessage {
                        mechanism: MechanismTag(u32::from_le_bytes(*tag)),
                        content: Hello { bytes: content.to_vec(), descriptors },
                    })
                }
                _ => Arrival::Stray,
            }
        }
        _ => Arrival::Stray,
    }
}

#[cfg(test)]
#[path = "oob_message_tests.rs"]
mod tests;
