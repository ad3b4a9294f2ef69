"""A file in a few lines: what it is, read lazily and without weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from threading import Lock, Thread
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.summary import GraphTensor, ModelSummary
    from dld_tui.core.process.child import Child

_MOST_TENSORS = 3
_MOST_TYPES = 5
_MOST_PARTS = 12
_MOST_BETWEEN = 3
"""Operators that name a part that is no block."""
_MOST_NODES = 5_000
"""Of a graph whose blocks are looked for: a tenth of a second."""


@dataclass(frozen=True)
class Preview:
    """What is shown of a file. Fit for a tensor."""

    lines: Sequence[tuple[str, str]] = ()
    """What a line is about, and the line."""
    parts: Sequence[tuple[str, str, float]] = field(default=())
    """What it is made of: a name, how much as text, and that as a part of the largest one.

    Of a model the parts of its graph in their order, by nodes; of a report types of layers, by
    their time.
    """
    problem: str = ""
    """Why there is nothing to show."""


def preview(path: str, kind: str, cancelled: CancelCheck, reports: Iterable[str] = ()) -> Preview:
    """Return what is in a file.

    Args:
        path: The file.
        kind: A name of ``FileKind``.
        cancelled: Asked now and then.
        reports: Report files that may be of the model, the newest first.

    Raises:
        CancelledError: `cancelled` said so.
    """
    try:
        if kind in ("ONNX", "ONNX_TEXT"):
            return _of_model(path, cancelled, reports)
        if kind == "REPORT":
            return _of_report(path)
        if kind == "TUNING":
            return _of_tuning(path)
        if kind == "SWEEP":
            return _of_sweep(path)
        if kind.startswith("ENGINE_") and kind not in ("ENGINE_PROFILE", "ENGINE_TIMES"):
            return _of_engine(path)
    except CancelledError:
        raise
    except DldError as error:
        return Preview(problem=visible(error.message))
    except (OSError, ValueError) as error:
        return Preview(problem=visible(str(error)))
    return Preview()


def _of_tuning(path: str) -> Preview:
    from dld_tui.core.tune.result import load_result, result_parts

    parts = result_parts(load_result(Path(path)))
    return Preview([(name.lower() or "tuned", text) for name, text in parts[:4]])


def _of_sweep(path: str) -> Preview:
    from dld_tui.core.report.sweep import load_sweep
    from dld_tui.core.report.sweep_export import sweep_lines

    sweep = load_sweep(Path(path))
    return Preview([("swept", visible(sweep.model)), *(("", line) for line in sweep_lines(sweep))])


def _of_model(path: str, cancelled: CancelCheck, reports: Iterable[str]) -> Preview:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.summary import summarise
    from dld_tui.core.model.tensors.value_types import alias_legend, aliases_in

    document = Document.open(path, cancelled=cancelled)
    try:
        if cancelled():
            raise CancelledError
        summary = summarise(document, constants=False)
        inputs = [tensor for tensor in summary.inputs if not tensor.has_default]
        aliases = aliases_in(document.main)
        lines = [
            *_terminal_lines("in", inputs, aliases),
            *_terminal_lines("out", summary.outputs, aliases),
            *([("dims", alias_legend(aliases))] if aliases else ()),
            ("nodes", _counted(summary.nodes_total, summary.op_types)),
            ("weights", _weights(document, summary)),
        ]
        if summary.producer:
            version = summary.opsets.get("")
            lines.append(
                ("from", visible(summary.producer) + (f", opset {version}" if version else ""))
            )
        parts = _parts(document) if summary.nodes <= _MOST_NODES else ()
    finally:
        document.close()
    lines += _last_profile(path, reports)
    return Preview(lines, parts)


def _terminal_lines(
    title: str, tensors: Sequence[GraphTensor], aliases: Mapping[str, str]
) -> list[tuple[str, str]]:
    from dld_tui.core.model.tensors.value_types import with_aliases

    types = [with_aliases(tensor.type.short, aliases) if tensor.type else "–" for tensor in tensors]
    lines = [
        ("" if index else title, f"{visible(tensor.name)}  {visible(types[index])}")
        for index, tensor in enumerate(tensors[:_MOST_TENSORS])
    ]
    if len(tensors) > _MOST_TENSORS:
        lines[-1] = ("", f"and {len(tensors) - _MOST_TENSORS + 1} more")
    return lines or [(title, "none")]


def _counted(nodes: int, types: dict[str, int]) -> str:
    shown = ", ".join(
        f"{visible(name)} {count:,}" for name, count in [*types.items()][:_MOST_TYPES]
    )
    rest = len(types) - _MOST_TYPES
    more = f", +{fmt.plural(rest, 'type')}" if rest > 0 else ""
    return f"{nodes:,}: {shown}{more}" if types else f"{nodes:,}"


def _weights(document: Document, summary: ModelSummary) -> str:
    precisions = _precisions(document) if summary.parameters else ""
    return f"{summary.parameters_text}{precisions}"


def _precisions(document: Document) -> str:
    """Return the types of weights by their share of the bytes, as ``, float32 97 %``."""
    from dld_tui.core.model.tensors.tensor import Tensor

    sizes = Counter[str]()
    for proto in document.main.records["initializer"]:
        tensor = Tensor(proto, document)
        sizes[tensor.dtype] += tensor.nbytes or 0
    total = sizes.total()
    if not total:
        return ""
    names = [name for name, _ in sizes.most_common(2)]
    shares = fmt.whole_percents([sizes[name] for name in names], total)
    if shares[0] == "100":
        return f", {names[0]}"
    pairs = zip(names, shares, strict=True)
    return "".join(f", {name} {share} %" for name, share in pairs if share.isdigit())


def _parts(document: Document) -> list[tuple[str, str, float]]:
    """Return the parts of the main graph: blocks, and by their operators what is between."""
    from dld_tui.core.model.graph.build import graph_of
    from dld_tui.core.model.graph.folding import arranged_rows
    from dld_tui.core.model.graph.graph import Kind

    graph = graph_of(document.main).graph
    rails, folds = arranged_rows(graph)
    blocks: list[tuple[str, int]] = []
    at = 0

    def between(end: int) -> None:
        if end > at:
            inside = rails.order[at:end]
            nodes = [
                block_vertex
                for block_vertex in inside
                if graph.kinds[block_vertex] not in (Kind.INPUT, Kind.OUTPUT)
            ]
            names = [*dict.fromkeys(graph.labels[vertex] for vertex in nodes or inside)]
            more = ["…"] if len(names) > _MOST_BETWEEN else []
            blocks.append((" ".join([*map(visible, names[:_MOST_BETWEEN]), *more]), end - at))

    for fold in folds:
        between(fold.start)
        times = f"{fold.count} × " if fold.count > 1 else ""
        blocks.append((f"{times}{visible(fold.label)}", len(fold)))
        at = fold.end
    if blocks:
        between(len(graph))
    shown = blocks[:_MOST_PARTS]
    most = max((nodes for _, nodes in shown), default=0)
    return [(title, f"{nodes:,}", nodes / most) for title, nodes in shown]


def _last_profile(path: str, reports: Iterable[str]) -> list[tuple[str, str]]:
    """Return what the newest report of a model says, if there is one."""
    from dld_tui.core.reading.first_lines import brief
    from dld_tui.core.report.report import Report
    from dld_tui.core.report.reports_of_model import reports_of

    for file in reports_of(path, reports):
        try:
            report = Report.open(file)
        except (DldError, OSError):
            continue
        with report:
            latency = brief(report)
        age = ago(max(time() - os.stat(file).st_mtime, 0.0))
        return [("profile", f"{latency}, {age}: {visible(os.path.basename(file))}")]
    return []


def _of_report(path: str) -> Preview:
    from dld_tui.core.reading.first_lines import brief
    from dld_tui.core.reading.story import types_of
    from dld_tui.core.report.report import Report

    report = Report.open(path)
    try:
        lines = [("model", visible(report.network) or fmt.UNKNOWN), ("takes", brief(report))]
        lines.append(
            ("with", ", ".join(filter(None, map(visible, (report.backend, report.device)))))
        )
        if report.status == "partial":
            lines.append(("", "stopped before its end"))
        groups = [(group.key, group.percent) for group in types_of(report)[:_MOST_TYPES]]
    finally:
        report.close()
    most = max((percent for _, percent in groups), default=0.0) or 1.0
    parts = [(visible(key), f"{fmt.percent(share)} %", share / most) for key, share in groups]
    return Preview(lines, parts)


def _of_engine(path: str) -> Preview:
    from dld_tui.core.tensorrt.plan.reader import open_plan

    plan = open_plan(path)
    types = Counter(layer.type for layer in plan.layers)
    shown = "  ".join(f"{visible(name)} {count}" for name, count in types.most_common(_MOST_TYPES))
    return Preview([("engine", visible(plan.title)), ("layers", f"{len(plan.layers):,}: {shown}")])


def ago(seconds: float) -> str:
    """Return how long ago something was, e.g. ``3 h ago``."""
    return f"{age_text(seconds)} ago" if seconds >= _NOW_S else "just now"


def age_text(seconds: float) -> str:
    """Return an age for a narrow column, e.g. ``3 h``."""
    if seconds < _NOW_S:
        return "now"
    for unit_s, unit in ((86400 * 365, "y"), (86400 * 30, "mo"), (86400, "d"), (3600, "h")):
        if seconds >= unit_s:
            return f"{int(seconds // unit_s)} {unit}"
    return f"{int(seconds // 60)} min"


_NOW_S = 60


_IDLE_S = 5.0
"""A child that was not asked anything for so long ends."""
_STUCK_S = 3.0
"""One that has worked on another question for so long is left alone, and another one started."""
_LOOK_S = 0.05
_CHUNK = 1 << 16
# Isolated, so that no file of the folder that is browsed is taken for a module.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from dld_tui.core.reading.preview import main; main()"
)


class Previewer:
    """Asks the child; may be used by several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: Child | None = None
        self._number = 0
        self._asked_at = 0.0
        """When the question was asked that has no answer yet; 0 for none."""
        self._closed = False
        self._received = b""
        """The beginning of a line that the child has not sent to its end."""

    def preview(
        self, path: str, kind: str, cancelled: CancelCheck, reports: Iterable[str] = ()
    ) -> Preview:
        """Return what is in a file, as :func:`~dld_tui.core.reading.preview.preview` does.

        Raises:
            CancelledError: `cancelled` said so, or this was closed.
        """
        while not self._lock.acquire(timeout=_LOOK_S):
            if cancelled():
                raise CancelledError
        try:
            return self._ask(path, kind, cancelled, list(reports))
        finally:
            self._lock.release()

    def _ask(self, path: str, kind: str, cancelled: CancelCheck, reports: list[str]) -> Preview:
        if self._asked_at and monotonic() - self._asked_at > _STUCK_S:
            self._end()
        self._number += 1
        question = json.dumps([self._number, path, kind, reports]).encode() + b"\n"
        try:
            process = self._send(question)
        except OSError:  # no process can be started
            return preview(path, kind, cancelled, reports)
        self._asked_at = monotonic()
        answer = self._answer(process, cancelled)
        self._asked_at = 0.0
        if answer is None:
            self._end()
            return Preview(problem="it cannot be read")
        _, lines, parts, problem = answer
        return Preview([(a, b) for a, b in lines], [(a, b, c) for a, b, c in parts], problem)

    def _send(self, question: bytes) -> Child:
        """Send a question to the child, or to a new one where it has ended.

        Raises:
            OSError: There is none, and none can be started.
            CancelledError: This was closed, which another thread may do at any time.
        """
        for is_last in (False, True):
            if self._process is None or self._process.poll() is not None:
                self._end()
                self._process = _started()
            if self._closed:
                self._end()
                raise CancelledError
            assert self._process.stdin is not None  # a pipe
            try:
                self._process.stdin.write(question)
            except BrokenPipeError:  # it has just ended
                if is_last:
                    raise
                self._end()
            else:
                break
        assert self._process is not None
        return self._process

    def _answer(self, process: Child, cancelled: CancelCheck) -> Any:
        """Return the answer to the newest question; None when the child has ended without it.

        Raises:
            CancelledError: `cancelled` said so; the child goes on until the next question.
        """
        assert process.stdout is not None  # a pipe
        with DefaultSelector() as selector:
            selector.register(process.stdout, EVENT_READ)
            while not cancelled():
                if not selector.select(_LOOK_S):
                    continue
                part = os.read(process.stdout.fileno(), _CHUNK)
                if not part:
                    return None
                *lines, self._received = (self._received + part).split(b"\n")
                for answer in map(json.loads, lines):
                    if answer[0] == self._number:
                        return answer
        raise CancelledError

    def close(self) -> None:
        """End the child, whatever it is doing; none is started any more."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        process, self._process, self._asked_at = self._process, None, 0.0
        self._received = b""
        if process is not None:
            process.close()


def _started() -> Child:
    from dld_tui.core.process.child import Child

    paths = [str(Path(__file__).parents[2]), *filter(os.path.isabs, sys.path)]
    process = Child(
        [sys.executable, "-I", "-S", "-c", _START, json.dumps(paths)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    # It ends by itself: without somebody who waits for that it would stay as a zombie.
    Thread(target=process.wait, daemon=True, name="preview child").start()
    return process


def main(source: int = 0, sink: int = 1) -> None:
    """Answer the questions on standard input, or of another file descriptor."""
    received = b""
    with DefaultSelector() as selector:
        selector.register(source, EVENT_READ)
        while selector.select(_IDLE_S):
            part = os.read(source, _CHUNK)
            if not part:
                return
            *questions, received = (received + part).split(b"\n")
            if not questions or received:
                continue  # there is a newer one
            number, path, kind, reports = json.loads(questions[-1])
            try:
                result = preview(path, kind, lambda: bool(selector.select(0)), reports)
            except CancelledError:
                continue
            answer = [number, list(result.lines), list(result.parts), result.problem]
            data = json.dumps(answer).encode() + b"\n"
            while data:
                data = data[os.write(sink, data) :]
