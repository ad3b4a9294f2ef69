"""What the installed ONNX Runtime itself says of a model: whether it loads and runs it.

A session is created with default options in forks that may end in any way, with limits of time and
of memory. ONNX Runtime stops at the first error, so the node of an error is taken away, and the
rest is asked again, a few times. Where its message names no node, or its process ends, bisection of
the nodes in their order finds the one.

The model is a view (:mod:`dld_tui.core.files.model_set`) whose nodes have labels as names.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import resource
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import asdict, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.backends.onnxruntime.runtime import (
    FATAL,
    SUFFIX,
    find_fault,
    load,
    named_node,
    providers,
    version,
)
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings, session_options
from dld_tui.core.checks.findings import (
    CRASH,
    KERNEL,
    LIMIT,
    LOAD,
    RUN,
    RuntimeAnswer,
    ToolFinding,
)
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UnavailableError, UsageError
from dld_tui.core.events import result_of
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.external import dense_tensors, is_external, payload_length
from dld_tui.core.files.model_set import binary_file, discard_view, external_view
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.cost.forecast import TYPICAL, Excess, Forecast
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.locations import (
    Labels,
    Place,
    bodies,
    bodies_of,
    names_used,
    scope_at,
)
from dld_tui.core.model.document.scope import INITIALIZERS_WITHOUT_INPUTS
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.operators.native import MOST_NODES, call_size, expansion, trial_limits
from dld_tui.core.model.shapes.inference import sorted_positions
from dld_tui.core.process.child import (
    CrashError,
    LimitError,
    Limits,
    RefusedError,
    compute,
    says_no_memory,
)
from dld_tui.core.reach import reached
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.inputs.guess import Guess
    from dld_tui.core.model.inputs.shapes import AnyArray, InputSpec

_NOT_ASKED = ("Tensorrt", "NvTensorRTRTX", "Azure")
"""Providers that build an engine for minutes, or ask a server."""
_LARGE = 1 << 30
"""Bytes of weights from which on constants are not folded and weights are not packed: both copy."""
_MAPPED = 3
"""How often weights in a data file are mapped, at most."""
_MOST_ROUNDS = 8
"""Errors that are looked for."""
_PROBE_S = 10.0
"""Time limit of a probe of the bisection."""
_ALL = 3
"""How much more processor time than one trial all attempts may take."""
_BATCH, _OTHER = 3, 7
"""Sizes of a batch, and of all dimensions with names, that are tried besides the guessed ones."""


@dataclass
class Fault:
    """What ONNX Runtime refused."""

    doing: str
    """``load`` or ``run``."""
    kind: str
    """The class of its exception."""
    text: str
    """Foreign text, with labels in the place of names."""
    inputs: list[str] = field(default_factory=list)
    """Guessed shapes of the inputs that it was run with."""
    is_certain: bool = True
    """Whether it fails with all inputs that were tried, of several sizes."""


@dataclass(frozen=True)
class _End:
    """How an attempt ended."""

    fault: Fault | None = None
    ended: str = ""
    """How the process ended without an answer; empty if it answered."""
    rule: str = CRASH
    is_complete: bool = False
    """Whether the text says at which node, or that none is to blame."""

    @property
    def is_good(self) -> bool:
        """Whether the model was taken."""
        return self.fault is None and not self.ended


def ask(
    view: Path, labels: Labels, *, run: bool, limit_s: float
) -> Generator[float, None, tuple[RuntimeAnswer, list[ToolFinding]]]:
    """Ask ONNX Runtime about a model; return its answer, and what it refuses.

    Args:
        view: The file of the view; parts of it are written beside it, and removed.
        labels: Those of its nodes.
        run: Whether the model is run once, on guessed inputs, where it can be loaded.
        limit_s: The time limit of it all, in seconds.

    Yields:
        The elapsed seconds before each attempt.
    """
    try:
        names = asked_providers()
        answer = RuntimeAnswer(True, version(), names)
    except UnavailableError as error:
        return RuntimeAnswer(False, reason=error.message), []
    asking = _Asking(view, labels, limit_s)
    if size := asking.expanded_size():
        reason = f"its calls of local functions stand for {size:.3g} nodes"
        return RuntimeAnswer(False, version(), names, reason=reason), []
    try:
        findings = yield from asking.findings()
        if run and not findings and not asking.reason:
            findings = yield from asking.run()
            answer.ran = asking.has_run
    finally:
        asking.part.unlink(missing_ok=True)
    answer.loaded = asking.has_loaded
    answer.reason = asking.reason
    return answer, findings


def node_at_limit(document: Document, limit_s: float) -> Node | None:
    """Return the first node with which a model takes more time or memory than a trial may.

    Args:
        document: The model, which was tried before, and did.
        limit_s: The time limit of the search in seconds.

    Returns:
        The node; None if it is not found in time.
    """
    folder = document.path.parent if document.path is not None else None
    view = external_view(
        skeleton_bytes(document), document.blobs, folder, external=document.external, values=False
    )
    try:
        asking = _Asking(view, Labels.of_file(view), limit_s)
        place = result_of(asking.place_at_limit())
    finally:
        discard_view(view)
    if place is None:
        return None
    scope = scope_at(document, place[0])
    return None if scope is None else scope.nodes[place[1]]


def _used_by_forks() -> float:
    """Return the processor time in seconds of all forks that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def asked_providers() -> list[str]:
    """Return the short names of the installed providers that are asked.

    Raises:
        UnavailableError: ONNX Runtime is not installed.
    """
    return [name for name in providers() if name not in _NOT_ASKED]


def external_bytes(model: onnx.ModelProto) -> int:
    """Return how many bytes the tensors of a model have in data files."""
    tensors = (tensor for tensor in dense_tensors(model) if is_external(tensor))
    return sum(payload_length(tensor) or 0 for tensor in tensors)


def settings_to_load(weight_bytes: int) -> SessionSettings:
    """Return the default settings; for large weights those with which nothing copies them."""
    if weight_bytes <= _LARGE:
        return SessionSettings(providers=tuple(asked_providers()), quiet=True)
    return SessionSettings(
        quiet=True,
        optimization_level="basic",
        left_out=("ConstantFolding",),
        memory_pattern=False,  # it reserves the size of all weights
        config={"session.disable_prepacking": "1"},
    )


class _Asking:
    """One model that is asked about."""

    def __init__(self, view: Path, labels: Labels, limit_s: float) -> None:
        self._view = view
        self._labels = labels
        self._began = time.monotonic()
        self._end = self._began + limit_s
        self._limit_s = limit_s
        self.part = view.with_name(f"{view.name}.part")
        self._model = onnx.ModelProto.FromString(view.read_bytes())
        self._weight_bytes = external_bytes(self._model)
        self._trial = trial_limits(view.stat().st_size, self._weight_bytes)
        self._used_before = _used_by_forks()
        self.reason = ""
        """Why there is no answer, if so."""
        self.has_loaded: bool | None = None
        self.has_run: bool | None = None

    def expanded_size(self) -> int:
        """Return the nodes of the model with its functions inlined, where they are too many."""
        if not self._model.functions:
            return 0
        counts = expansion(self._model)
        size = sum(call_size(node, counts) for node in self._model.graph.node)
        return size if size > MOST_NODES else 0

    def findings(self) -> Generator[float, None, list[ToolFinding]]:
        """Return what ONNX Runtime refuses to load."""
        findings: list[ToolFinding] = []
        end = yield from self._attempt(self._view, LOAD, self._limit_s / 2)
        if end.is_good and (repeated := self._with_repeated_names()) is not None:
            self.part.write_bytes(repeated.SerializeToString())
            end = yield from self._attempt(self.part, LOAD, self._limit_s / 2)
        end = self._at_limit(end, loading=True)
        self.has_loaded = None if end.rule == LIMIT and end.ended else end.is_good
        for number in range(_MOST_ROUNDS):
            if end.is_good or (number and self._is_over):
                break
            place = yield from self._node_of(end)
            if place is None and (number or end.rule == LIMIT):
                if not number:
                    self.reason = end.ended
                break  # else it is about what is left of the model, and not about the model
            findings.append(self._finding(end, place))
            if place is None or end.rule == LIMIT or not self._take_away(place):
                break
            self.part.write_bytes(self._model.SerializeToString())
            end = yield from self._attempt(self.part, LOAD, _PROBE_S)
        return findings

    def run(self) -> Generator[float, None, list[ToolFinding]]:
        """Return what fails at every run, or at those that were tried."""
        end = yield from self._attempt(self._view, RUN, self._end - time.monotonic())
        end = self._at_limit(end, loading=False)
        if end.rule == LIMIT and end.ended:
            node = "" if end.is_complete else (yield from self._node_at_limit(end))
            self.reason = f"run: {node}{end.ended}"
            return []
        self.has_run = end.is_good
        if end.is_good:
            return []
        place = place_of(end.fault.text, self._model, self._labels) if end.fault else None
        if place is None:
            index = yield from self._bisected(end, RUN)
            place = None if index is None else self._place(index)
        return [self._finding(end, place)]

    def _node_at_limit(self, end: _End) -> Generator[float, None, str]:
        """Return what to say of the node with which a run exceeds the limits; empty if unknown."""
        excess = self._likely_excess(loading=False)
        name = excess.node.name if excess is not None and excess.node is not None else ""
        if not name:
            index = yield from self._bisected(end, RUN)
            name = "" if index is None else text_of(self._model.graph.node[index].name)
        return self._labels.located(f"node {name}: ", None).message + " " if name else ""

    def place_at_limit(self) -> Generator[float, None, tuple[Place, int] | None]:
        """Return the first node with which a model exceeds the limits of a trial; it was tried."""
        try:
            index = yield from self._bisected(_End(ended="limit", rule=LIMIT), RUN)
            return None if index is None else self._place(index)
        finally:
            self.part.unlink(missing_ok=True)

    def _with_repeated_names(self) -> onnx.ModelProto | None:
        """Return the model with the same label on nodes of the same name; None if there are none.

        ONNX Runtime looks at names in each graph.
        """
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        return model if self._labels.repeat(model) else None

    @property
    def _is_over(self) -> bool:
        used = _used_by_forks() - self._used_before
        return time.monotonic() >= self._end or used >= _ALL * self._trial.seconds

    def _attempt(self, path: Path, rule: str, limit_s: float) -> Generator[float, None, _End]:
        """Load a model, and run it if asked, in a fork."""
        yield time.monotonic() - self._began
        if rule == RUN and path is self._view:
            excess = self._forecast.beyond(self._trial)
            if excess is not None:
                node = "" if excess.node is None else f"node {excess.node.name}: "
                located = self._labels.located(f"not tried: {node}{excess.text}", None)
                return _End(ended=located.message, rule=LIMIT, is_complete=bool(node))
        limit_s = max(min(limit_s, self._trial.seconds, self._end - time.monotonic()), 0.1)
        memory = trial_limits(self._view.stat().st_size, 0).memory + _MAPPED * self._weight_bytes
        question = partial(_answer, path, settings_to_load(self._weight_bytes), rule == RUN)
        try:
            data = json.loads(compute(question, Limits(limit_s, memory)))
        except LimitError as error:
            if error.what == "memory":
                return _End(ended="it takes more memory than there is", rule=LIMIT)
            return _End(ended=f"no answer after {limit_s:.0f} s", rule=LIMIT)
        except CrashError as error:
            return _End(ended=f"the process ended ({error})")
        except RefusedError as error:
            return _End(ended=visible(str(error)), rule=LIMIT, is_complete=True)
        return _End(Fault(**data) if data else None)

    def _at_limit(self, end: _End, *, loading: bool) -> _End:
        """Return the end of an attempt as one at the limit of memory, where shapes tell of it.

        ONNX Runtime may crash where it gets no more memory.
        """
        if end.is_good or end.fault is not None or end.rule == LIMIT:
            return end
        excess = self._likely_excess(loading=loading)
        if excess is None or excess.what != "memory":
            return end
        return replace(end, ended=f"no answer within the limits: {end.ended}", rule=LIMIT)

    def _finding(self, end: _End, place: tuple[Place, int] | None) -> ToolFinding:
        """Return what to tell of a model that was not taken."""
        if end.fault is not None:
            return finding_of(end.fault, self._labels, place)
        level = "error" if end.rule == CRASH else "warning"
        text = f"ONNX Runtime {version()}: {end.ended}"
        return ToolFinding(level, end.rule, self._labels.located(text, place))

    def _node_of(self, end: _End) -> Generator[float, None, tuple[Place, int] | None]:
        """Return the node that an attempt failed at; None where it is none."""
        if end.fault is not None:
            named = place_of(end.fault.text, self._model, self._labels)
            if named is not None:
                return named
            if not _is_of_a_node(end.fault.text):
                return None
        if end.rule == LIMIT and (place := self._likely_place()) is not None:
            return place
        index = yield from self._bisected(end, LOAD)
        if index is None:
            return None
        node = self._model.graph.node[index]
        text = end.fault.text if end.fault is not None else ""
        return self._inner_node(node, text) or self._place(index)

    @cached_property
    def _forecast(self) -> Forecast:
        with contextlib.closing(Document.open(self._view)) as document:
            return Forecast(document)

    def _likely_excess(self, *, loading: bool) -> Excess | None:
        """Return what goes beyond the limits by shapes."""
        forecast, limits = self._forecast, self._trial
        certain = forecast.beyond(limits, loading=loading)
        return certain or forecast.beyond(limits, TYPICAL, loading=loading)

    def _likely_place(self) -> tuple[Place, int] | None:
        """Return the node with which loading goes beyond the limits, by shapes."""
        excess = self._likely_excess(loading=True)
        if excess is None or excess.node is None:
            return None
        return self._labels.place_in(excess.node.name)

    def _place(self, index: int) -> tuple[Place, int] | None:
        return self._labels.place_in(text_of(self._model.graph.node[index].name))

    def _inner_node(self, node: onnx.NodeProto, text: str) -> tuple[Place, int] | None:
        """Return the only node of the subgraphs of a node whose operator a message mentions."""
        inner: list[onnx.NodeProto] = []
        waiting = list(bodies_of(node))
        while waiting:
            for other in waiting.pop().node:
                inner.append(other)
                waiting += bodies_of(other)
        if not inner or text_of(node.op_type) in text:
            return None
        named = [other for other in inner if text_of(other.op_type) in text]
        return self._labels.place_in(text_of(named[0].name)) if len(named) == 1 else None

    def _bisected(self, like: _End, rule: str) -> Generator[float, None, int | None]:
        """Return the position of the first node with which the nodes before it are not taken."""
        order = _sorted_nodes(self._model.graph)
        if len(order) < 2:
            return order[0] if order else None
        good, bad = 0, len(order)
        while bad - good > 1:
            if self._is_over:
                return None
            middle = (good + bad) // 2
            self.part.write_bytes(_first_nodes(self._model, order[:middle]).SerializeToString())
            end = yield from self._attempt(self.part, rule, _PROBE_S)
            if _is_like(end, like):
                bad = middle
            else:
                good = middle
        return order[bad - 1]

    def _take_away(self, place: tuple[Place, int]) -> bool:
        """Take the node of an error, and those that need it, out of the model; False if not."""
        path, _ = place
        graph = self._model.graph
        if path and isinstance(path[0], str):
            return False
        outermost = (list[int | str](), int(path[0])) if path else place
        position = next(
            (at for at, node in enumerate(graph.node)
             if self._labels.place_in(text_of(node.name)) == outermost), None
        )  # fmt: skip
        if position is None:
            return False
        gone = _with_followers(graph, position)
        lost = {text_of(name) for at in gone for name in graph.node[at].output}
        kept = [node for at, node in enumerate(graph.node) if at not in gone]
        outputs = [info for info in graph.output if text_of(info.name) not in lost]
        if not kept:
            return False
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        del model.graph.node[:], model.graph.output[:]
        model.graph.node.extend(kept)
        model.graph.output.extend(outputs)
        # Weights that no node uses any more need not be inputs from then on.
        model.ir_version = max(model.ir_version, INITIALIZERS_WITHOUT_INPUTS)
        if not outputs:
            _add_outputs(model.graph)
        self._model = model
        return True


def finding_of(fault: Fault, labels: Labels, place: tuple[Place, int] | None) -> ToolFinding:
    """Return what to tell of a fault."""
    runtime, fault_text = f"ONNX Runtime {version()}", find_fault(fault.text)
    if fault.doing == "run":
        level = "error" if fault.is_certain else "warning"
        how = "whatever the inputs" if fault.is_certain else f"with {', '.join(fault.inputs)}"
        text = f"{runtime} cannot run it {how}: {fault_text}"
        return ToolFinding(level, RUN, labels.located(text, place))
    located = labels.located(f"{runtime} refuses it: {fault_text}", place)
    if fault.kind == "NotImplemented":
        return ToolFinding("warning", KERNEL, located)
    return ToolFinding("error", LOAD, located)


def place_of(text: str, model: onnx.ModelProto, labels: Labels) -> tuple[Place, int] | None:
    """Return the node that a message names, by its label, a tensor, or an operator."""
    place = labels.place_in(text)
    if place is not None:
        return place
    nodes = [node for _, body in bodies(model) for node in body.node]
    if match := _TENSOR.search(text):
        name = next(filter(None, match.groups()))
        for node in nodes:
            if name in map(text_of, (*node.output, *node.input)):
                return labels.place_in(text_of(node.name))
    if match := _OPERATOR.search(text):
        for node in nodes:
            if text_of(node.op_type) == match["op"]:
                return labels.place_in(text_of(node.name))
    return None


_TENSOR = re.compile(
    r"Node input '(.+?)' is not a graph input|Duplicate definition of name \((.+?)\)"
    r"|initializer: (.+?)\. Error|output arg \((.+?)\)"
)
_OPERATOR = re.compile(r"(?:[\w.]*:)?(?P<op>\w+)\(-?\d+\) is not a registered function/op")
_OF_THE_MODEL = ("Missing model IR", "Missing opset", "ValidateOpset", "opset", "IR version",
                 "IR_VERSION", "Protobuf parsing")  # fmt: skip


def _is_of_a_node(text: str) -> bool:
    return not any(part in text for part in _OF_THE_MODEL)


def _is_like(end: _End, other: _End) -> bool:
    """Return whether two attempts failed in the same way."""
    if end.fault is None or other.fault is None:
        return end.ended != "" and other.ended != "" and end.rule == other.rule
    return _WORDS.sub("", end.fault.text) == _WORDS.sub("", other.fault.text)


_WORDS = re.compile(r"/\S+|\d+|<n\d+>")
"""Parts of messages that differ between models with the same fault."""


def _sorted_nodes(graph: onnx.GraphProto) -> list[int]:
    """Return the positions of nodes so that each comes after those it needs; cycles come last."""
    order = sorted_positions(graph)
    return [*order, *sorted(set(range(len(graph.node))).difference(order))]


def _with_followers(graph: onnx.GraphProto, position: int) -> set[int]:
    """Return the positions of a node and of all that need it."""
    users: dict[str, list[int]] = {}
    for at, node in enumerate(graph.node):
        for name in names_used([node]):
            users.setdefault(name, []).append(at)
    return reached(
        [position],
        lambda at: [u for name in graph.node[at].output for u in users.get(text_of(name), ())],
    )


def _first_nodes(model: onnx.ModelProto, positions: Iterable[int]) -> onnx.ModelProto:
    """Return a model of some nodes, whose outputs are all tensors that none of them uses."""
    part = onnx.ModelProto()
    part.CopyFrom(model)
    nodes = [model.graph.node[at] for at in sorted(positions)]
    del part.graph.node[:], part.graph.output[:]
    part.graph.node.extend(nodes)
    _add_outputs(part.graph)
    return part


def _add_outputs(graph: onnx.GraphProto) -> None:
    used = names_used(graph.node)
    for node in graph.node:
        for name in node.output:
            if name and text_of(name) not in used:
                graph.output.add(name=name)


def _answer(path: Path, settings: SessionSettings, run: bool) -> bytes:
    """Return the fault of a model as JSON, or null.

    Raises:
        MemoryError: ONNX Runtime got no more memory.
        ActivityError: No inputs can be guessed.
    """
    fault = _load_fault(path, settings) or (_run_fault(path) if run else None)
    if fault is None:
        return b"null"
    if says_no_memory(fault.text):
        raise MemoryError
    return json.dumps(asdict(fault)).encode()


def _load_fault(path: Path, settings: SessionSettings) -> Fault | None:
    runtime = load()
    options = session_options(runtime, settings)
    options.log_severity_level = FATAL  # errors are raised as well
    try:
        with binary_file(path) as file:
            runtime.InferenceSession(
                str(file),
                options,
                providers=[name + SUFFIX for name in settings.providers],
                disabled_optimizers=list(settings.left_out),
            )
    # The seam: its errors share no base class.
    except Exception as error:  # noqa: BLE001
        return Fault("load", type(error).__name__, str(error))
    return None


def _run_fault(path: Path) -> Fault | None:
    """Run a model that can be loaded on guessed inputs; return the fault if it fails with all.

    Raises:
        ActivityError: No inputs can be guessed.
    """
    from dld_tui.core.model.inputs.guess import candidate_guesses, specs_for
    from dld_tui.core.model.inputs.shape_texts import shape_text

    session = Session(path, SessionSettings(providers=tuple(asked_providers()), quiet=True))
    if any(spec.container for spec in session.inputs):
        raise ActivityError("an input is not a tensor")
    faults: list[Fault] = []
    tried: list[dict[str, tuple[int, ...]]] = []
    with contextlib.closing(Document.open(path)) as document:
        specs = specs_for(session.inputs, document)
        names = {dim for spec in specs for dim in spec.dims or () if isinstance(dim, str)}
        for guess in chain(
            candidate_guesses(specs, document),
            candidate_guesses(specs, document, batch=_BATCH),
            _fitting(candidate_guesses(specs, document, sizes=dict.fromkeys(names, _OTHER))),
        ):
            tried.append(guess.shapes)
            shapes = [f"{item.name} {shape_text(item.shape)}" for item in guess.inputs]
            for values in _values_of(guess):
                try:
                    session.try_once(session.feed(values))
                    return None
                except ActivityError as error:
                    cause = error.__cause__ or error
                    faults.append(Fault("run", type(cause).__name__, str(cause), shapes))
    if not faults:
        raise ActivityError("no inputs can be guessed")
    first = faults[0]
    nodes = {named_node(fault.text) for fault in faults}
    first.is_certain = len(nodes) == 1 and all(_is_varied(spec, tried) for spec in specs)
    return first


def _fitting(guesses: Iterator[Guess]) -> Iterator[Guess]:
    """Yield guesses, none if the given sizes do not fit the model."""
    with contextlib.suppress(UsageError):
        yield from guesses


def _is_varied(spec: InputSpec, tried: list[dict[str, tuple[int, ...]]]) -> bool:
    """Return whether each free dimension of an input was tried with several sizes.

    A single integer may be a length, of which few were tried.
    """
    shapes = {shapes[spec.name] for shapes in tried}
    if "int" in spec.dtype and all(math.prod(shape) == 1 for shape in shapes):
        return False
    if spec.dims is None:
        return len(shapes) > 1
    return all(
        isinstance(dim, int) or len({shape[axis] for shape in shapes}) > 1
        for axis, dim in enumerate(spec.dims)
    )


def _values_of(guess: Guess) -> Iterator[dict[str, AnyArray]]:
    """Yield inputs of the shapes of a guess: random ones, zeros, and ones."""
    values = guess.values(0)
    yield values
    for fill in (0, 1):
        numbers = {name: np.full_like(value, fill) if value.dtype.kind in "biuf" else value
                   for name, value in values.items()}  # fmt: skip
        if any(not np.array_equal(numbers[name], values[name]) for name in values):
            yield numbers
