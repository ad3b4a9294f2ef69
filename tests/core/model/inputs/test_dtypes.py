from __future__ import annotations

import pytest

from dld_tui.core.errors import ActivityError
from dld_tui.core.model.inputs.shapes import is_extended, numpy_dtype


@pytest.mark.parametrize(
    ("dtype", "size"), [("float32", 4), ("bool", 1), ("bfloat16", 2), ("float8e5m2fnuz", 1)]
)
def test_sizes(dtype: str, size: int) -> None:
    assert numpy_dtype(dtype).itemsize == size


def test_which_types_numpy_lacks() -> None:
    assert is_extended("bfloat16")
    assert not is_extended("float16")
    with pytest.raises(ActivityError, match="int4"):
        numpy_dtype("int4")
