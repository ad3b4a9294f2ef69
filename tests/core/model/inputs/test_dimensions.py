from __future__ import annotations

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.inputs.shapes import check_dimensions
from dld_tui.core.model.tensors.value_types import ValueType


def test_sizes_need_a_free_dimension() -> None:
    types = [ValueType("float32", ("N", 3, None)), None, ValueType("int64", None)]

    check_dimensions({"N": 1}, types)
    with pytest.raises(UsageError, match="'M', which is not a dynamic dimension") as caught:
        check_dimensions({"M": 1}, types)
    assert caught.value.hint == "Dynamic dimensions: N"
    with pytest.raises(UsageError) as caught:
        check_dimensions({"M": 1}, [])
    assert caught.value.hint == "Dynamic dimensions: none"
