//! Wrappers of stores.

/// Writes methods of [`Store`](crate::store::Store) and [`StoreAdmin`](crate::store::StoreAdmin) that call the same
/// method of the store that follows `self.`. The types of the methods have to be in scope.
///
/// The methods are named one by one: a wrapper says what it passes on, and does not compile if it forgets one.
macro_rules! forward_store {
    ($to:tt $($method:ident),+ $(,)?) => {
        $($crate::store::support::forward_method!($to $method);)+
    };
}

macro_rules! forward_method {
    ([$($to:tt)+] is_immediate) => {
        fn is_immediate(&self) -> bool {
            self.$($to)+.is_immediate()
        }
    };
    ([$($to:tt)+] issue) => {
        fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
            self.$($to)+.issue(key, issue)
        }
    };
    ([$($to:tt)+] claim) => {
        fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
            self.$($to)+.claim(key, claim)
        }
    };
    ([$($to:tt)+] renew) => {
        fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
            self.$($to)+.renew(key, claim)
        }
    };
    ([$($to:tt)+] settle) => {
        fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
            self.$($to)+.settle(key, settlement)
        }
    };
    ([$($to:tt)+] release) => {
        fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
            self.$($to)+.release(key, release)
        }
    };
    ([$($to:tt)+] changed) => {
        fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
            self.$($to)+.changed(key, holder, within)
        }
    };
    ([$($to:tt)+] inspect) => {
        fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
            self.$($to)+.inspect(key)
        }
    };
    ([$($to:tt)+] list) => {
        fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page> {
            self.$($to)+.list(filter, after, limit)
        }
    };
    ([$($to:tt)+] settle_as) => {
        fn settle_as<'a>(
            &'a self,
            key: &'a RecordKey,
            seen: Claimant,
            settlement: &'a Settlement,
        ) -> StoreFuture<'a, Finished> {
            self.$($to)+.settle_as(key, seen, settlement)
        }
    };
    ([$($to:tt)+] release_as) => {
        fn release_as<'a>(
            &'a self,
            key: &'a RecordKey,
            seen: Claimant,
            release: &'a Release,
        ) -> StoreFuture<'a, Finished> {
            self.$($to)+.release_as(key, seen, release)
        }
    };
    ([$($to:tt)+] forget) => {
        fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
            self.$($to)+.forget(key)
        }
    };
    ([$($to:tt)+] purge) => {
        fn purge(&self, limit: usize) -> StoreFuture<'_, u64> {
            self.$($to)+.purge(limit)
        }
    };
    ([$($to:tt)+] stats) => {
        fn stats(&self) -> StoreFuture<'_, Stats> {
            self.$($to)+.stats()
        }
    };
}

pub(crate) use {forward_method, forward_store};
