"""Models in float16: what is converted under its old name, what stays, and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from dld_tui.core.conversion.accuracy_criteria import FP16
from dld_tui.core.conversion.fp16 import Fp16Model, Fp16Options, fp16_steps, redeclare
from dld_tui.core.conversion.result import range_lines
from dld_tui.core.errors import UsageError
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


def node(model: onnx.ModelProto, name: str) -> onnx.NodeProto:
    return next(one for one in model.graph.node if one.name == name)


def operators(model: onnx.ModelProto) -> list[str]:
    return [one.op_type for one in model.graph.node]


def border_types(model: onnx.ModelProto) -> list[int]:
    records = (*model.graph.input, *model.graph.output)
    return [record.type.tensor_type.elem_type for record in records]


def weights(model: onnx.ModelProto) -> dict[str, Any]:
    return {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}


def run(model: str | onnx.ModelProto, feeds: dict[str, Any]) -> Any:
    return next(iter(ReferenceEvaluator(model).run(None, feeds)))


def assert_same_results(path: Path, model: onnx.ModelProto) -> None:
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    before, after = run(str(path), {"x": x}), run(model, {"x": x.astype(np.float16)})
    assert after.dtype == np.float16
    np.testing.assert_allclose(after.astype(np.float32), before, atol=2e-2)


def test_nodes_weights_and_borders_become_float16_under_their_old_names(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    before = path.read_bytes()
    with converted(path) as (made, model):
        assert (made.nodes, made.casts, made.weights) == (4, 0, 1)
        assert operators(model) == ["Relu", "Add", "Mul", "Sigmoid"]
        assert [list(one.output) for one in model.graph.node] == [["a"], ["b"], ["c"], ["y"]]
        assert weights(model)["w"].dtype == np.float16
        assert weights(model)["unused"].dtype == np.float32, "nobody asked for it"
        assert border_types(model) == [HALF, HALF]
    with converted(path, Fp16Options(keep_io_types=True)) as (made, model):
        assert made.casts == 2
        assert operators(model) == ["Cast", "Relu", "Add", "Mul", "Sigmoid", "Cast"]
        assert border_types(model) == [FLOAT, FLOAT]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "options", [Fp16Options(op_block=("Mul",)), Fp16Options(node_block=("three",)),
                Fp16Options(node_block=("thr*",))]
)  # fmt: skip
def test_blocked_nodes_keep_float32_and_their_weights(tmp_path: Path, options: Fp16Options) -> None:
    path = models.write(tmp_path, MIXED.replace("70000", "7"))
    with converted(path, options) as (made, model):
        assert dict(made.kept) == {"Mul: blocked": 1}
        found = weights(model)
        assert found["v"].dtype == np.float32, "the blocked node takes it"
        assert sorted(str(one.dtype) for one in found.values()) == ["float16", "float16", "float32"]
        assert node(model, "three").input[1] == "v" != node(model, "four").input[1]
        assert_same_results(path, model)
    ghost = Fp16Options(node_block=("ghost",))
    with pytest.raises(UsageError, match="no node is named 'ghost'"), converted(path, ghost):
        pass


def test_a_layer_precision_is_kept(tmp_path: Path) -> None:
    model = models.parse(MIXED)
    model.graph.node[2].metadata_props.add(key="dld.precision", value="fp32")
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with converted(path) as (made, result):
        assert dict(made.kept) == {"Mul: its layer precision is fp32": 1}
        assert node(result, "three").metadata_props[0].value == "fp32"


def test_values_out_of_range_become_the_largest_and_the_smallest_and_are_told(
    tmp_path: Path,
) -> None:
    with converted(models.write(tmp_path, MIXED)) as (made, model):
        assert weights(model)["w"].tolist() == [1, 65504, float(np.float16(6e-8))]
        (loss,) = made.losses
        assert (loss.name, loss.count, loss.overflow, loss.underflow) == ("w", 3, 1, 1)
        assert loss.largest == 70000
        lines = range_lines([loss] * 7, "float16", all_losses=False)
        assert lines[:2] == [
            "7 weights with values out of float16's range:",
            "  w: 1 too large and 1 too small of 3; largest 7e+04",
        ]
        assert lines[-1] == "  and 2 more: --range-check lists all"


def test_what_computes_with_sizes_stays_exact(tmp_path: Path) -> None:
    text = f"""{HEAD} sizes (float[N, 4] x) => (float[N, 4] y) {{
        s = Shape(x) f = Cast <to = 1> (s) [scale] g = Mul(f, f) r = Sqrt(g)
        i = Cast <to = 7> (r) y = Reshape(x, i) }}"""
    with converted(models.write(tmp_path, text)) as (made, model):
        assert made.kept["sizes of tensors are computed in it"] == 2
        assert node(model, "scale").input[0] == "f"
        assert border_types(model)[1] == HALF


def test_constants_in_nodes_become_float16_without_casts(tmp_path: Path) -> None:
    text = f"""{HEAD} filled (float[2, 3] x) => (float[2, 3] y) <int64[2] shape = {{2, 3}}> {{
        [fill] k = ConstantOfShape <value = float[1] {{2.0}}> (shape)
        [half] h = Constant <value_float = 0.5> ()
        a = Mul(x, k) y = Mul(a, h) }}"""
    path = models.write(tmp_path, text)
    with converted(path) as (made, model):
        assert (made.casts, made.weights) == (0, 2)
        assert node(model, "fill").attribute[0].t.data_type == HALF
        assert node(model, "half").attribute[0].t.data_type == HALF
        assert_same_results(path, model)


def test_bodies_are_converted_and_the_model_stays_valid(tmp_path: Path) -> None:
    with converted(models.write(tmp_path, models.PLAIN_BRANCHES)) as (made, model):
        assert made.nodes == 5
        y = run(model, {"choice": np.array(True), "x": np.ones((2, 4), np.float16)})
        assert y.dtype == np.float16
        assert np.array_equal(y, np.zeros((2, 4)))


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


def test_an_output_that_a_blocked_node_takes_is_float16_and_the_node_gets_a_cast(
    tmp_path: Path,
) -> None:
    text = f"""{HEAD} g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z)
    {{ [one] y = Relu(x) [two] z = Neg(y) }}"""
    path = models.write(tmp_path, text)
    with converted(path, Fp16Options(op_block=("Neg",))) as (made, model):
        assert dict(made.kept) == {"Neg: blocked": 1}
        assert border_types(model) == [HALF, HALF, HALF]
        assert list(node(model, "one").output) == ["y"]
        assert operators(model) == ["Relu", "Cast", "Neg", "Cast"]
        assert_same_results(path, model)


def test_a_model_without_floating_point_nodes_stays_as_it_is(tmp_path: Path) -> None:
    text = f"{HEAD} whole (int64[2] x) => (int64[2] y) {{ y = Abs(x) }}"
    with converted(models.write(tmp_path, text)) as (made, model):
        assert made.nodes == 0
        assert "nothing was converted" in made.notes[0]
        assert operators(model) == ["Abs"]


def test_progress_counts_bytes(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with closing(Document.open(models.write(tmp_path, MIXED))) as document:
        result_of(events_of(fp16_steps(document, Fp16Options()), seen.append)).document.close()
    assert seen == [(12, 24), (24, 24)]


def test_borders_that_keep_their_type_say_why(tmp_path: Path) -> None:
    text = f"""{HEAD} ends (float[2, 2] x, float[2, 2] through, bool p) =>
        (float[2, 2] y, float[2, 2] through, float[2, 2] w, float[2, 2] z, float[2, 2] nowhere)
    <float[2, 2] w = {{1, 2, 3, 4}}>
    {{
        a = MatMul(x, w) y = MatMul(a, through)
        z = If(p) <
            then_branch = yes () => (float[2, 2] y) {{}},
            else_branch = no () => (float[2, 2] x) {{}}
        >
    }}"""
    with closing(Document.open(models.write(tmp_path, text))) as document:
        made = result_of(fp16_steps(document, Fp16Options()))
        made.document.close()
    assert made.notes[-6:] == [
        "input x stays float32: it is an output of else_branch",
        "input through stays float32: it is also an output",
        "output y stays float32: it is an output of then_branch",
        "output through stays float32: it is also an input",
        "output w stays float32: it is also an initializer",
        "output nowhere stays float32: no node produces it",
    ]
