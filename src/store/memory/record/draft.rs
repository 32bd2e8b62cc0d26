//! A record that is to be written: that of a new key, or of one that is claimed again.

use bytes::Bytes;

use crate::value::{Binding, Claim, Claimant, Fingerprint, Granted, RecordKey, State};

use super::{
    Extra,
    extra::TokenFields,
    head::{AT_MOST_ONCE, CALLER_IS_NEW, EXTRA, Head, TAKEOVER},
    moment::{FOREVER, later},
    scoped::{Scoped, scope},
    text::{self, OptionalFields},
    view::RecordView,
    weight::Weight,
};

/// A record before it is written, so that room can be reserved for it.
pub(in crate::store::memory) struct RecordDraft<'a> {
    pub(super) head: Head,
    pub(super) key: &'a [u8],
    pub(super) fields: OptionalFields,
    pub(super) extra: Option<Box<Extra>>,
}

impl<'a> RecordDraft<'a> {
    /// Returns the record of an issued token.
    pub(in crate::store::memory) fn issued(
        namespace: u32,
        key: &'a RecordKey,
        binding: Binding,
        expires: u64,
        now: u64,
    ) -> Self {
        let fields = OptionalFields { namespace, ..OptionalFields::NONE };
        let extra = Extra { token: Some(TokenFields { binding, expires }), ..Extra::default() };
        let mut record = Self { head: new_head(now), key: key.as_bytes(), fields, extra: Some(Box::new(extra)) };
        record.head.expires = expires.min(FOREVER);
        record.set_flags();
        record
    }

    /// Returns the record of a granted claim. Of the one before it stay the first moment, and what makes it a token.
    #[inline]
    pub(in crate::store::memory) fn granted(
        namespace: u32,
        key: &'a RecordKey,
        before: Option<&RecordView<'_>>,
        claim: &Claim,
        granted: &Granted,
        now: u64,
    ) -> Self {
        let token = before.and_then(RecordView::token).cloned();
        let rare = token.is_some() || !claim.note.is_empty();
        let extra = rare.then(|| {
            // A slice would keep the server's whole read buffer.
            let note = Bytes::copy_from_slice(&claim.note);
            Box::new(Extra { note, token, payload: None })
        });
        let mut head = Head {
            attempt: granted.attempt,
            claimant: claim.claimant,
            fingerprint: claim.fingerprint,
            created: before.map_or(now, RecordView::created),
            mark: later(now, claim.lease),
            expires: later(now, claim.lifetime()),
            ..new_head(now)
        };
        head.set_state(State::Running);
        head.set(AT_MOST_ONCE, claim.at_most_once);
        head.set(TAKEOVER, granted.takeover);
        head.set(CALLER_IS_NEW, granted.caller_is_new);
        let fields = OptionalFields::of(namespace, claim, granted);
        let mut record = Self { head, key: key.as_bytes(), fields, extra };
        record.set_flags();
        record
    }

    /// Returns how it will count.
    pub(in crate::store::memory) fn weight(&self) -> Weight {
        self.head.summary(self.extra.as_ref().map_or(0, |extra| extra.bytes())).weight
    }

    pub(in crate::store::memory) fn expires(&self) -> u64 {
        self.head.expires
    }

    /// Returns what may have destructors of the application, to be dropped while no lock is held.
    pub(in crate::store::memory) fn take_extra(&mut self) -> Option<Box<Extra>> {
        self.extra.take()
    }

    /// Makes the flags of the head agree with what there is.
    fn set_flags(&mut self) {
        self.head.key_bytes = u16::try_from(self.key.len()).unwrap_or(u16::MAX);
        self.head.flags = self.head.flags & !text::OPTIONAL | self.fields.flags();
        self.head.set(EXTRA, self.extra.is_some());
    }
}

impl Scoped for RecordDraft<'_> {
    fn namespace(&self) -> u32 {
        self.fields.namespace
    }

    fn with_scope<T>(&self, see: impl FnOnce(&str) -> T) -> Option<T> {
        scope(self.extra.as_deref(), self.key, see)
    }
}

fn new_head(now: u64) -> Head {
    Head {
        flags: State::Issued as u16,
        key_bytes: 0,
        payload_bytes: 0,
        attempt: 0,
        claimant: Claimant::NONE,
        fingerprint: Fingerprint::OFF,
        created: now,
        mark: 0,
        expires: FOREVER,
    }
}
