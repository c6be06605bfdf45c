"""The only package that touches Spark, and the only place where Delta is known (`tables`)."""
