CREATE TABLE IF NOT EXISTS {table} (
    seq BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE,
    topic VARCHAR(255) NOT NULL,
    message_key VARCHAR(255),
    headers MEDIUMTEXT,
    payload LONGBLOB NOT NULL,
    created_ms BIGINT NOT NULL,
    sent_ms BIGINT,
    attempts BIGINT NOT NULL,
    due_ms BIGINT NOT NULL,
    lease_ends_ms BIGINT NOT NULL,
    relay VARBINARY(16),
    KEY {index} (sent_ms, due_ms, seq),
    KEY {key_index} (message_key, sent_ms, seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
