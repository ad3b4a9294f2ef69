"""All that a verification tells of a model and a result that was made of it: verification.txt."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.core.codec import encode
from dld_tui.core.conversion.accuracy_criteria import (
    BFLOAT16,
    QUANTIZED,
    SAME,
    AccuracyCriteria,
)
from dld_tui.core.conversion.request import Verification
from dld_tui.core.conversion.result import ComparedValues, NotCompared
from dld_tui.core.errors import DldError
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.recorded import Recorded, settled

pytest.importorskip("onnxruntime")

from dld_tui.backends.conversion import verification

pytestmark = pytest.mark.usefixtures("replaces_all")
HEAD = '<ir_version: 10, opset_import: ["" : 18, "f" : 1, "com.microsoft" : 1]>\n'
CHAIN = HEAD + "g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) { y = Neg(x) z = Add(x, x) }"
PARTS = (
    HEAD
    + """g (float[N, 4] x) => (seq(float[N, 4]) s, float[N, 4] y, float[N, 4] z)
{ y = Relu(x) a = Neg(x) s = SequenceConstruct(y, a) noise = RandomNormalLike(x)
  z = Add(x, noise) }"""
)
OF = "<float big = {90000}, float small = {0.00001}, float k = {2}, float[4] w = {1, 2, 3, 100000}>"
OVER = (
    HEAD
    + f"""g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) {OF} {{
  [up] a = Mul(x, big) [down] y = Mul(a, small) [fine] b = Mul(x, k) [weight] z = Mul(b, w) }}"""
)
ONE = HEAD + "g (float[2] x) => (float[2] y) <float zero = {0}> { y = %s }"


@dataclass
class Case:
    before: str
    after: str = ""
    """Empty for the same."""
    criteria: AccuracyCriteria = SAME
    asked: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)


CASES = {
    "the same": Case(CHAIN),
    "one that is wrong": Case(CHAIN, CHAIN.replace("Add(x, x)", "Mul(x, x)"), more={"hint": "Do"}),
    "one of another size": Case(CHAIN, CHAIN.replace("float[N, 4] z", "float[M, 4] z")
                                .replace("Add(x, x)", "Concat <axis = 0> (x, x)")),
    "one of another type": Case(ONE % "Identity(x)", (ONE % "Cast<to = 11>(x)")
                                .replace("float[2] y", "double[2] y")),
    "for given shapes": Case(CHAIN, asked={"shape": ("x:3x4",)}),
    "for a shape that does not fit": Case(CHAIN, asked={"shape": ("ghost:3x4",)}),
    "for files": Case(CHAIN, CHAIN.replace("Add(x, x)", "Abs(x)"), asked={"inputs": Path("data")}),
    "within a tolerance": Case(CHAIN, CHAIN.replace("Neg(x)", "Identity(x)"),
                               asked={"tolerance": ("atol=100",)}),
    "out of a tolerance": Case(CHAIN, CHAIN.replace("Neg(x)", "Identity(x)"),
                               asked={"tolerance": ("atol=100", "y:atol=0.5")}),
    "a tolerance of what is no output": Case(CHAIN, asked={"tolerance": ("a:atol=100",)}),
    "a tolerance that is none": Case(CHAIN, asked={"tolerance": ("odd",)}),
    "not verified": Case(CHAIN, asked={"verify": False}),
    "not compared": Case(CHAIN, asked={"values": "never"}),
    "unchanged": Case(CHAIN, more={"unchanged": "nothing was converted"}),
    "parts and random numbers": Case(PARTS, PARTS.replace("a = Neg", "a = Abs")),
    "fewer parts": Case(PARTS, PARTS.replace("(y, a)", "(y)")),
    "maps": Case('<ir_version: 10, opset_import: ["" : 18, "ai.onnx.ml" : 3]> g (float[3, 2] x)'
                 " => (seq(map(int64, float)) y)"
                 " { y = ai.onnx.ml.ZipMap <classlabels_int64s = [4, 5]> (x) }"),
    "only random numbers": Case(ONE % "RandomNormalLike(x)"),
    "only zeros": Case(ONE % "Mul(x, zero)"),
    "only NaN": Case(ONE % "Div(zero, zero)", (ONE % "Div(zero, zero)")),
    "an input that is no tensor": Case(HEAD + "g (seq(float[2]) s) => (int64 y)"
                                       " { y = SequenceLength(s) }"),
    "a result that does not load": Case(CHAIN, CHAIN.replace("Add(x, x)", "MatMulInteger(x, x)")),
    "a result that does not run": Case(ONE % "Neg(x)", ONE % "Reshape(x, k)", more={"hint": "Do"}),
    "neither runs": Case(ONE % "f.Odd(x)", ONE % "f.Odd(x)"),
    "bfloat16": Case(OVER, criteria=BFLOAT16),
    "quantized": Case(CHAIN, CHAIN.replace("Neg(x)", "Abs(x)"), QUANTIZED),
    "few weights": Case(OVER, asked={"values": "auto"}),
}  # fmt: skip
WEIGHT = "<int64[2] k = {3, -1}>"


def opened(folder: Path, text: str) -> Document:
    if "Reshape(x, k)" in text:
        text = text.replace("<float zero = {0}>", WEIGHT)
    return Document.open(models.write(folder, text))


def lines_of(values: ComparedValues | NotCompared) -> Iterator[str]:
    """Yield what is told of values, with three digits of each figure."""
    if isinstance(values, NotCompared):
        yield f"not compared: {values.skipped}"
        return
    for name, row in values.outputs.items():
        figures = [row.max_abs, row.largest, row.snr_db]
        shown = ["-" if one is None else f"{one:.3g}" for one in figures]
        yield f"{name} {row.shape}: {', '.join(shown)} {row.mismatch} | {row.problem}"
    known = encode(replace(values, outputs={}))
    yield from (f"{key}: {json.dumps(value)}" for key, value in known.items() if value)


def told(case: Case, folder: Path) -> Iterator[str]:
    (folder / "other").mkdir(parents=True)
    asked = {**case.asked}
    if "inputs" in asked:
        asked["inputs"] = folder / "data"
        asked["inputs"].mkdir()
        np.save(folder / "data" / "x.npy", np.array([[-1, 2, -3, 4]], np.float32))
    output = folder / "out.onnx"
    with (
        closing(opened(folder, case.before)) as before,
        closing(opened(folder / "other", case.after or case.before)) as after,
    ):
        request = Verification(**asked)
        steps = verification.verified(request, before, after, output, case.criteria, **case.more)
        stages = list[str]()
        try:
            while True:
                event = next(steps)
                if isinstance(event, Log):
                    yield f"log {event.text}"
                elif isinstance(event, Progress) and event.stage not in stages:
                    stages.append(event.stage)
        except StopIteration as end:
            (values, latency), notes = end.value
            yield from (f"note {note}" for note in notes)
            yield from lines_of(values)
            if latency is not None:
                yield f"{latency.before} ms, then {latency.after}, clear {latency.is_clear}"
        except DldError as error:
            yield f"! {type(error).__name__} {error.message}"
            yield f"! {error.where} | {error.hint}"
        yield f"stages {stages}"


@pytest.mark.broad
def test_what_is_told_of_results(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alternating(passes: list[Any]) -> Any:
        """Run each once; the quartiles of the second model lie above, or overlap."""
        yield Progress(1, None, "passes", "Measuring")
        sizes = [len(run()) for run in passes]
        return [[1.0, 2.0, 3.0], [3.0 if sizes[0] > 1 else 3.5, 4.0, 5.0]]

    monkeypatch.setattr(verification, "_alternating", alternating)
    found = {}
    for at, (name, case) in enumerate(CASES.items()):
        folder = tmp_path / str(at)
        text = settled("\n".join(told(case, folder)), folder)
        found[name] = re.sub(r"ONNX Runtime [\d.]+ cannot load it: .*", "it is not loaded", text)
    recorded("verification", found)


def test_two_models_are_run_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a second whenever it is looked at makes each pass a second."""
    ran: list[str] = []
    monkeypatch.setattr(verification, "perf_counter", itertools.count().__next__)
    quartiles: list[list[float]] = []

    def steps() -> Iterator[Event]:
        passes: list[Callable[[], object]] = [
            lambda: ran.append("before"),
            lambda: ran.append("after"),
        ]
        quartiles.extend((yield from verification._alternating(passes)))

    events = [*steps()]
    assert quartiles == [[1000.0] * 3] * 2
    assert ran == ["before", "after"] * 6  # the first time, memory is allocated
    assert events == [
        Progress(done, None, "passes", "Measuring both models") for done in range(1, 5)
    ]


def test_models_that_are_loaded_for_long_are_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "perf_counter", itertools.count(step=40).__next__)
    said = [*told(Case(CHAIN), tmp_path)]
    assert "log Latencies not measured: ONNX Runtime takes too long to load both models" in said
    assert not any("ms, then" in line for line in said)
