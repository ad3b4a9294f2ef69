"""A conversion by a library in a process of its own: how far it is, and what it leaves."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest

from dld_tui.backends.conversion import library_file
from dld_tui.backends.conversion.library_file import by_library
from dld_tui.backends.onnxruntime.runtime import RAISE_LIMITS
from dld_tui.backends.processes import ToolEnd
from dld_tui.core.codec import encode
from dld_tui.core.errors import ActivityError, UnavailableError, UsageError
from dld_tui.core.events import Progress
from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.shapes import InputSpec
from dld_tui.core.process.installation import install_hint
from tests.support import models


def events(path: Path, steps: int) -> list[tuple[float, float | None, str]]:
    found = []
    with contextlib.closing(Document.open(path)) as document, contextlib.ExitStack() as stack:
        for event in by_library(document, "none", {}, "Working", stack, steps):
            assert isinstance(event, Progress)
            found.append((event.done, event.total, event.unit))
    return found


@pytest.mark.parametrize(
    ("steps", "free", "memory"),
    [(0, 1001, 100), (3, 1001, 500), (3, 150, 100), (3, None, 100), (3, 0, 100)],
)
def test_what_the_process_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int, free: int | None, memory: int
) -> None:
    path, asked = models.write(tmp_path, models.CHAIN), list[Any]()

    def run_tool(
        module: str, arguments: Sequence[str], limit_s: float | None, memory: int, *, computed: bool
    ) -> Generator[float, None, ToolEnd]:
        view, result, options = arguments
        assert Path(result) == Path(view).with_name(f"{Path(view).stem}-out.onnx")
        asked.append([module, json.loads(options), limit_s, memory, computed])
        yield 0.26
        return ToolEnd(1, 1.0, timed_out=False, output="std::bad_alloc")

    monkeypatch.setattr(library_file, "run_tool", run_tool)
    monkeypatch.setattr(library_file, "trial_limits", lambda *_: SimpleNamespace(memory=100))
    monkeypatch.setattr(library_file, "free_memory", lambda: free)
    with contextlib.closing(Document.open(path)) as document, contextlib.ExitStack() as stack:
        options = InputSpec("x", "float32", (2,))
        running = by_library(document, "m", options, "Work", stack, steps, 9.0, computed=True)
        assert next(running) == Progress(0.3, None, "s", "Work")
        with pytest.raises(ActivityError) as caught:
            next(running)
    assert asked == [["m", encode(options), 9.0, memory, True]]
    assert caught.value.message == f"Work: it takes over {memory} B"
    assert (caught.value.hint, caught.value.details) == (RAISE_LIMITS, "std::bad_alloc")


@pytest.mark.parametrize("blocked", [{}, {"op_block": ["Mul"]}, {"node_block": ["first"]}])
@pytest.mark.parametrize("keeps", [True, False])
def test_a_library_converts_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocked: dict[str, list[str]], keeps: bool
) -> None:
    pytest.importorskip("onnxruntime")
    source, target = models.write(tmp_path, models.CHAIN), tmp_path / "out.onnx"
    options = {"library": "onnxruntime", "keep_io_types": keeps, "op_block": [], "node_block": []}
    monkeypatch.setattr(sys, "argv", ["x", source.name, target.name, json.dumps(options | blocked)])
    monkeypatch.chdir(tmp_path)
    library_file.fp16_main()
    assert Path.cwd() == tmp_path
    model = onnx.load(target)
    assert {path.name for path in tmp_path.iterdir()} == {source.name, target.name}
    (given,) = model.graph.input
    assert (given.type.tensor_type.elem_type == onnx.TensorProto.FLOAT) is keeps
    inferred = onnx.shape_inference.infer_shapes(model).graph
    wide = {info.name for info in (*inferred.value_info, *inferred.output)
            if info.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}  # fmt: skip
    kept = {"third"} if "op_block" in blocked else {"first"} if blocked else set()
    assert {node.name for node in model.graph.node
            if node.op_type != "Cast" and wide.issuperset(node.output)} == kept  # fmt: skip


def test_what_a_library_needs_and_cannot_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def converted(library: str, **options: Any) -> None:
        with contextlib.closing(Document.open(path)) as document, contextlib.ExitStack() as stack:
            given = {"op_block": [], "node_block": [], **options}
            list(library_file.convert_fp16(document, library, stack, given))

    path = models.write(tmp_path, models.CHAIN)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name == "onnxruntime" or None)
    with pytest.raises(UnavailableError) as caught:
        converted("polygraphy")
    assert caught.value.message == (
        "polygraphy and onnx_graphsurgeon and onnxconverter_common not installed"
    )
    assert caught.value.hint == install_hint("polygraphy", "onnxconverter-common")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    for options in ({"op_block": ["Mul"]}, {"node_block": ["first"]}):
        with pytest.raises(UsageError, match="has no block lists"):
            converted("polygraphy", **options)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (ToolEnd(1, 1.0, timed_out=False, output="Working on it\n[!] set_1: too long\n\n"),
         r"^Working: set_1: too long$"),
        (ToolEnd(1, 1.0, timed_out=False, output="RuntimeError: a\n[E] [b]\n[!] of c\nend [!]\n"),
         r"^Working: of c$"),
        (ToolEnd(1, 1.0, timed_out=False, output="RuntimeError: a\n[E] [b]\nthe end"),
         r"^Working: \[E\] \[b\]$"),
        (ToolEnd(1, 1.0, timed_out=False, output="RuntimeError: a\nthe end"),
         r"^Working: RuntimeError: a$"),
        (ToolEnd(1, 1.0, timed_out=False, output="it begins\nthe  \x1b end\n \n"),
         r"^Working: the \\x1b end$"),
        (ToolEnd(1, 1.0, timed_out=False, output="\n \n"), "^Working: it ended without a message$"),
        (ToolEnd(-15, 7.1, timed_out=True, output=""), "^Working: stopped after 7 s"),
    ],
    ids=["the last that it says", "an error before the end", "its own error", "an exception",
         "no error", "nothing", "it takes too long"],
)  # fmt: skip
def test_why_a_library_made_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: ToolEnd, said: str
) -> None:
    limits: list[object] = []

    def run_tool(module: str, arguments: Sequence[str], limit_s: float, *_: object, **__: object
                 ) -> Generator[float, None, ToolEnd]:  # fmt: skip
        limits.append(limit_s)
        yield 0.1
        return end

    monkeypatch.setattr(library_file, "run_tool", run_tool)
    path = models.write(tmp_path, models.CHAIN)
    with contextlib.closing(Document.open(path)) as document, contextlib.ExitStack() as stack:
        steps = by_library(document, "none", {}, "Working", stack, limit_s=7)
        with pytest.raises(ActivityError, match=said):
            list(steps)
    assert limits == [7]
