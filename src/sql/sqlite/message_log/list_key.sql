SELECT {logged} FROM {table}
WHERE key_digest = $1 AND arrived_ms >= $2 AND (arrived_ms > $3 OR seq > $4) AND arrived_ms < $5
    AND ($6 = '' OR route = $7)
ORDER BY arrived_ms, seq LIMIT $8
