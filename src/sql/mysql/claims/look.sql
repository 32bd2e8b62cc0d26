SELECT {record}, NULL FROM {table} WHERE id = ?
