SELECT {logged} FROM {table}
WHERE arrived_ms >= $1 AND (arrived_ms > $2 OR seq > $3) AND arrived_ms < $4 AND ($5 = '' OR route = $6)
ORDER BY arrived_ms, seq LIMIT $7
