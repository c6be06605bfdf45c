"""Editing of copied recordings: the mechanics behind `tests/plant.py`."""
