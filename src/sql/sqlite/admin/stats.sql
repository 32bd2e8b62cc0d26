SELECT CASE WHEN state = 'running' AND lease_ends_ms <= {now} THEN 'abandoned' ELSE state END AS standing, COUNT(*)
FROM {table}
WHERE id > $1 AND id < $2 AND expires_ms > {now}
GROUP BY standing
