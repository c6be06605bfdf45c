"""Errors that end a run, each with the exit code that the command line answers.

The exit codes are part of the contract with users: 2 wrong usage or configuration, 4 could not
finish. Findings (1) and "could not tell" (3) are results, not errors.
"""

from __future__ import annotations


class AuditError(Exception):
    """A run cannot go on; its message is one clear line for a person.

    Attributes:
        exit_code: what the process answers.
    """

    exit_code = 4


class UsageError(AuditError):
    """The command line or the combination of inputs makes no sense."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration file or value is wrong."""


class UnsupportedEnvironment(UsageError):
    """Java, Python, a package or a JAR is missing or too old."""


class OutputConflict(UsageError):
    """The output root belongs to another cluster, or to a version with other tables."""


class OutputLocked(AuditError):
    """Another run holds the output root."""


class SelfCheckFailed(AuditError):
    """The bundled sample did not give the findings that it is known to hold."""
