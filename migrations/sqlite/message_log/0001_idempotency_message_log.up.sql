CREATE TABLE IF NOT EXISTS "idempotency_message_log" (
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

CREATE INDEX IF NOT EXISTS "idempotency_message_log_due" ON "idempotency_message_log" (arrived_ms, seq);

CREATE INDEX IF NOT EXISTS "idempotency_message_log_key" ON "idempotency_message_log" (key_digest, arrived_ms, seq);
