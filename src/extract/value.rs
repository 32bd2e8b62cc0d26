use serde::Serialize;

use super::json::{self, Selection};
use crate::value::{CompactDigest, Fingerprint, is_finite};

/// Returns the fingerprint of a value: its JSON, by its meaning. The order of a map's members makes no difference.
pub(crate) fn fingerprint_of_value<T: Serialize + ?Sized>(value: &T) -> Result<Fingerprint, serde_json::Error> {
    let written = serde_json::to_vec(value)?;
    if !is_finite(value) {
        // All of them would be `null`, and so one content.
        return Err(serde::ser::Error::custom("a number in it is not finite"));
    }
    let mut digest = CompactDigest::new();
    let by_meaning = json::parse(&written).is_ok_and(|root| json::digest(&root, &Selection::All, &mut digest).is_ok());
    let part = if by_meaning { &digest.finish()[..] } else { &written };
    Ok(Fingerprint::builder().part("value").part(part).build())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::*;

    #[test]
    fn a_map_has_one_fingerprint_in_whatever_order_it_is() {
        let entries = (0..20).map(|n| (format!("k{n}"), n));
        let of = |map: &HashMap<_, _>| fingerprint_of_value(map).unwrap();
        let one = of(&entries.clone().collect());
        for _ in 0..20 {
            // Each map is hashed with keys of its own.
            assert_eq!(of(&entries.clone().rev().collect()), one);
        }
        assert_ne!(of(&entries.skip(1).collect()), one);
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        assert!(fingerprint_of_value(&BTreeMap::from([(vec![1], 2)])).is_err());
    }

    #[test]
    fn a_number_that_is_not_finite_is_an_error() {
        for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(fingerprint_of_value(&Some(number)).is_err());
        }
        assert!(fingerprint_of_value(&None::<f32>).is_ok());
    }

    /// Every later version must compute the same value, or it would not find the records of earlier ones.
    #[test]
    fn it_stays_the_same() {
        let digest = *fingerprint_of_value(&("order-7", 100)).unwrap().digest();
        assert_eq!(crate::value::hex(&digest[..8]), "7dcb40496d64b474");
    }
}
