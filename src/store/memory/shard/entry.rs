use std::{
    mem,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;

use crate::{
    store::memory::{
        moment::{FOREVER, Moment, later},
        room::Weight,
    },
    value::{
        Binding, Caller, Claim, Claimant, Fingerprint, Granted, Head, Origin, Record, RecordKey, SecretNumber, State,
    },
};

use super::text::{Layout, Marks, Tail, join};

/// No slot: the end of a list.
pub(in crate::store::memory) const NIL: u32 = u32::MAX;

/// Payloads up to this size are joined to the key, in one allocation that a replay shares. A longer payload is kept in
/// its own buffer, so that it is neither copied nor freed while a lock is held.
const JOINED_BYTES: usize = 4096;

const STATE: u8 = 0b11;
const AT_MOST_ONCE: u8 = 1 << 2;
const TAKEOVER: u8 = 1 << 3;
const CALLER_IS_NEW: u8 = 1 << 4;
const PAYLOAD: u8 = 1 << 5;
const WAITED_FOR: u8 = 1 << 6;

/// The fields that few records have.
#[derive(Default)]
pub(in crate::store::memory) struct Extra {
    note: Bytes,
    token: Option<Token>,
    payload: Option<Bytes>,
}

struct Token {
    binding: Binding,
    expires: u64,
}

impl Extra {
    fn bytes(&self) -> usize {
        let token = self.token.as_ref().map_or(0, Token::bytes);
        self.note.len() + self.payload.as_ref().map_or(0, Bytes::len) + token
    }
}

impl Token {
    fn bytes(&self) -> usize {
        self.binding.purpose.len() + self.binding.principal.as_ref().map_or(0, |principal| principal.len())
    }
}

/// A record as it is kept. There may be millions, so every byte counts; see the test of its size.
pub(in crate::store::memory) struct Entry {
    /// The key, the marks, and the payload if it is short.
    text: Arc<[u8]>,
    extra: Option<Box<Extra>>,
    namespace: u32,
    attempt: u32,
    /// Neighbours in a wheel's list, and which list it is.
    pub(in crate::store::memory) previous: u32,
    pub(in crate::store::memory) next: u32,
    pub(in crate::store::memory) place: u16,
    layout: Layout,
    claimant: Claimant,
    fingerprint: Fingerprint,
    flags: u8,
    created: Moment,
    /// For a running record, when the lease lapses; for a settled one, since when.
    mark: Moment,
    expires: Moment,
}

impl Entry {
    /// Creates an entry that [`issue`](Self::issue) or [`grant`](Self::grant) has still to fill in.
    pub(in crate::store::memory) fn new(namespace: u32, key: &RecordKey, now: u64) -> Self {
        let text = key.shared();
        Self {
            layout: Layout::of_key(&text),
            text,
            extra: None,
            namespace,
            attempt: 0,
            previous: NIL,
            next: NIL,
            place: 0,
            claimant: Claimant::NONE,
            fingerprint: Fingerprint::OFF,
            flags: State::Issued as u8,
            created: Moment::new(now),
            mark: Moment::new(0),
            expires: Moment::new(FOREVER),
        }
    }

    pub(in crate::store::memory) fn issue(&mut self, binding: Binding, expires: u64) {
        self.expires = Moment::new(expires);
        self.extra = Some(Box::new(Extra { token: Some(Token { binding, expires }), ..Extra::default() }));
    }

    /// Assigns the entry to the claim. Returns what the last claim left, to be dropped while no lock is held.
    pub(in crate::store::memory) fn grant(&mut self, claim: &Claim, granted: &Granted, now: u64) -> Option<Extra> {
        self.set_state(State::Running);
        self.set(AT_MOST_ONCE, claim.at_most_once);
        self.set(TAKEOVER, granted.takeover);
        self.set(CALLER_IS_NEW, granted.caller_is_new);
        self.set_marks(&Marks::of(claim, granted));
        self.claimant = claim.claimant;
        self.fingerprint = claim.fingerprint;
        self.attempt = granted.attempt;
        self.renew(claim, now);
        let token = self.extra.as_mut().and_then(|extra| extra.token.take());
        let rare = token.is_some() || !claim.note.is_empty();
        let extra = rare.then(|| {
            // A slice would keep the server's whole read buffer.
            let note = Bytes::copy_from_slice(&claim.note);
            Box::new(Extra { note, token, payload: None })
        });
        mem::replace(&mut self.extra, extra).map(|old| *old)
    }

    /// Returns how many bytes more the entry takes once it is assigned to the claim.
    pub(in crate::store::memory) fn growth(&self, claim: &Claim, granted: &Granted) -> usize {
        let token = self.token().map_or(0, Token::bytes);
        let granted = self.key().len() + Marks::of(claim, granted).bytes() + claim.note.len() + token;
        granted.saturating_sub(self.bytes())
    }

    pub(in crate::store::memory) fn renew(&mut self, claim: &Claim, now: u64) {
        self.mark = Moment::new(later(now, claim.lease));
        self.expires = Moment::new(later(now, claim.lease.max(claim.horizon)));
    }

    pub(in crate::store::memory) fn settle(
        &mut self,
        claimant: Claimant,
        payload: Option<&Bytes>,
        retention: Duration,
        now: u64,
    ) {
        self.set_state(State::Settled);
        self.claimant = claimant;
        self.mark = Moment::new(now);
        self.expires = Moment::new(later(now, retention));
        self.set(PAYLOAD, payload.is_some());
        match payload {
            Some(payload) if payload.len() > JOINED_BYTES => {
                self.extra.get_or_insert_default().payload = Some(payload.clone());
            }
            Some(payload) if !payload.is_empty() => self.text = join(&self.text, payload),
            _ => {}
        }
    }

    pub(in crate::store::memory) fn release(&mut self, claimant: Claimant, keep: Duration, now: u64) {
        self.claimant = claimant;
        let (state, expires) = match self.token() {
            Some(token) => (State::Issued, token.expires),
            None => (State::Released, later(now, keep)),
        };
        self.set_state(state);
        self.expires = Moment::new(expires);
    }

    /// Releases the entry and undoes the last claim.
    pub(in crate::store::memory) fn undo(&mut self, claimant: Claimant, keep: Duration, now: u64) {
        self.release(claimant, keep, now);
        let mut marks = self.marks();
        self.attempt = self.attempt.saturating_sub(1);
        if self.attempt == 0 {
            (marks.secret, marks.origin) = (SecretNumber::NONE, Origin::NONE);
        }
        if self.flags & CALLER_IS_NEW != 0 {
            marks.caller = Caller::NONE;
            self.set(CALLER_IS_NEW, false);
        }
        self.set_marks(&marks);
    }

    pub(in crate::store::memory) fn is(&self, namespace: u32, key: &[u8]) -> bool {
        self.namespace == namespace && self.key() == key
    }

    pub(in crate::store::memory) fn key(&self) -> &[u8] {
        &self.text[..self.layout.key_bytes()]
    }

    pub(in crate::store::memory) fn namespace(&self) -> u32 {
        self.namespace
    }

    pub(in crate::store::memory) fn state(&self) -> State {
        match self.flags & STATE {
            0 => State::Issued,
            1 => State::Running,
            2 => State::Settled,
            _ => State::Released,
        }
    }

    /// Returns how many bytes it keeps beside its fixed size: key, note, payload and the fields that few records have.
    pub(in crate::store::memory) fn bytes(&self) -> usize {
        self.text.len() + self.extra.as_ref().map_or(0, |extra| extra.bytes())
    }

    pub(in crate::store::memory) fn weight(&self) -> Weight {
        Weight { state: self.state(), bytes: self.bytes() }
    }

    /// Passes the scope to whose share it counts, if any, to `see`: the principal of a token, the scope of another
    /// record.
    pub(in crate::store::memory) fn with_scope<T>(&self, see: impl FnOnce(&str) -> T) -> Option<T> {
        match self.token() {
            Some(token) => token.binding.principal.as_deref().map(see),
            None => RecordKey::from_bytes(self.key())?.scope().map(see),
        }
    }

    pub(in crate::store::memory) fn claimant(&self) -> Claimant {
        self.claimant
    }

    /// Returns whether its claim is the only one so far and it is not a token: before the claim there was no record.
    pub(in crate::store::memory) fn began_with_its_claim(&self) -> bool {
        self.attempt == 1 && self.token().is_none()
    }

    pub(in crate::store::memory) fn expires(&self) -> u64 {
        self.expires.ms()
    }

    /// Returns whether it is running with a lease that has lapsed.
    pub(in crate::store::memory) fn is_abandoned(&self, now: u64) -> bool {
        self.state() == State::Running && self.mark.ms() <= now
    }

    pub(in crate::store::memory) fn is_waited_for(&self) -> bool {
        self.flags & WAITED_FOR != 0
    }

    pub(in crate::store::memory) fn set_waited_for(&mut self, waited_for: bool) {
        self.set(WAITED_FOR, waited_for);
    }

    pub(in crate::store::memory) fn into_extra(self) -> Option<Extra> {
        self.extra.map(|extra| *extra)
    }

    /// Returns the payload for a duplicate; `None` for a tombstone.
    pub(in crate::store::memory) fn payload(&self) -> Option<Bytes> {
        if self.flags & PAYLOAD == 0 {
            return None;
        }
        if let Some(long) = self.extra.as_ref().and_then(|extra| extra.payload.as_ref()) {
            return Some(long.clone());
        }
        let from = self.layout.payload_from();
        (from < self.text.len())
            .then(|| Bytes::from_owner(Tail { text: Arc::clone(&self.text), from }))
            .or_else(|| Some(Bytes::new()))
    }

    pub(in crate::store::memory) fn head(&self) -> Head<'_> {
        let marks = self.marks();
        Head {
            fingerprint: self.fingerprint,
            caller: marks.caller,
            caller_is_new: self.flags & CALLER_IS_NEW != 0,
            secret: marks.secret,
            origin: marks.origin,
            at_most_once: self.flags & AT_MOST_ONCE != 0,
            takeover: self.flags & TAKEOVER != 0,
            lease_ends: self.mark.ms(),
            expires: self.expires(),
            binding: self.token().map(|token| &token.binding),
            ..Head::new(self.state(), self.claimant, self.attempt)
        }
    }

    pub(in crate::store::memory) fn record(&self, now: u64) -> Record {
        let left = |until: Moment| Duration::from_millis(until.ms().saturating_sub(now));
        let time = |moment: Moment| SystemTime::UNIX_EPOCH + Duration::from_millis(moment.ms());
        let (state, marks) = (self.state(), self.marks());
        let running = |time| if state == State::Running { time } else { Duration::ZERO };
        Record {
            fingerprint: self.fingerprint,
            caller: marks.caller,
            caller_is_new: self.flags & CALLER_IS_NEW != 0,
            secret: marks.secret,
            origin: marks.origin,
            at_most_once: self.flags & AT_MOST_ONCE != 0,
            takeover: self.flags & TAKEOVER != 0,
            lease: running(Duration::from_millis(marks.lease)),
            lease_left: running(left(self.mark)),
            lapsed_for: running(Duration::from_millis(now.saturating_sub(self.mark.ms()))),
            created: time(self.created),
            settled: (state == State::Settled).then(|| time(self.mark)),
            expires_in: left(self.expires),
            payload: self.payload(),
            note: self.extra.as_ref().map(|extra| extra.note.clone()).unwrap_or_default(),
            binding: self.token().map(|token| token.binding.clone()),
            trace: marks.trace,
            ..Record::new(state, self.claimant, self.attempt)
        }
    }

    fn token(&self) -> Option<&Token> {
        self.extra.as_ref()?.token.as_ref()
    }

    fn marks(&self) -> Marks {
        self.layout.marks(&self.text)
    }

    /// Sets the marks of an entry that has no payload yet.
    fn set_marks(&mut self, marks: &Marks) {
        if *marks != self.marks() {
            (self.layout, self.text) = marks.write(self.key());
        }
    }

    fn set_state(&mut self, state: State) {
        self.flags = self.flags & !STATE | state as u8;
    }

    fn set(&mut self, flag: u8, on: bool) {
        self.flags = self.flags & !flag | if on { flag } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<Entry>(), 112);
        assert_eq!(size_of::<Option<Entry>>(), 112);
    }

    #[test]
    fn payloads_short_and_long_with_and_without_a_caller() {
        let key = RecordKey::new("/", None, "k").unwrap();
        for caller in [Caller::NONE, Caller::from_parts(1, [7; 16])] {
            for length in [None, Some(0), Some(1), Some(JOINED_BYTES), Some(JOINED_BYTES + 1)] {
                let payload = length.map(|length| Bytes::from(vec![b'x'; length]));
                let mut entry = Entry::new(0, &key, 1);
                let claim = Claim { caller, ..Claim::new(Duration::MAX, Duration::ZERO) };
                entry.grant(&claim, &Granted::first(&claim), 2);
                entry.settle(claim.claimant, payload.as_ref(), Duration::from_millis(7), 3);
                assert_eq!(entry.payload(), payload);
                let record = entry.record(4);
                assert_eq!((record.caller, record.payload), (caller, payload));
                assert_eq!(entry.key(), key.as_bytes());
                assert_eq!(record.expires_in, Duration::from_millis(6));
            }
        }
    }
}
