CREATE TABLE IF NOT EXISTS {table} (
    id BYTEA PRIMARY KEY,
    namespace TEXT NOT NULL,
    route TEXT NOT NULL,
    scope TEXT,
    record_key TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    claimant BYTEA NOT NULL,
    fingerprint BYTEA NOT NULL,
    caller BYTEA NOT NULL,
    at_most_once BOOLEAN NOT NULL,
    takeover BOOLEAN NOT NULL,
    created_ms BIGINT NOT NULL,
    changed_ms BIGINT NOT NULL,
    lease_ends_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL,
    token_expires_ms BIGINT,
    purpose TEXT,
    principal TEXT,
    payload BYTEA,
    note BYTEA
);

CREATE INDEX IF NOT EXISTS {index} ON {table} (state, expires_ms);
