DROP TABLE IF EXISTS `idempotency_message_log`;
