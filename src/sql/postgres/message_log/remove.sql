DELETE FROM {table} WHERE seq IN ({batch})
