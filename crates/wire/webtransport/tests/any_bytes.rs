//! Any bytes of a peer end in a head or in an error.

use proptest::prelude::*;
use webtransport::{HeadReader, MAX_HEAD, datagram_payload};

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(parts: Vec<Vec<u8>>) {
        let mut reader = HeadReader::default();
        let mut taken = 0;
        for part in &parts {
            taken += part.len();
            match reader.push(part) {
                Ok(None) => prop_assert!(taken < MAX_HEAD),
                Ok(Some(_)) | Err(_) => break,
            }
            let _ = datagram_payload(taken as u64, part);
        }
    }
}
