"""Bytes of copied Kafka log directories to named tuples.

Nothing here knows Spark, a clock or a logger. Bad bytes in a log are data (`batch.Damage`); a
structure that cannot be decoded raises `errors.WireError`, and nothing else.
"""
