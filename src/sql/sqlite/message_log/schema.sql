CREATE TABLE IF NOT EXISTS {table} (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    route TEXT NOT NULL,
    key_digest BLOB,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    headers TEXT NOT NULL,
    body BLOB NOT NULL,
    is_cut BOOLEAN NOT NULL,
    arrived_ms INTEGER NOT NULL,
    status INTEGER,
    answered_ms INTEGER
);

CREATE INDEX IF NOT EXISTS {index} ON {table} (arrived_ms, seq);

CREATE INDEX IF NOT EXISTS {key_index} ON {table} (key_digest, arrived_ms, seq);
