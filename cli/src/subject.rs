//! Which record is meant: by route, scope and key, by the key alone, by a hashed key from a log, or by its id.

use std::{fs, path::Path};

use tower_idempotency::{
    Secret,
    store::{Entry, Filter, Record, RecordKey, StoreAdmin},
};

use crate::{
    arguments::Subject,
    failure::Failure,
    progress::Progress,
    show::{plain, unhex},
};

/// How many records a page of a search has.
const PAGE: usize = 500;

/// How many records are named if several have a key.
const NAMED: usize = 10;

/// Finds the record that is meant.
pub(crate) async fn find(
    store: &dyn StoreAdmin,
    subject: &Subject,
    json: bool,
) -> Result<(RecordKey, Record), Failure> {
    if let Some(key) = named(subject)? {
        let record = store.inspect(&key).await?;
        return record.map(|record| (key, record)).ok_or_else(|| Failure::NotFound("there is no such record".into()));
    }
    let secret = subject.secret_file.as_deref().map(read_secret).transpose()?;
    let is_meant = |key: &RecordKey| match (&subject.log_id, &subject.key) {
        (Some(log_id), _) => {
            let own = secret.as_ref().map_or_else(|| key.log_id(), |secret| key.log_id_with(secret));
            own.eq_ignore_ascii_case(log_id)
        }
        (None, Some(wanted)) => {
            key.key() == wanted && subject.scope.as_deref().is_none_or(|scope| key.scope() == Some(scope))
        }
        (None, None) => false,
    };
    let mut found = search(store, is_meant, json).await?;
    match found.len() {
        0 => Err(Failure::NotFound("there is no such record in this namespace".into())),
        1 => {
            let Entry { key, record, .. } = found.remove(0);
            Ok((key, record))
        }
        number => Err(several(number, &found)),
    }
}

/// Returns the key that the arguments name completely.
fn named(subject: &Subject) -> Result<Option<RecordKey>, Failure> {
    if let Some(id) = &subject.id {
        let key = unhex(id).and_then(|bytes| RecordKey::from_bytes(&bytes));
        return key.map(Some).ok_or_else(|| Failure::Usage("--id: it is none of a list in JSON".into()));
    }
    let (Some(route), Some(key)) = (&subject.route, &subject.key) else { return Ok(None) };
    let key = RecordKey::new(route, subject.scope.as_deref(), key);
    key.map(Some).map_err(|error| Failure::Usage(format!("KEY: {error}")))
}

/// Walks through all records of the namespace.
async fn search(
    store: &dyn StoreAdmin,
    is_meant: impl Fn(&RecordKey) -> bool,
    json: bool,
) -> Result<Vec<Entry>, Failure> {
    let progress = Progress::new("looked at", "records", json);
    let (mut found, mut after) = (Vec::<Entry>::new(), None);
    loop {
        let page = store.list(Filter::All, after, PAGE).await?;
        progress.add(page.entries.len() as u64);
        for entry in page.entries {
            // A walk of Redis may show a record twice.
            if is_meant(&entry.key) && found.iter().all(|other| other.key != entry.key) {
                found.push(entry);
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

fn several(number: usize, found: &[Entry]) -> Failure {
    let name = |Entry { key, .. }: &Entry| {
        format!("\n  route {}, scope {}", plain(key.route()), key.scope().map_or("none".into(), plain))
    };
    let named: String = found.iter().take(NAMED).map(name).collect();
    Failure::Usage(format!("{number} records have this key: name one with --route and --scope{named}"))
}

/// Reads the secret of the application. A line break at the end is not part of it.
fn read_secret(file: &Path) -> Result<Secret, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::Usage(format!("--secret-file {}: {error}", file.display()));
    let mut bytes = fs::read(file).map_err(|error| wrong(&error))?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Secret::new(bytes).map_err(|error| wrong(&error))
}
