from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.inputs.feeds import input_feeds
from dld_tui.core.model.inputs.shapes import InputSpec

SPECS = [InputSpec("x", "float32", ("N", 3))]


def test_random_sets_come_from_their_seeds() -> None:
    first, again, other = input_feeds(SPECS, None, ["x:2x3"], [5, 5, 6]).sets
    assert first["x"].shape == (2, 3)
    np.testing.assert_array_equal(first["x"], again["x"])
    assert not np.array_equal(first["x"], other["x"])


def test_sets_of_a_folder_have_their_own_shapes(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((4, 3), np.float32))
    (only,) = input_feeds(SPECS, tmp_path, [], [0]).sets
    assert only["x"].shape == (4, 3)
    with pytest.raises(UsageError, match="cannot be used with --inputs"):
        input_feeds(SPECS, tmp_path, ["x:4x3"], [0])
