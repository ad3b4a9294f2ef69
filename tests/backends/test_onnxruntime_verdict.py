"""What ONNX Runtime itself says of a model, and of which node."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from dld_tui.activities.check.full import Request, Result, run
from dld_tui.backends.onnxruntime import verdict
from dld_tui.core.checks.findings import RuntimeAnswer
from dld_tui.core.errors import UnavailableError
from dld_tui.core.events import Finished
from dld_tui.core.model.inputs.shapes import InputSpec
from dld_tui.core.process.child import CrashError, LimitError, Limits, compute
from tests.support import models
from tests.support.bombs import write_bomb

HEAD = '<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]> '


def asked(path: Path, *, run_it: bool = False, limit_s: float = 60.0) -> Result:
    request = Request(path, onnx=False, runtime=True, run=run_it, time_limit=limit_s)
    end = list(run(request))[-1]
    assert isinstance(end, Finished)
    assert isinstance(end.result, Result)
    return end.result


def told(result: Result) -> list[tuple[str, str, object, object]]:
    """Return level, rule, and the place of each finding."""
    return [(one.level, one.rule, one.remark.place, one.remark.index) for one in result.findings]


REFUSED = {
    "in its kernel, without a name": (
        'g (float[1, 1, 4, 4] x, float[1, 4, 4, 2] i) => (y)'
        ' { a = Relu(x) [bad] b = GridSample<mode="linear">(a, i) y = Neg(b) }',
        [], 1, "linear",
    ),
    "by its shapes": (
        "g (float[1, 3, 8, 8] x, float[4, 2, 3, 3] w) => (y)"
        " { a = Neg(x) b = MatMul(a, w) y = Relu(b) }", [], 1, "Incompatible dimensions",
    ),
    "in a branch": (
        """g (bool c, float[2] x, float[3] z) => (y) { y = If (c) <
        then_branch = t () => (float[2] a) { b = Neg(x) a = Add(b, z) },
        else_branch = e () => (float[2] d) { d = Neg(x) }> }""",
        [0, "then_branch", 0], 1, "Add",
    ),
    "in the kernel of a branch": (
        """g (bool c, float[1, 1, 4, 4] x, float[1, 4, 4, 2] i) => (y) { n = Not(c) y = If (n) <
        then_branch = t () => (float[1, 1, 4, 4] a) { a = GridSample<mode="linear">(x, i) },
        else_branch = e () => (float[1, 1, 4, 4] d) { d = Neg(x) }> }""",
        [1, "then_branch", 0], 0, "linear",
    ),
    "in the kernel of a branch of a branch": (
        """g (bool c, float[1, 1, 4, 4] x, float[1, 4, 4, 2] i) => (y) { n = Not(c) y = If (n) <
        then_branch = t () => (float[1, 1, 4, 4] a) { a = If (c) <
        then_branch = u () => (float[1, 1, 4, 4] k) { k = GridSample<mode="linear">(x, i) },
        else_branch = v () => (float[1, 1, 4, 4] f) { f = Abs(x) }> },
        else_branch = e () => (float[1, 1, 4, 4] d) { d = Neg(x) }> }""",
        [1, "then_branch", 0, 0, "then_branch", 0], 0, "linear",
    ),
    "in the order of a branch": (
        """g (bool c, float[2] x) => (y) { y = If (c) <
        then_branch = t () => (float[2] a) { a = Add(b, x) b = Neg(x) },
        else_branch = e () => (float[2] d) { d = Neg(x) }> }""",
        [0, "then_branch", 0], 0, "topologically sorted",
    ),
    "as it is unknown": ("g (float[2] x) => (y) { a = Neg(x) y = com.microsoft.Foo(a) }",
                         [], 1, "not a registered"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_leads_to_its_node(tmp_path: Path, name: str) -> None:
    text, place, index, words = REFUSED[name]
    result = asked(models.write(tmp_path, HEAD + text))

    assert told(result) == [("error", "onnxruntime:load", place, index)]
    message = result.findings[0].remark.message
    assert words in message
    assert "::" not in message.replace("com.microsoft:", "")
    assert ".cc" not in message
    assert "<n" not in message
    assert result.runtime is not None
    assert result.runtime.loaded is False
    assert result.runtime.version == onnxruntime.__version__
    assert result.runtime.providers == ["CPU"]


def test_a_runtime_that_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> list[str]:
        raise UnavailableError("ONNX Runtime is not installed")

    monkeypatch.setattr(verdict, "providers", absent)
    result = asked(models.write(tmp_path, models.CHAIN))
    assert result.findings == []
    assert result.runtime is not None
    assert (result.runtime.asked, result.runtime.reason) == (False, "ONNX Runtime is not installed")


def test_what_loads_without_end_is_told_in_time(tmp_path: Path) -> None:
    """Each function calls the next one twice: there are 2^40 nodes to inline."""
    functions = "".join(
        f"""<domain: "f", opset_import: ["" : 18, "f" : 1]>
        F{level} (a) => (c) {{ b = f.F{level + 1}(a) c = f.F{level + 1}(b) }}"""
        for level in range(40)
    )
    text = f"""<ir_version: 8, opset_import: ["" : 18, "f" : 1]>
        g (float[2] x) => (y) {{ a = Neg(x) b = f.F0(a) y = Neg(b) }}
        {functions} <domain: "f", opset_import: ["" : 18]> F40 (a) => (c) {{ c = Neg(a) }}"""
    result = asked(models.write(tmp_path, text), limit_s=4)
    assert result.runtime is not None
    assert not result.runtime.loaded
    for _, rule, place, index in told(result):
        assert (rule, place, index) == ("onnxruntime:limit", [], 1)


def test_a_crash_of_a_model_that_is_too_large_is_told_as_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> bytes:
        raise CrashError("it ends the process (SIGSEGV)")

    monkeypatch.setattr(verdict, "compute", crash)
    large = asked(write_bomb(tmp_path, "doubled Concat"))
    small = asked(models.write(tmp_path, HEAD + "g (float[2] x) => (y) { y = Neg(x) }"))
    assert {rule for _, rule, _, _ in told(large)} == {"onnxruntime:limit"}
    assert {rule for _, rule, _, _ in told(small)} == {"onnxruntime:crash"}
    assert large.runtime is not None
    assert small.runtime is not None
    assert (large.runtime.loaded, small.runtime.loaded) == (None, False)


def test_what_is_refused_as_a_whole_is_of_no_node(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 999]> g (float[2] x) => (y) { y = Neg(x) }'
    result = asked(models.write(tmp_path, text))
    assert told(result) == [("error", "onnxruntime:load", None, None)]
    assert result.runtime is not None
    assert (result.runtime.loaded, result.runtime.reason) == (False, "")


def test_a_run_without_end_is_told_with_its_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the first of those with which a part of the model has no end, too."""

    def answer(question: partial[bytes], limits: Limits) -> bytes:
        path, _, is_run = question.args
        if is_run and "Abs" in {node.op_type for node in onnx.load(path).graph.node}:
            raise LimitError("time", limits.seconds)
        return compute(question, limits)

    monkeypatch.setattr(verdict, "compute", answer)
    text = "g (float[2] x) => (y) { [a] a = Neg(x) [b] b = Abs(a) [c] c = Exp(b) [d] y = Cos(c) }"
    result = asked(models.write(tmp_path, HEAD + text), run_it=True, limit_s=30)
    assert result.findings == []
    assert result.runtime is not None
    assert result.runtime.loaded is True
    assert result.runtime.ran is None
    assert result.runtime.reason.startswith("run: node b: no answer after ")


@pytest.mark.parametrize(
    ("dtype", "dims", "tried", "is_varied"),
    [
        ("int64", (1,), [(1,)], False),
        ("int64", ("N",), [(1,), (1,)], False),
        ("int64", (2,), [(2,)], True),
        ("uint8", None, [(1,), (1, 1)], False),
        ("float32", (1,), [(1,)], True),
        ("float32", ("N", 2), [(1, 2)], False),
        ("float32", ("N", 2), [(1, 2), (3, 2)], True),
        ("float32", ("N", "M"), [(1, 2), (3, 2)], False),
        ("float32", None, [(1,), (1,)], False),
        ("float32", None, [(1,), (2,)], True),
    ],
)
def test_a_failure_is_certain_where_every_free_size_was_varied(
    dtype: str, dims: tuple[int | str, ...] | None, tried: list[tuple[int, ...]], is_varied: bool
) -> None:
    shapes = [{"x": shape, "other": (len(tried),)} for shape in tried]
    assert verdict._is_varied(InputSpec("x", dtype, dims), shapes) is is_varied


LOAD, KERNEL = ("error", "onnxruntime:load"), ("warning", "no-kernel")


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("""<ir_version: 8, opset_import: ["" : 18, "f" : 1]>
        g (float[2, 4] x, float[5, 3] w) => (y) { y = f.Twice(x, w) }
        <domain: "f", opset_import: ["" : 18]>
        Twice (a, b) => (c) { d = Relu(a) c = MatMul(d, b) }""", [(*LOAD, ["function", 0], 1)]),
        (HEAD + """g (float[1, 1, 4, 4] x, float[1, 4, 4, 2] i, float[5] w) => (y, z, k)
        { y = GridSample<mode="linear">(x, i) z = Add(x, w) k = Neg(x) }""",
         [(*LOAD, [], 0), (*LOAD, [], 1)]),
        (HEAD + "g (bfloat16[4, 4] x) => (y) { y = MatMul(x, x) }", [(*KERNEL, [], 0)]),
        ("""<ir_version: 3, opset_import: ["" : 6]> g (float[2, 2] x) => (y)
        <float[2, 2] w = {1, 2, 3, 4}, float[2] b = {1, 2}>
        { a = MatMul(x, w) c = Mul<broadcast = 1>(a, b) y = Relu(c) }""", [(*KERNEL, [], 1)]),
    ],
    ids=["in a function", "several", "no kernel", "weights of an old file that are no inputs"],
)  # fmt: skip
def test_where_findings_are(tmp_path: Path, text: str, findings: list[Any]) -> None:
    assert sorted(told(asked(models.write(tmp_path, text)))) == findings


def test_what_takes_all_processors_long_is_asked_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial of several threads may use much more than its time on the clock."""
    used = itertools.count(0.0, 1e6)
    monkeypatch.setattr(verdict, "_used_by_forks", lambda: next(used))
    text = (
        HEAD
        + """g (float[1, 1, 4, 4] x, float[1, 4, 4, 2] i, float[5] w) => (y, z)
        { y = GridSample<mode="linear">(x, i) z = Add(x, w) }"""
    )
    result = asked(models.write(tmp_path, text))
    assert result.runtime is not None
    assert not result.runtime.loaded
    assert told(result) == [("error", "onnxruntime:load", [], 1)]


def test_the_same_name_twice_is_refused(tmp_path: Path) -> None:
    text = HEAD + "g (float[4] x) => (y) { [n] a = Neg(x) [n] y = Neg(a) }"
    assert answer_of(models.write(tmp_path, text)).loaded is False


def answer_of(path: Path, **more: Any) -> RuntimeAnswer:
    answer = asked(path, **more).runtime
    assert answer is not None
    return answer


def test_weights_of_any_size_take_no_memory(tmp_path: Path) -> None:
    """40 GB of float16, which ONNX Runtime casts to float32 when it folds constants."""
    size, layers = 1 << 15, 20
    weights = "".join(f", float16[{size}, {size}] w{at} = [\"location\": \"data\"]"
                      for at in range(layers))  # fmt: skip
    nodes = "".join(f" t{at + 1} = MatMul(t{at}, w{at})" for at in range(layers))
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
        g (float16[1, {size}] t0) => (float16[1, {size}] t{layers}) <{weights[2:]}> {{{nodes} }}"""
    path = models.write(tmp_path, text)
    with open(tmp_path / "data", "wb") as file:
        file.truncate(2 * size * size)
    result = asked(path)
    assert result.findings == []
    assert result.runtime is not None
    assert result.runtime.loaded is True


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("g (float[4] x, float[4] y) => (z) { a = Neg(x) z = Mod(a, y) }",
         [("error", "onnxruntime:run", [], 1)]),
        ("g (int64[N] i) => (z) { d = Constant<value_floats=[1.0, 2.0]>() z = Gather(d, i) }", []),
        # ONNX allows the output without a name; ONNX Runtime 1.31 gets SIGSEGV.
        ("g (float[2, 4] x) => (y) { a = Neg(x) , b = Split<axis=1, num_outputs=2>(a) y = Neg(b) }",
         [("error", "onnxruntime:crash", [], 1)]),
    ],
    ids=["fails at every run", "may fail", "ends the process"],
)  # fmt: skip
def test_a_run(tmp_path: Path, text: str, findings: list[Any]) -> None:
    result = asked(models.write(tmp_path, HEAD + text), run_it=True)
    assert told(result) == findings
    assert result.runtime is not None
    assert result.runtime.loaded is True
    assert result.runtime.ran is not bool(findings)
    if findings and findings[0][1] == "onnxruntime:crash":
        assert "SIGSEGV" in result.findings[0].remark.message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("""g (float[2] x) => (y) <int64 n = {1000000000000}, bool t = {1}>
        { y = Loop (n, t, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w)
        { d = Identity(c) w = Neg(v) }> }""", "node >y (Loop): it takes over"),
        ("g (seq(float[2]) s) => (y) { y = SequenceLength(s) }", "run: an input is not a tensor"),
    ],
    ids=["without end", "nothing can be fed"],
)  # fmt: skip
def test_a_model_that_cannot_be_run_is_told(tmp_path: Path, text: str, reason: str) -> None:
    result = asked(models.write(tmp_path, HEAD + text), run_it=True, limit_s=2)
    assert result.findings == []
    assert result.runtime is not None
    assert (result.runtime.loaded, result.runtime.ran) == (True, None)
    assert reason in result.runtime.reason


def test_a_model_is_tried_with_random_numbers_and_with_alike_ones() -> None:
    class Guess:
        values = staticmethod(
            lambda seed: {"x": np.array([seed + 2.0, 3]), "t": np.array(["a", "b"], object),
                          "b": np.array([False, False])}
        )  # fmt: skip

    found = [*verdict._values_of(Guess())]  # type: ignore[arg-type]
    assert [{name: value.tolist() for name, value in one.items()} for one in found] == [
        {"x": [2.0, 3.0], "t": ["a", "b"], "b": [False, False]},
        {"x": [0.0, 0.0], "t": ["a", "b"], "b": [False, False]},
        {"x": [1.0, 1.0], "t": ["a", "b"], "b": [True, True]},
    ]
    Guess.values = staticmethod(lambda seed: {"x": np.zeros(2), "t": np.array(["a"], object)})
    assert len([*verdict._values_of(Guess())]) == 2, "zeros are tried once"  # type: ignore[arg-type]
