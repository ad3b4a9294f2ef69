"""Other versions of operators: what is not in ``tests/core/model/transcripts/opset.txt``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

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


MANY = """<ir_version: 6, opset_import: ["" : 11]>
    g (float[2] values) => (float[5000, 4] y) <int64 d = {4}> { y = OneHot(i, d, values) }"""


def test_constants_of_any_size_are_looked_at() -> None:
    indices = np.arange(5000) % 4
    for last in (3, -1):
        indices[-1] = last
        model = models.parse(MANY)
        model.graph.initializer.append(numpy_helper.from_array(indices, "i"))
        if last < 0:
            with pytest.raises(ConversionError, match="count from the end"):
                convert_opset(model, 10)
        else:
            convert_opset(model, 10)
            assert model.opset_import[0].version == 10


CALLS = """<ir_version: 8, opset_import: ["" : 11, "f" : 1]>
    g (float[1, 2, 1] x) => (y)
    { a = Squeeze <axes = [0]> (x) b = f.Old(a) c = f.New(b) y = Unsqueeze <axes = [0]> (c) }
    <domain: "f", opset_import: ["" : 11]> Old (a) => (b) { b = Squeeze <axes = [1]> (a) }
    <domain: "f", opset_import: ["" : 13]> New (b) => (c) {
    axes = Constant <value_ints = [1]> () c = Unsqueeze (b, axes) }"""


def test_a_function_that_is_of_the_version_already_stays() -> None:
    model = models.parse(CALLS)
    new = model.functions[1].SerializeToString()
    report = convert_opset(model, 13)
    assert report.changed == {"Squeeze": 2, "Unsqueeze": 1}
    assert model.functions[1].SerializeToString() == new
    bodies: list[Any] = [model, *model.functions]
    versions = [one.version for body in bodies for one in body.opset_import[:1]]
    assert versions == [13, 13, 13]
    assert all(
        not node.attribute for body in (model.graph, model.functions[0]) for node in body.node
        if node.op_type in ("Squeeze", "Unsqueeze")
    )  # fmt: skip
