CREATE TABLE IF NOT EXISTS `idempotency_message_log` (
    seq BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE,
    route VARCHAR(255) NOT NULL,
    key_digest VARBINARY(32),
    method VARCHAR(32) NOT NULL,
    path MEDIUMTEXT NOT NULL,
    headers MEDIUMTEXT NOT NULL,
    body LONGBLOB NOT NULL,
    is_cut BOOLEAN NOT NULL,
    arrived_ms BIGINT NOT NULL,
    status BIGINT,
    answered_ms BIGINT,
    KEY `idempotency_message_log_due` (arrived_ms, seq),
    KEY `idempotency_message_log_key` (key_digest, arrived_ms, seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
