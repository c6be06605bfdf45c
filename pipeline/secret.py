"""The key under which names become pseudonyms: from the environment or a file, never shown and in no table."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from pipeline.errors import ConfigError
from pipeline.text import sanitise

VARIABLE = "AUDIT_REDACT_KEY"
LEAST_BYTES = 16
_RANDOM_BYTES = 32


def read(file: str | None) -> bytes | None:
    """The key that was given; the environment goes before the file; None when neither has one.

    Args:
        file: `redact_key_file` of the settings.

    Raises:
        ConfigError: No such file, or a key that can be guessed.
    """
    text = os.environ.get(VARIABLE)
    source = VARIABLE
    if text is None and file is not None:
        source = f"redact_key_file {sanitise(file)}"
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise ConfigError(f"{source}: there is no such file of text") from None
    if text is None:
        return None
    key = text.strip().encode()
    if len(key) < LEAST_BYTES:
        raise ConfigError(f"{source}: a key has {LEAST_BYTES} characters or more")
    return key


def fresh() -> bytes:
    """A key for one run."""
    return secrets.token_bytes(_RANDOM_BYTES)
