"""Pure state machines over decoded entries: no Spark, no clock, no files."""
