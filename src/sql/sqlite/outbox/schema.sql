CREATE TABLE IF NOT EXISTS {table} (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    topic TEXT NOT NULL,
    message_key TEXT,
    headers TEXT,
    payload BLOB NOT NULL,
    created_ms INTEGER NOT NULL,
    sent_ms INTEGER,
    attempts INTEGER NOT NULL,
    due_ms INTEGER NOT NULL,
    lease_ends_ms INTEGER NOT NULL,
    relay BLOB
);

CREATE INDEX IF NOT EXISTS {index} ON {table} (sent_ms, due_ms, seq);

CREATE INDEX IF NOT EXISTS {key_index} ON {table} (message_key, sent_ms, seq);
