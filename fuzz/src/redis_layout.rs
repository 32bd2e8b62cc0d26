//! A record in Redis, read a second time and in another way.

use std::time::{Duration, SystemTime};

use tower_idempotency::{
    fingerprint::Fingerprint,
    store::{Binding, Caller, Claimant, Origin, Record, RecordHead, SecretNumber, State, TraceContext},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Newer,
    Torn,
}

/// Reads bytes from the beginning.
struct CachedStore<'a>(&'a [u8]);

impl<'a> CachedStore<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Fault::Torn)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        Ok(self.take(N)?.try_into().expect("as many as were asked for"))
    }

    fn text(&mut self, length: u32) -> Result<String, Fault> {
        String::from_utf8(self.take(length as usize)?.to_vec()).map_err(|_| Fault::Torn)
    }
}

/// What stands in a record, and what follows from the time that it has left.
#[derive(Debug)]
pub struct Layout {
    pub state: State,
    flags: u8,
    parts: u8,
    attempt: u32,
    pub claimant: Claimant,
    pub fingerprint: Fingerprint,
    pub caller: Caller,
    pub secret: SecretNumber,
    origin: Origin,
    trace: Option<TraceContext>,
    created: u64,
    lease: u64,
    span: u64,
    payload: Vec<u8>,
    pub binding: Option<Binding>,
    note: Vec<u8>,
    /// In milliseconds; what never expires has four thousand years.
    pub left: u64,
}

impl Layout {
    pub fn read(value: &[u8], left: i64) -> Result<Self, Fault> {
        let mut front = CachedStore(value);
        let [version] = front.array()?;
        match version {
            0 | 1 => return Err(Fault::Torn),
            2 => {}
            _ => return Err(Fault::Newer),
        }
        let [state] = front.array()?;
        let state = match state {
            0 => State::Issued,
            1 => State::Running,
            2 => State::Settled,
            3 => State::Released,
            _ => return Err(Fault::Torn),
        };
        let (claimant, attempt) = (Claimant::from_bytes(front.array()?), u32::from_be_bytes(front.array()?));
        let [_waited_for, flags, parts, scheme] = front.array()?;
        let fingerprint = Fingerprint::from_parts(scheme, front.array()?);
        let caller = Caller::from_bytes(front.array()?);
        let secret = SecretNumber::from_u32(u32::from_be_bytes(front.array()?));
        let [created, lease, span] = [front.array()?, front.array()?, front.array()?].map(u64::from_be_bytes);
        let length = u32::from_be_bytes(front.array()?);
        let payload = front.take(length as usize)?.to_vec();
        let binding = if parts & 1 == 0 {
            None
        } else {
            front.take(8)?;
            let length = u32::from_be_bytes(front.array()?);
            let purpose = front.text(length)?;
            let principal = match u32::from_be_bytes(front.array()?) {
                u32::MAX => None,
                length => Some(front.text(length)?),
            };
            Some(Binding::new(&purpose, principal.as_deref()))
        };
        let origin = if parts & 2 == 0 {
            Origin::new(caller, secret)
        } else {
            let caller = Caller::from_bytes(front.array()?);
            Origin::new(caller, SecretNumber::from_u32(u32::from_be_bytes(front.array()?)))
        };
        let trace = if parts & 4 == 0 { None } else { Some(TraceContext::from_bytes(front.array()?)) };
        // Whatever else there is.
        let note = front.0.to_vec();
        let left = match left {
            -1 => 1 << 47,
            left => u64::try_from(left).unwrap_or(0),
        };
        Ok(Self {
            state,
            flags,
            parts,
            attempt,
            claimant,
            fingerprint,
            caller,
            secret,
            origin,
            trace,
            created,
            lease,
            span,
            payload,
            binding,
            note,
            left,
        })
    }

    pub fn age(&self) -> u64 {
        self.span.saturating_sub(self.left)
    }

    pub fn payload(&self) -> Option<&[u8]> {
        (self.flags & 8 != 0).then_some(&self.payload)
    }

    pub fn head(&self) -> RecordHead<'_> {
        let mut head = RecordHead::new(self.state, self.claimant, self.attempt);
        (head.fingerprint, head.caller) = (self.fingerprint, self.caller);
        (head.at_most_once, head.takeover) = (self.flags & 1 != 0, self.flags & 2 != 0);
        (head.caller_is_new, head.secret, head.origin) = (self.flags & 4 != 0, self.secret, self.origin);
        (head.lease_ends, head.expires) = (self.lease, self.age().checked_add(self.left).expect("a time"));
        head.binding = self.binding.as_ref();
        head
    }

    /// Asserts that the record was read as it stands here.
    pub fn is_told_by(&self, record: &Record, expires: i64) {
        assert_eq!((record.state, record.claimant, record.attempt), (self.state, self.claimant, self.attempt));
        assert_eq!((record.fingerprint, record.caller), (self.fingerprint, self.caller));
        assert_eq!((record.at_most_once, record.takeover), (self.flags & 1 != 0, self.flags & 2 != 0));
        assert_eq!((record.caller_is_new, record.secret), (self.flags & 4 != 0, self.secret));
        assert_eq!((record.origin, record.trace), (self.origin, self.trace));
        assert_eq!(record.payload.as_deref(), self.payload());
        assert_eq!(&*record.note, if self.parts & 8 == 0 { &[][..] } else { &self.note });
        assert_eq!(record.binding, self.binding);
        assert_eq!(record.expires_in, Duration::from_millis(self.left));
        let lease = if self.state == State::Running { self.lease.saturating_sub(self.age()) } else { 0 };
        assert_eq!(record.lease_left, Duration::from_millis(lease));
        let changed = u64::try_from(expires).unwrap_or(0).saturating_sub(self.span);
        let time = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
        let since_1970 = self.created >= 1 << 40;
        assert_eq!(record.created, time(if since_1970 { self.created } else { changed.saturating_sub(self.created) }));
        assert_eq!(record.settled, (self.state == State::Settled).then(|| time(changed)));
    }
}
