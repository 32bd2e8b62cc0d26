DELETE record FROM {table} AS record FORCE INDEX (PRIMARY) WHERE record.id IN ({batch}) AND record.expires_ms <= {now}
