"""Two runs are compared: models, roundings, optimisations; within a memory budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.activities.accuracy.job import Request, run
from dld_tui.core.accuracy.result import Result
from dld_tui.core.codec import encode
from dld_tui.core.errors import ActivityError, UnavailableError, UsageError
from tests.support import models
from tests.support.activities import finished

pytest.importorskip("onnxruntime")

WIDE = """
<ir_version: 10, opset_import: ["" : 18]>
wide (float[1, 300, 300] x) => (float[1, 300, 300] y, float[1, 300, 300] early)
<float w = {1.5}>
{
    [a] a = Mul(x, w)
    [e] early = Tanh(a)
    [b] b = Add(a, x)
    [c] c = Exp(b)
    [d] d, d2 = Split<axis = 1, num_outputs = 2>(c)
    [f] f = Concat<axis = 1>(d, d2)
    [g] g = Sqrt(f)
    [y] y = Add(g, a)
}
"""


def compare(request: Request) -> tuple[dict[str, Any], Result]:
    result = finished(run(request))
    return encode(result), result.found


def test_a_small_budget_gives_the_same_errors_as_one_run(tmp_path: Path) -> None:
    path = models.write(tmp_path, WIDE)
    one, few = compare(Request(path, tensors=True, round="fp16", memory_budget=2))
    two, many = compare(Request(path, tensors=True, round="fp16", memory_budget=500))
    assert few == many
    assert len(few.rows) == 9
    assert one["kept_bytes"] <= 2 << 20 < two["kept_bytes"]
    assert {row.name for row in few.outputs} == {"y", "early"}


def test_what_fits_nothing_is_refused(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    with pytest.raises(UsageError, match="nothing to compare with"):
        compare(Request(path))
    with pytest.raises(UnavailableError, match="no Ghost provider"):
        compare(Request(path, against_provider="Ghost"))
    other = models.write(tmp_path, models.TRANSPOSES, "other.onnx")
    with pytest.raises(ActivityError, match="Invalid rank") as raised:
        compare(Request(path, other, shape=("x:1x4",)))
    assert raised.value.hint is None
    with pytest.raises(ActivityError, match="Invalid rank") as raised:
        compare(Request(path, other))
    assert raised.value.hint is not None
    assert "--shape x:1x4 sets it" in raised.value.hint
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.onnx", "other.onnx"]


def test_old_models_name_their_weights_among_the_inputs(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    model = onnx.load(path)
    model.ir_version = 3
    model.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, [4]))
    model.graph.input.append(onnx.helper.make_tensor_value_info("unused", 1, [2]))
    onnx.save(model, path)
    result, _ = compare(Request(path, tensors=True, against_optimization="all"))
    assert result["inputs"] == ["x float32[N, 4]"]
    assert result["is_good"]
