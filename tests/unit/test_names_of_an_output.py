"""Names as they are and pseudonyms never share an output root."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import UsageError
from pipeline.replay.pseudonyms import Pseudonyms
from pipeline.spark.redaction import Redaction, claim

HIDDEN = Redaction(Pseudonyms(b"a key of the tests, long enough"), True)


@pytest.mark.parametrize(("first", "then"), [(None, HIDDEN), (HIDDEN, None)])
def test_the_first_run_decides_even_if_it_never_ended(
    tmp_path: Path, first: Redaction | None, then: Redaction | None
) -> None:
    claim(str(tmp_path), first)
    claim(str(tmp_path), first)
    with pytest.raises(UsageError, match="use another --output"):
        claim(str(tmp_path), then)
