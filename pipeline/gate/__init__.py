"""Judges a run's tables: Great Expectations suites over what the run wrote, and the policy on findings."""
