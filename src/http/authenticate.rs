//! Step 2 of a request whose scope comes from an Axum extractor: the extractor runs before anything is claimed, and its
//! rejection is the response.
//!
//! The extractor may change the request's head, such as by an extension for the handler. Its value is inserted into the
//! extensions, so that the handler does not run it again.

use bytes::Bytes;
use http::{Response, request::Parts};

use super::{Exchange, Scoping, identify::PartialIdentity};

impl Exchange {
    /// Runs the extractor that says whose operation it is, if the layer has one.
    ///
    /// # Errors
    ///
    /// Returns the rejection, which is the response, and whether the client may still be sending its body.
    pub(super) async fn authenticated(
        &self,
        mut parts: Parts,
        subject: PartialIdentity,
    ) -> Result<(Parts, PartialIdentity), (bool, Response<Bytes>)> {
        if !subject.awaits_extractor() {
            return Ok((parts, subject));
        }
        match self.authenticate(&mut parts, subject).await {
            Ok(subject) => Ok((parts, subject)),
            Err(rejection) => Err((!Self::expects_continue(&parts.headers), rejection)),
        }
    }

    /// Has an extractor say whose operation it is. Its rejection is the answer.
    async fn authenticate(
        &self,
        parts: &mut Parts,
        subject: PartialIdentity,
    ) -> Result<PartialIdentity, Response<Bytes>> {
        let Scoping::Scope(scope) = &self.scoping else { return Ok(subject) };
        let Some(extracting) = scope.run_extractor(parts) else { return Ok(subject) };
        let found = extracting.await.map_err(|rejection| *rejection)?;
        let subject = scope.found(Some(found)).and_then(|scope| self.scoped(parts, subject, scope));
        subject.map_err(|refusal| self.refusal(Some(parts), None, &refusal))
    }
}
