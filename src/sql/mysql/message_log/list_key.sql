SELECT {logged} FROM {table}
WHERE key_digest = ? AND arrived_ms >= ? AND (arrived_ms > ? OR seq > ?) AND arrived_ms < ?
    AND (? = '' OR route = ?)
ORDER BY arrived_ms, seq LIMIT ?
