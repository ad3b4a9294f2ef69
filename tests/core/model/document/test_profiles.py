"""Optimization profiles: their JSON, and what is wrong with one for a model."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.metadata import (
    Range,
    declared_inputs,
    new_profile,
    profiles_of,
    validate,
)
from tests.support import models

TWO = """
<ir_version: 3, opset_import: ["" : 8]>
two (float[N, 3, H, H] image, int64[4] sizes, float[4] w) => (float[N, 3, H, H] y)
<float[4] w = {1, 2, 3, 4}>
{ y = Relu(image) }
"""


def test_only_inputs_that_are_fed_count(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, TWO))
    assert declared_inputs(document) == {"image": ("N", 3, "H", "H"), "sizes": (4,)}
    profile = new_profile(document)
    assert profile == {"image": Range((1, 3, 1, 1), (1, 3, 1, 1), (1, 3, 1, 1))}
    assert validate(document, [profile]) == []
    assert validate(document, [{}]) == ["profile 1: image has no range"]
    fixed = {**profile, "sizes": Range((4,), (4,), (4,)), "ghost": Range((), (), ())}
    assert validate(document, [profile, fixed]) == ["profile 2, ghost: the model has no such input"]


def test_what_exporters_write_for_a_free_dimension(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    path.write_bytes(model.SerializeToString())
    assert declared_inputs(Document.open(path)) == {"x": (None, 4)}


def test_a_damaged_entry_is_said(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    assert profiles_of(document) == []
    document.apply("set_metadata", key="dld.profiles", value="[")
    with pytest.raises(InputError, match="is not JSON"):
        profiles_of(document)
    document.apply("set_metadata", key="dld.profiles", value="[1]")
    with pytest.raises(InputError, match="must be a table"):
        profiles_of(document)
