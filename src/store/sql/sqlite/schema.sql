CREATE TABLE IF NOT EXISTS {table} (
    id BLOB NOT NULL PRIMARY KEY,
    namespace TEXT NOT NULL,
    route TEXT NOT NULL,
    scope TEXT,
    record_key TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    claimant BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    caller BLOB NOT NULL,
    at_most_once BOOLEAN NOT NULL,
    takeover BOOLEAN NOT NULL,
    created_ms INTEGER NOT NULL,
    changed_ms INTEGER NOT NULL,
    lease_ends_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    token_expires_ms INTEGER,
    purpose TEXT,
    principal TEXT,
    payload BLOB,
    note BLOB
);

CREATE INDEX IF NOT EXISTS {index} ON {table} (state, expires_ms);
