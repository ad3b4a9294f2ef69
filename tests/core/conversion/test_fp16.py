"""Models in float16: what ``tests/core/model/transcripts/halves.txt`` does not show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from dld_tui.core.conversion.accuracy_criteria import FP16
from dld_tui.core.conversion.fp16 import Fp16Model, Fp16Options, fp16_steps, redeclare
from dld_tui.core.events import events_of, result_of
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.conversions import MIXED
from tests.support.sessions import bytes_of

HALF, FLOAT = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
HEAD = '<ir_version: 10, opset_import: ["" : 18]>'


@contextmanager
def converted(
    path: Path, options: Fp16Options | None = None
) -> Iterator[tuple[Fp16Model, onnx.ModelProto]]:
    """Convert a file; yields what was done, and the whole result."""
    with closing(Document.open(path)) as document:
        made = result_of(fp16_steps(document, options or Fp16Options()))
        with closing(made.document):
            model = onnx.ModelProto.FromString(bytes_of(made.document))
            onnx.checker.check_model(model, full_check=True)
            yield made, model


def weights(model: onnx.ModelProto) -> dict[str, Any]:
    return {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}


def test_a_value_of_a_body_does_not_change_the_type_of_an_outer_one_of_its_name() -> None:
    document = Document(
        models.parse("""<ir_version: 8, opset_import: ["" : 18]>
        g (bool c, float[2] x) => (double[2] y) <float[2] v> {
            v = If (c) <
                then_branch = t () => (float[2] o) <float[2] v> { v = Exp(x) o = Neg(v) },
                else_branch = e () => (float[2] p) { p = Neg(x) }
            >
            y = Cast <to = 11> (v)
        }""")
    )
    main, body = document.main, document.main.children()[0]
    redeclare(document, {(body, "v")}, FP16)
    types = [scope.records["value_info"][0].type.tensor_type.elem_type for scope in (main, body)]
    assert types == [FLOAT, HALF]


def test_a_large_weight_is_converted_in_parts(tmp_path: Path) -> None:
    text = f"{HEAD} g (float[1] x) => (float[700000] z) {{ z = Mul(big, x) }}"
    model = models.parse(text)
    values = np.random.default_rng(0).standard_normal(700_000).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(values, "big"))
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with converted(path) as (_, result):
        assert np.array_equal(weights(result)["big"], values.astype(np.float16))


def test_progress_counts_bytes(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with closing(Document.open(models.write(tmp_path, MIXED))) as document:
        result_of(events_of(fp16_steps(document, Fp16Options()), seen.append)).document.close()
    assert seen == [(12, 24), (24, 24)]
