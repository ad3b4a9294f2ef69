"""Other versions of operators: what is not in ``tests/core/model/transcripts/opset.txt``."""

from __future__ import annotations

import pytest

from dld_tui.core.conversion.opset import (
    ConversionError,
    convert_opset,
    known_versions,
)
from tests.support import models
from tests.support.conversions import OLD


def test_versions_that_are_not_known_are_refused() -> None:
    last = known_versions()[-1]
    assert last >= 18
    with pytest.raises(ConversionError, match=f"opset {last + 1} is not known: choose 1 to {last}"):
        convert_opset(models.parse(OLD), last + 1)
