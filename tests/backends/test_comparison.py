"""All that a comparison of two models tells, as ONNX Runtime runs both: comparison.txt."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from dld_tui.backends.accuracy.runs import (
    Comparison,
    ModelSide,
    State,
    comparison_notes,
    has_halves,
)
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.accuracy.tensor_errors import parse_tolerances
from dld_tui.core.errors import DldError
from dld_tui.core.events import Log
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.recorded import Recorded, settled

HEAD = '<ir_version: 10, opset_import: ["" : 18, "f" : 1]>\n'
CHAIN = (
    HEAD
    + """g (float[N, 4] x, float[4] s) => (float[N, 4] y, float[N, 4] z) {
  [first] a = Neg(x) [second] b = Add(a, s) [third] c = Relu(b) [fourth] y = Add(c, a)
  [fifth] z = Sub(b, c) }"""
)
OTHER = CHAIN.replace("Relu(b)", "Abs(b)")
RENAMED = CHAIN.replace(" x", " p").replace("(x", "(p").replace(" y", " q").replace("a =", "e =")
RENAMED = RENAMED.replace("Add(a", "Add(e").replace("c, a", "c, e")
FEWER = CHAIN.replace(", float[N, 4] z)", ")").replace("[fifth] z = Sub(b, c)", "")
PASSED = FEWER.replace("y)", "y, float[N, 4] x)")
MORE = CHAIN.replace("float[N, 4] z)", "float[N, 4] z, float[N, 4] c)")
HALF = (
    HEAD
    + """g (float16[N, 4] x, float16[4] s) => (float16[N, 4] y, float[N, 4] z) {
  a = Neg(x) b = Add(a, s) c = Relu(b) y = Add(c, a) d = Sub(b, c) z = Cast<to = 1>(d) }"""
)
PARTS = (
    HEAD
    + """g (float[N, 4] x, bool t) => (seq(float[N, 4]) s, float[N, 4] y) {
  a = f.Twice(x) s = SequenceConstruct(a, x)
  y = If(t) <then_branch = yes () => (float[N, 4] p) { q = Neg(a) p = Abs(q) },
             else_branch = no () => (float[N, 4] r) { r = Identity(a) }> }
<domain: "f", opset_import: ["" : 18]> Twice (u) => (v) { v = Add(u, u) }"""
)
LOST = (
    HEAD
    + """g (float[1, 5, 4, 4] x, float[5, 1, 1] s) => (float[1, 5, 4, 4] y, float[1, 5, M, 4] z)
<float[5, 1, 1] t = {1, 0, 1, 1, 1}> { a = Mul(x, s) y = Identity(a) z = Identity(a) }"""
)
LESS = LOST.replace("Mul(x, s)", "Mul(x, t)").replace("z = Identity", "z = Flatten<axis = 3>")
PACKED = (
    HEAD
    + """g (uint8[2] x) => (uint8[2] o, uint8[2] p, uint8[2] q, int64[2] i) {
  o, p, q = f.GroupQueryAttention<k_quant_type = "PER_TENSOR", kv_cache_bit_width = 4>(x)
  i = Cast<to = 7>(x) }
<domain: "f", opset_import: ["" : 18]>
GroupQueryAttention <k_quant_type, kv_cache_bit_width> (x) => (o, p, q)
{ o = Identity(x) p = Identity(x) q = Identity(x) }"""
)
TURNED = PACKED.replace("= Identity(x)", "= BitwiseNot(x)")
OF_BYTES = TURNED.replace("uint8[2] q", "int8[2] q").replace(
    "q = BitwiseNot(x)", "q = Cast<to = 3>(x)"
)
UNLIKE = (
    HEAD
    + """g (int64[1] p) => (int64[1] q, int64[1] r, int64[1] t)
{ q = Neg(p) r = Neg(q) t = Neg(r) }"""
)
X = np.array([[-1, 2, -3, 4]], np.float32)
S = np.array([1, -1, 2, 0], np.float32)
FEED: dict[str, Any] = {"x": X, "s": S}


@dataclass
class Case:
    one: str
    two: str
    feeds: list[dict[str, Any]] = field(default_factory=lambda: [FEED])
    tensors: bool = False
    channels: bool = False
    budget: int = 1 << 20
    tolerances: tuple[str, ...] = ()


SIZES = {
    "x": np.arange(80, dtype=np.float32).reshape(1, 5, 4, 4) / 8,
    "s": np.ones((5, 1, 1), np.float32),
}
CASES = {
    "the same": Case(CHAIN, CHAIN),
    "another operator": Case(CHAIN, OTHER, tensors=True),
    "in groups": Case(CHAIN, OTHER, tensors=True, budget=64),
    "one by one": Case(CHAIN, OTHER, tensors=True, budget=1),
    "two sets of inputs": Case(CHAIN, OTHER, [FEED, {"x": 9 * X, "s": S}], tensors=True, budget=64),
    "tolerances": Case(CHAIN, OTHER, tensors=True, tolerances=("atol=1", "c:atol=5,cosine=0.5")),
    "a tolerance of an inner tensor": Case(CHAIN, OTHER, tolerances=("c:atol=5",)),
    "other names": Case(CHAIN, RENAMED, tensors=True),
    "fewer outputs": Case(CHAIN, FEWER, tensors=True),
    "more outputs": Case(CHAIN, MORE, tensors=True),
    "float16": Case(CHAIN, HALF, tensors=True),
    "float16 as the reference": Case(HALF, CHAIN, [{k: v.astype(np.float16) for k, v in
                                                    FEED.items()}]),
    "parts": Case(PARTS, PARTS, [{"x": X, "t": np.array(True)}], tensors=True),
    "lost channels of outputs": Case(LOST, LESS, [SIZES], tensors=True),
    "lost channels of all": Case(LOST, LESS, [SIZES], tensors=True, channels=True),
    "packed caches": Case(PACKED, TURNED, [{"x": np.array([1, 254], np.uint8)}]),
    "packed caches as bytes": Case(PACKED, OF_BYTES, [{"x": np.array([1, 126], np.uint8)}]),
    "an input that the reference lacks": Case(FEWER, CHAIN.replace(
        "float[4] s)", "float[4] s, float[4] u)").replace("Sub(b, c)", "Sub(b, u)")),
    "an output that is an input": Case(PASSED, PASSED, tensors=True),
    "nothing alike": Case(CHAIN, UNLIKE),
}  # fmt: skip
SETTINGS = SessionSettings(optimization_level="disabled", quiet=True)


def told(case: Case, folder: Path) -> Iterator[str]:
    with contextlib.ExitStack() as stack:
        sides = []
        for name, text in (("one", case.one), ("two", case.two)):
            path = models.write(folder, text, f"{name}.onnx")
            document = stack.enter_context(contextlib.closing(Document.open(path)))
            sides.append(ModelSide(document, SETTINGS))
        yield f"loose {[side.is_loose for side in sides]}"
        try:
            comparison = stack.enter_context(
                Comparison(
                    sides[0],
                    sides[1],
                    parse_tolerances(case.tolerances),
                    case.tensors,
                    case.channels,
                )
            )
            assert comparison.trial_run is not None
            comparison.trial_run(case.feeds[0])
            with pytest.raises(DldError):
                comparison.trial_run({name: np.zeros((7,) * 5) for name in case.feeds[0]})
            rows: list[Any] = []
            for step in comparison.run(case.feeds, budget=case.budget):
                if isinstance(step, State):
                    yield f"{step.done} of {step.total}, {step.kept_bytes} B held at most"
                    rows = step.rows
                elif isinstance(step, Log):
                    yield step.text
        except DldError as error:
            yield f"! {type(error).__name__} {error.message} | {error.where} | {error.hint}"
            return
        for row in rows:
            found = row.error
            figures = [found.count, found.max_abs, found.largest, found.outside]
            lost = f", lost {found.lost}" if found.lost else ""
            yield (
                f"{row.name} and {row.other} of {row.node} {row.op_type} {row.order}, output"
                f" {row.is_output}: {figures}{lost} {row.tolerance} | {row.problem}"
            )
        yield f"retyped {comparison.retyped}"
        yield from comparison_notes(comparison, tensors=case.tensors)


def test_all_that_a_comparison_tells(recorded: Recorded, tmp_path: Path) -> None:
    found = {name: settled("\n".join(told(case, tmp_path)), tmp_path)
             for name, case in CASES.items()}  # fmt: skip
    recorded("comparison", found)


@pytest.mark.parametrize(
    ("text", "narrow"),
    [
        (CHAIN, False), (HALF, True), (HALF.replace("to = 1", "to = 10"), True),
        (CHAIN.replace("Neg(x)", "Cast<to = 10>(x)"), True),
        (CHAIN.replace("Neg(x)", "Cast<to = 11>(x)"), False),
        (CHAIN.replace("{\n", "<bfloat16 w = {1}> {\n"), True),
        (PARTS.replace("Neg(a)", "Cast<to = 16>(a)"), True),
        (CHAIN.replace("Neg(x)", "Dropout<seed = 10>(x)"), False),
        (HEAD + "g (float16[4] x) => (float[4] y) { a = Cast<to = 1>(x) y = Neg(a) }", False),
        (HEAD + "g (bfloat16[4] x) => (float[4] y) { a = Neg(x) y = Cast<to = 1>(a) }", True),
    ],
)  # fmt: skip
def test_what_computes_in_16_bits(text: str, narrow: bool) -> None:
    with contextlib.closing(Document(models.parse(text))) as document:
        assert has_halves(document) is narrow


@pytest.mark.parametrize(
    ("providers", "options", "is_loose"),
    [(("CPU",), {}, False), (("CUDA", "CPU"), {}, True), (("Tensorrt",), {}, True),
     (("CUDA",), {"CUDA": {"use_tf32": "0"}}, False),
     (("CUDA",), {"CUDA": {"use_tf32": "1"}}, True)],
)  # fmt: skip
def test_products_of_a_gpu_may_be_in_tf32(
    providers: tuple[str, ...], options: dict[str, Any], is_loose: bool
) -> None:
    settings = SessionSettings(providers=providers, provider_options=options)
    with contextlib.closing(Document(models.parse(CHAIN))) as document:
        side = ModelSide(document, settings)
        assert (side.may_use_tf32, side.is_loose) == (is_loose, is_loose)
        assert side.run_by().how.endswith(f", {providers[0]}, optimization all")
