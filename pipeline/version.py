"""The version, in every output and behind `--version`; `setup.cfg` says the same."""

VERSION = "1.0.0"
