CREATE TABLE IF NOT EXISTS {table} (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    topic TEXT NOT NULL,
    message_key TEXT,
    headers TEXT,
    payload BYTEA NOT NULL,
    created_ms BIGINT NOT NULL,
    sent_ms BIGINT,
    attempts BIGINT NOT NULL,
    due_ms BIGINT NOT NULL,
    lease_ends_ms BIGINT NOT NULL,
    relay BYTEA
);

CREATE INDEX IF NOT EXISTS {index} ON {table} (sent_ms, due_ms, seq);

CREATE INDEX IF NOT EXISTS {key_index} ON {table} (message_key, sent_ms, seq);
