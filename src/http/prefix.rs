//! Step 3 of a request whose token is in a multipart body that streams: only as much is read as the token needs.
//!
//! The part that was read is put in front of the rest, so that the handler receives the whole body. If the body ends,
//! breaks or stands still before the token, nothing is claimed.
//!
//! This way is taken only if nothing else needs the body: duplicates are refused, nothing verifies or keeps it, and
//! only the token is missing. The bounds are those of the prefix, in bytes, and the body timeout.

use bytes::Bytes;
use http::request::Parts;
use http_body::Body;

use super::{Exchange, KeyedRequest, PartialIdentity};
use crate::{
    body::{BoxError, IdleTimeout, Prefix, RequestBody, Watch, is_over_a_limit},
    extract,
    value::Refusal,
};

impl Exchange {
    /// The field that a token is looked for in, and how far, if the rest of the body is to stream.
    pub(super) fn looks_for<'a>(&'a self, parts: &Parts, subject: &PartialIdentity) -> Option<(&'a str, usize)> {
        let rule = self.tokens.as_ref()?;
        let looks = self.asks_for_no_body() && subject.lacks_only_its_key() && extract::is_multipart(&parts.headers);
        Some((rule.field.form_field()?, rule.prefix.filter(|_| looks)?))
    }

    /// Reads as far as the token, and claims it.
    pub(super) async fn claim_by_prefix<B>(
        &self,
        parts: &Parts,
        body: B,
        subject: PartialIdentity,
        (field, limit): (&str, usize),
        watch: Watch,
    ) -> (RequestBody<B>, Result<Option<KeyedRequest>, Refusal>)
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let mut prefix = Prefix::new(body, limit, IdleTimeout::new(self.body_timeout));
        let found = extract::first_field(&parts.headers, &mut prefix, field).await;
        let (error, stalled) = (prefix.take_error(), prefix.has_stalled());
        let body = prefix.resumed(watch);
        let claimed = match (error, found) {
            _ if stalled => Err(Refusal::BodyTimeout),
            (Some(error), _) if is_over_a_limit(&*error) => Err(Refusal::BodyTooLarge { limit: None }),
            (Some(_), _) => Err(Refusal::BodyIncomplete),
            (None, Ok(Some(token))) => self.claim(parts, &Bytes::new(), &mut subject.with_key(token), body.held()),
            (None, Ok(None)) => Err(Refusal::TokenMissing),
            (None, Err(_)) => Err(Refusal::TokenInvalid),
        };
        (body, claimed)
    }
}
