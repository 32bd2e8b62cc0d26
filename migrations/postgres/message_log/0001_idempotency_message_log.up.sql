CREATE TABLE IF NOT EXISTS "idempotency_message_log" (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    route TEXT NOT NULL,
    key_digest BYTEA,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    headers TEXT NOT NULL,
    body BYTEA NOT NULL,
    is_cut BOOLEAN NOT NULL,
    arrived_ms BIGINT NOT NULL,
    status BIGINT,
    answered_ms BIGINT
);

CREATE INDEX IF NOT EXISTS "idempotency_message_log_due" ON "idempotency_message_log" (arrived_ms, seq);

CREATE INDEX IF NOT EXISTS "idempotency_message_log_key" ON "idempotency_message_log" (key_digest, arrived_ms, seq);
