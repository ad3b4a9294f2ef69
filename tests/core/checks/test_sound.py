"""A result with errors that the model did not have is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.checks.repairs import require_sound
from dld_tui.core.errors import ActivityError, CancelledError, InputError
from tests.support import models

BROKEN = models.CHAIN.replace("Mul(b, b)", "Mul(b, none)")


def test_a_sound_result_and_errors_of_the_model_itself_pass(tmp_path: Path) -> None:
    good, bad = (
        models.write(tmp_path, text, f"{len(text)}.onnx") for text in (models.CHAIN, BROKEN)
    )
    require_sound(bad, good, lambda: False)
    require_sound(good, good, lambda: False)
    require_sound(bad, bad, lambda: False)


def test_new_errors_are_named(tmp_path: Path) -> None:
    good, bad = (
        models.write(tmp_path, text, f"{len(text)}.onnx") for text in (models.CHAIN, BROKEN)
    )
    with pytest.raises(ActivityError, match=r"not valid: .*none"):
        require_sound(good, bad, lambda: False)
    with pytest.raises(CancelledError):
        require_sound(good, bad, lambda: True)
    bad.write_bytes(b"\x08")
    with pytest.raises(InputError):
        require_sound(good, bad, lambda: False)
