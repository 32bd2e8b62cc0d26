use std::sync::Arc;

use http::{
    HeaderMap, HeaderName,
    header::{AUTHORIZATION, COOKIE},
};

use crate::value::{Caller, Digest};

/// The headers that say who asks, where no scope does.
#[derive(Clone, Debug)]
pub(crate) struct Credentials(Arc<[HeaderName]>);

impl Credentials {
    pub(crate) fn of(names: impl IntoIterator<Item = HeaderName>) -> Self {
        Self(names.into_iter().collect())
    }
}

impl Default for Credentials {
    fn default() -> Self {
        Self::of([AUTHORIZATION, COOKIE, HeaderName::from_static("x-api-key")])
    }
}

/// The way in which callers are made.
const SCHEME: u8 = 1;

/// A digest of the values of those headers; none where there is none of them.
pub(crate) fn caller(headers: &HeaderMap, credentials: &Credentials) -> Caller {
    if !credentials.0.iter().any(|name| headers.contains_key(name)) {
        return Caller::NONE;
    }
    let mut digest = Digest::new();
    for name in &*credentials.0 {
        let values = headers.get_all(name);
        digest.length(values.iter().count());
        values.iter().for_each(|value| digest.part(value.as_bytes()));
    }
    let mut half = [0; 16];
    half.copy_from_slice(&digest.finish()[..16]);
    Caller::from_parts(SCHEME, half)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(headers: &[(&'static str, &'static str)]) -> Caller {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        caller(&map, &Credentials::default())
    }

    #[test]
    fn each_place_of_credentials_counts() {
        assert_eq!(of(&[]), Caller::NONE);
        assert_eq!(of(&[("x-user", "ann")]), Caller::NONE);
        let all = [
            of(&[("authorization", "ann")]),
            of(&[("cookie", "ann")]),
            of(&[("x-api-key", "ann")]),
            of(&[("x-api-key", "bob")]),
            of(&[("cookie", "a"), ("cookie", "nn")]),
            of(&[("authorization", "ann"), ("cookie", "ann")]),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(*one != Caller::NONE && !all[i + 1..].contains(one), "{i}");
        }
        assert_eq!(of(&[("authorization", "ann"), ("x-other", "1")]), all[0]);
    }
}
