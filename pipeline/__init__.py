"""Audit of Kafka's transactional logs from copied log directories."""
