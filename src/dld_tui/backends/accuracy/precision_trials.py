"""Trials of a precision search: a model in a lower precision except for some nodes, and its errors.

ONNX Runtime runs the copy of :func:`~dld_tui.core.conversion.retyping.in_lower_precision`. On a
CPU, it would compute a float16 model in float32 without rounding between nodes (measured with 1.31:
values beyond the range of float16 stay finite), so tensors are rounded by a pair of casts. The
errors are then those of Tensor Cores, which accumulate in float32: tensors overflow, underflow or
are rounded between nodes. The rounding can be switched by node in one session
(:mod:`~dld_tui.backends.accuracy.precision_trials`), so that a trial takes only a run or two.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import OrderedDict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from dld_tui.backends.accuracy.runs import types_with
from dld_tui.backends.conversion.quantizer import QuantizedCopy, Quantizer
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner, TensorSession, groups
from dld_tui.backends.tensorrt.builder import build
from dld_tui.backends.tensorrt.library import Library
from dld_tui.backends.tensorrt.network import is_strong
from dld_tui.backends.tensorrt.outputs import engine_outputs
from dld_tui.core.accuracy.tensor_errors import TensorError, Tolerances, compare, lost_channels
from dld_tui.core.conversion.accuracy_criteria import AccuracyCriteria
from dld_tui.core.conversion.quantization_plan import QuantizationPlan
from dld_tui.core.conversion.quantization_switches import quantization_switches
from dld_tui.core.conversion.retyping import RetypedModel, assigned, in_lower_precision, switchable
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Event, Progress, result_of
from dld_tui.core.files import permission
from dld_tui.core.files.temporary import discard, hold_folder
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.locations import bodies_of, names_used, nested_nodes
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.edits.casting import Relink, SwitchedCopy
from dld_tui.core.model.inputs.shapes import AnyArray
from dld_tui.core.model.operators.categories import RANDOM_OPERATORS
from dld_tui.core.tensorrt.profiles import profiles_for, profiles_from
from dld_tui.core.tensorrt.settings import SHAPES, BuildSettings
from dld_tui.core.text import visible
from dld_tui.core.trials import Answer, Outcome

_KEPT_BYTES = 1 << 30
"""Of rounded weights, at most."""
_SESSIONS, _TOGETHER = 32, 8
"""Sessions for weights, and values in each at least. A run computes all outputs of a session."""


class SwitchedModel:
    """A model whose nodes round their outputs by choice. Close it before the document.

    Args:
        switched: The model with its switches, which is closed with this.
        folder: The folder of the weights.
        settings: Of the session.
        outputs: The requested outputs.
        fed: The inputs of the runs.

    Raises:
        ActivityError: Such a model cannot be run.
    """

    def __init__(
        self,
        switched: SwitchedCopy,
        folder: Path | None,
        settings: SessionSettings,
        outputs: Sequence[str],
        fed: Collection[str],
    ) -> None:
        self._outputs = [*outputs]
        self._switched = switched
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.closing(switched.document))
            runner = TensorRunner(switched.document, settings, folder=folder)
            stack.enter_context(runner)
            needs = _from_weights(runner.graph, set(switched.names), self._outputs, fed)
            self._weights = _Weights(runner, needs)
            self._session: TensorSession | None = None
            self._runner = runner
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Remove the files that were made for it."""
        self._session = None
        self._stack.close()

    @property
    def nodes(self) -> list[Node]:
        """The nodes that can be lowered, in the order of the document."""
        return [*self._switched.nodes]

    def each(
        self, kept: Collection[Node], feeds: Sequence[Mapping[str, Any]]
    ) -> Iterator[dict[str, AnyArray | None]]:
        """Yield the outputs for one set of inputs after the other.

        Args:
            kept: The nodes that do not round.
            feeds: Sets of inputs.

        Raises:
            ActivityError: The model cannot be run.
        """
        lowered = self._switched.on(kept)
        weights = self._weights.values(lowered)
        if self._session is None:
            self._session = self._runner.session(self._outputs, weights)
        input_names = {spec.name for spec in self._session.inputs}
        switches = {name: np.array(name in lowered) for name in self._switched.names}
        for feed in feeds:
            values = {**feed, **switches}
            fed = self._session.feed({name: values[name] for name in values if name in input_names})
            yield self._session.tensors(self._outputs, {**fed, **weights})


class _Weights:
    """Inputs of nodes that depend only on weights and switches."""

    def __init__(self, runner: TensorRunner, needs: Mapping[str, frozenset[str]]) -> None:
        self._runner = runner
        self._needs = needs
        """By value, the switches that it depends on."""
        self._known: OrderedDict[tuple[str, frozenset[str]], AnyArray] = OrderedDict()
        self._bytes = 0
        names = [*needs]
        size = max(_TOGETHER, math.ceil(len(names) / _SESSIONS))
        self._groups = [names[at : at + size] for at in range(0, len(names), size)]
        self._sessions: dict[int, TensorSession] = {}

    def values(self, lowered: Collection[str]) -> dict[str, AnyArray]:
        """Return the values with some switches on."""
        keys = {name: (name, needs.intersection(lowered)) for name, needs in self._needs.items()}
        values = {name: self._known[key] for name, key in keys.items() if key in self._known}
        for name in values:
            self._known.move_to_end(keys[name])
        for number, group in enumerate(self._groups):
            if any(name not in values for name in group):
                computed = self._lowered_values(number, lowered)
                values |= computed
                for name, value in computed.items():
                    old = self._known.pop(keys[name], None)
                    self._bytes += value.nbytes - (0 if old is None else old.nbytes)
                    self._known[keys[name]] = value
        while self._bytes > _KEPT_BYTES:
            self._bytes -= self._known.popitem(last=False)[1].nbytes
        return values

    def _lowered_values(self, number: int, lowered: Collection[str]) -> dict[str, AnyArray]:
        names = self._groups[number]
        session = self._sessions.get(number)
        if session is None:
            session = self._sessions[number] = self._runner.session(names, {})
        switches = {spec.name: np.array(spec.name in lowered) for spec in session.inputs}
        tensors = session.tensors(names, session.feed(switches))
        values = {name: value for name, value in tensors.items() if value is not None}
        if len(values) < len(names):
            raise ActivityError("a weight is not a tensor")
        return values


def _from_weights(
    graph: onnx.GraphProto,
    switches: Collection[str],
    outputs: Collection[str],
    fed: Collection[str],
) -> dict[str, frozenset[str]]:
    """Return the values that are given by weights and switches, and taken by nodes that are not.

    Those that depend on no switch are left out: they are constants to the library.
    """
    stored = {tensor.name for tensor in graph.initializer}
    fixed = dict.fromkeys(stored.difference(fed), frozenset[str]())
    fixed |= {name: frozenset((name,)) for name in switches}
    wanted = dict.fromkeys(outputs)
    remaining = [*graph.node]
    while remaining:
        others = []
        for node in remaining:
            outer_names = _taken_from_outside(node)
            if not _is_random(node) and all(name in fixed for name in outer_names):
                needs = frozenset[str]().union(*(fixed[name] for name in outer_names))
                fixed |= dict.fromkeys(filter(None, node.output), needs)
            else:
                others.append(node)
        if len(others) == len(remaining):
            break
        remaining = others  # nodes need not be sorted
    for node in remaining:
        wanted |= dict.fromkeys(sorted(names_used([node])))
    own = {*switches}
    return {name: fixed[name] for name in wanted if name not in own and fixed.get(name)}


def _taken_from_outside(node: onnx.NodeProto) -> set[str]:
    """Return the values that a node takes, its bodies included."""
    inner = (graph.node for graph in bodies_of(node))
    inner_outputs = {
        name for nodes in inner for other in nested_nodes(nodes) for name in other.output
    }
    return names_used([node]) - inner_outputs


def _is_random(node: onnx.NodeProto) -> bool:
    return any(inner.op_type in RANDOM_OPERATORS for inner in nested_nodes([node]))


_BUDGET = 100 << 20
"""Bytes of tensors that are held in memory."""
_NEXT = 1e30
"""More noise than any node adds that makes no value infinite."""


@dataclass(frozen=True)
class Trial:
    """The result for one set of nodes that stay in fp32."""

    problem: str = ""
    """Why it is not good, e.g. which output is how far off; empty when it is. Fit to be shown."""
    errors: Mapping[str, TensorError] = field(default_factory=dict)
    """By output, the worst over all inputs."""
    lowered_nodes: int = 0
    """Nodes that compute in the lower precision."""
    noise: float = math.inf
    """The largest noise of an output, relative to its values; of the inputs that were run."""
    seconds: float = 0.0
    is_run: bool = True
    """Whether the model could be run at all."""

    @property
    def is_good(self) -> bool:
        """Whether every output is within its tolerance."""
        return not self.problem

    @property
    def outcome(self) -> Outcome:
        """The outcome, for the search."""
        answer = Answer.SUFFICIENT if self.is_good else Answer.INSUFFICIENT
        if not self.is_run:
            answer = Answer.UNKNOWN
        return Outcome(answer, self.problem, self.noise, self.seconds)


class PrecisionTrials:
    """Runs trials against the model's own outputs. Close it before the document.

    Args:
        document: The model; it stays open and unchanged.
        precision: The lower one, e.g. ``fp16``.
        feeds: Sets of inputs.
        tolerances: Of the outputs.
        settings: Of the sessions; the reference uses them as well.
        criteria: The criteria for outputs without a tolerance.
        folder: The folder of the weights, for a document without a path.

    Raises:
        ActivityError: The model itself cannot be run.
    """

    def __init__(
        self,
        document: Document,
        precision: str,
        feeds: Sequence[Mapping[str, Any]],
        tolerances: Tolerances,
        settings: SessionSettings,
        criteria: AccuracyCriteria | None = None,
        folder: Path | None = None,
    ) -> None:
        self.document = document
        """The model whose nodes are meant."""
        self._criteria = criteria
        self._precision = precision
        self.feeds = feeds
        self.tolerances = tolerances
        self._settings = settings
        self._rounded = not settings.uses_cuda
        self._folder = document.path.parent if document.path is not None else folder
        with TensorRunner(document, settings, folder=folder) as runner:
            self._outputs = runner.outputs
            tolerances.require_names(self._outputs)
            self.reference = [*runner.each(self._outputs, feeds)]
            """The model's own outputs by name, of each set of inputs."""
        self._ranked: list[Node] | None = None
        self._switched = self._switchable() if self._rounded else None

    def _switchable(self) -> SwitchedModel | None:
        """Return the model whose nodes round by choice; None where it cannot be run so."""
        fed = [*self.feeds[0]]
        try:
            model = SwitchedModel(self.switches(), self._folder, self._settings, self._outputs, fed)
        except ActivityError:
            return None
        try:
            next(model.each((), self.feeds[:1]))
        except ActivityError:
            model.close()
            return None
        except BaseException:
            model.close()
            raise
        return model

    def switches(self) -> SwitchedCopy:
        """Return a copy in which inputs turn the lower precision of nodes on and off."""
        return switchable(self.document, self._precision)

    def close(self) -> None:
        """Remove the files of the trials."""
        if self._switched is not None:
            self._switched.close()

    @property
    def is_quick(self) -> bool:
        """Whether trials share one session: only then is it worthwhile to make many."""
        return self._switched is not None

    def candidates(self) -> list[Node]:
        """Return the nodes of the document that the lower precision changes, in its order."""
        if self._switched is not None:
            return self._switched.nodes
        if self._ranked is None:
            self._ranked = self._by_noise()
        order = {node: at for at, node in enumerate(_nodes(self.document))}
        return sorted(self._ranked, key=order.__getitem__)

    def ranked(self) -> list[Node]:
        """Return the nodes, the worst first, by the tensors of one run.

        The worst nodes produce NaN or infinite values, in the order of occurrence; their consumers,
        which would round these again, follow; then come those that add most noise to their inputs.
        Nodes in subgraphs and local functions come after those of the main graph, as their tensors
        are not accessible.
        """
        if self._ranked is None:
            self._ranked = self._by_noise()
        return self._ranked

    def _by_noise(self) -> list[Node]:
        retyping = in_lower_precision(self.document, self._precision, rounded=self._rounded)
        with contextlib.closing(retyping.document):
            changed = {
                retyping.twins[link.node]: link
                for link in retyping.plan.relinks
                if link.node in retyping.twins
            }
            main: dict[Node, Relink] = {}
            others: list[Node] = []
            for scope in self.document.scopes():
                for node in scope.nodes:
                    link = changed.get(node)
                    if scope is self.document.main and link is not None:
                        main[node] = link
                    elif link is not None or (retyping.inlined and scope.is_function):
                        others.append(node)  # in a copy, functions are inlined
            try:
                noise = self._noise(retyping, main)
            except ActivityError:
                return [*main, *others]  # the copy cannot be run as it is: trials will tell why
        order = {node: at for at, node in enumerate(main)}
        ranked = sorted(main, key=lambda node: (-noise.get(node, 0.0), order[node]))
        return [*ranked, *others]

    def _noise(self, retyping: RetypedModel, links: Mapping[Node, Relink]) -> dict[Node, float]:
        """Return how much noise each node adds, relative to its values; infinite for overflow."""
        pairs = {
            theirs: theirs if self._rounded else mine
            for node, link in links.items()
            for theirs, mine in zip(node.outputs, link.outputs, strict=True)
            if theirs
        }
        noise: dict[str, float] = {}
        types = types_with(self.document, self.feeds[0])
        with (
            TensorRunner(self.document, self._settings) as reference,
            TensorRunner(retyping.document, self._settings, folder=self._folder) as other,
        ):
            for group in groups(types, list(pairs), _BUDGET // 2):
                values = reference.values(group, self.feeds[0])
                lower = other.values([pairs[name] for name in group], self.feeds[0])
                for name in group:
                    value, lowered = values[name], lower[pairs[name]]
                    if value is not None and lowered is not None:
                        noise[name] = compare(value, lowered).noise
        added: dict[Node, float] = {}
        odd: set[str] = set()
        for node in links:
            noise_out = max([noise.get(name, 0.0) for name in node.outputs], default=0.0)
            input_noise = max([noise.get(name, 0.0) for name in node.inputs], default=0.0)
            if noise_out == math.inf and input_noise != math.inf:
                odd.update(node.outputs)
            added[node] = noise_out - input_noise if input_noise != math.inf else 0.0
            if not odd.isdisjoint(node.inputs):
                added[node] = _NEXT
        return added

    def run(self, kept: Collection[Node]) -> Trial:
        """Run with some nodes in fp32 and compare the outputs.

        A model that ONNX Runtime refuses then is a trial that is not good, and not run.
        """
        if self._switched is None:
            return self.convert(kept)
        begin = time.perf_counter()
        stay = set(kept)
        trial = self._judged(self._switched.each(stay, self.feeds))
        lowered_nodes = sum(node not in stay for node in self._switched.nodes)
        return replace(trial, lowered_nodes=lowered_nodes, seconds=time.perf_counter() - begin)

    def convert(self, kept: Collection[Node]) -> Trial:
        """Do the same with a copy that is converted for this very choice."""
        begin = time.perf_counter()
        retyping = in_lower_precision(self.document, self._precision, kept, rounded=self._rounded)
        with (
            contextlib.closing(retyping.document),
            TensorRunner(retyping.document, self._settings, folder=self._folder) as runner,
        ):
            trial = self._judged(runner.each(self._outputs, self.feeds))
        lowered_nodes = len(retyping.plan.relinks)
        return replace(trial, lowered_nodes=lowered_nodes, seconds=time.perf_counter() - begin)

    def _judged(self, results: Iterable[Mapping[str, AnyArray | None]]) -> Trial:
        try:
            return judged(self.reference, results, self.tolerances, self._criteria)
        except ActivityError as error:
            return Trial(f"it cannot be run: {error.message}", is_run=False)


def judged(
    reference: Sequence[Mapping[str, AnyArray | None]],
    results: Iterable[Mapping[str, AnyArray | None]],
    tolerances: Tolerances,
    criteria: AccuracyCriteria | None = None,
) -> Trial:
    """Compare outputs with the reference.

    Args:
        reference: Outputs by name, for each set of inputs.
        results: The same; reading stops at the first one that is not good.
        tolerances: Of the outputs.
        criteria: Further criteria; includes lost channels.
    """
    worst: dict[str, TensorError] = {}
    problem, noise = "", 0.0
    for right, values in zip(reference, results, strict=False):
        for name, value in right.items():
            if value is None:
                continue  # no tensor
            trial_value = values.get(name)
            if trial_value is None:
                return Trial(f"{visible(name)}: it has no such output", noise=math.inf)
            error = compare(value, trial_value, tolerances.of(name))
            if criteria is not None and not error.mismatch:
                error = replace(error, lost=lost_channels(value, trial_value))
            noise = max(noise, error.noise)
            if name not in worst or (error.max_abs or 0) > (worst[name].max_abs or 0):
                worst[name] = error
            why = tolerances.of(name).problem(error) or ""
            if criteria is not None:
                why = criteria.problem(error, why, name=name)
            problem = problem or (f"{visible(name)}: {why}" if why else "")
        if problem:
            break
    return Trial(problem, worst, noise=noise)


def _nodes(document: Document) -> Iterator[Node]:
    for scope in document.scopes():
        yield from scope.nodes


@dataclass(frozen=True)
class Expectation:
    """What an engine has to compute."""

    feeds: Sequence[Mapping[str, Any]]
    """Sets of inputs."""
    outputs: Sequence[Mapping[str, AnyArray | None]]
    """The right values by name, of each set."""
    tolerances: Tolerances


class EngineTrials:
    """Builds engines of a model with some nodes in fp32. Close it when done.

    A weakly typed network has the precisions as layer constraints; the model of a strongly
    typed one gets casts.

    Args:
        library: Builds and runs them.
        document: The model; it stays open and unchanged.
        precision: The lower one, e.g. ``fp16``.
        nodes: Those that can be lowered.
        settings: Of the builds.
        expected: The reference outputs.

    Raises:
        UsageError: The shapes of the settings do not match the model.
    """

    def __init__(
        self,
        library: Library,
        document: Document,
        precision: str,
        nodes: Collection[Node],
        settings: BuildSettings,
        expected: Expectation,
    ) -> None:
        self._library = library
        self._document = document
        self._precision = precision
        self._nodes = frozenset(nodes)
        self._settings = trial_settings(settings, precision, library)
        self._expected = expected
        if any(getattr(settings, name) for name in SHAPES):
            self._profiles = profiles_for(document, settings).ranges
        else:
            self._profiles = profiles_from(document, expected.feeds)
        self._folder = hold_folder("precision")
        permission.agree([self._folder])
        self._engine = self._folder / "trial.engine"

    def close(self) -> None:
        """Remove the last engine."""
        discard(self._folder)

    def run(self, kept: Collection[Node]) -> Generator[Event, None, Trial]:
        """Build, run and compare. An engine that cannot be built is a trial that is not good.

        Args:
            kept: The nodes that stay in fp32.

        Raises:
            DldError: As building and running engines does.
        """
        began = time.perf_counter()
        stay = self._nodes.intersection(kept)
        model = assigned(self._document, self._precision, self._nodes, stay)
        with contextlib.closing(model):
            try:
                yield from self._build(model)
                yield Progress(0, stage="running the engine")
                trial = self._compared()
            except ActivityError as error:
                trial = Trial(f"the engine failed: {error.message}", is_run=False)
        count = len(self._nodes) - len(stay)
        return replace(trial, lowered_nodes=count, seconds=time.perf_counter() - began)

    def _build(self, model: Document) -> Iterator[Event]:
        steps = build(self._library, model, self._settings, self._profiles, self._engine)
        for event in steps:  # its lines would drown those of the search
            if isinstance(event, Progress):
                yield event

    def _compared(self) -> Trial:
        expected, settings = self._expected, self._settings
        outputs = engine_outputs(
            self._library,
            self._engine,
            expected.feeds,
            device=settings.device,
            plugins=settings.plugins,
        )
        with contextlib.closing(outputs):
            return judged(expected.outputs, outputs, expected.tolerances)


def trial_settings(settings: BuildSettings, precision: str, library: Library) -> BuildSettings:
    """Return the settings of a trial: layers of a weakly typed network get their precisions."""
    if is_strong(settings, library.capabilities):
        return settings
    typing = "prefer" if settings.typing == "default" else settings.typing
    lower: dict[str, Any] = {precision: True}
    return replace(settings, typing=typing, **lower)


# ONNX Runtime's quantizer runs once: it finds the ranges, and tells which tensors each node asks
# for (:mod:`dld_tui.core.conversion.quantization_plan`). All trials then share one session, in
# which each tensor is quantized and dequantized by choice.


class QuantizationTrials(PrecisionTrials):
    """Runs trials of a quantization against the model's own outputs. Close it before `quantizer`.

    Args:
        quantizer: Of the model.
        plan: The plan of a complete quantization, with scales.
        method: The calibration method.
        ops: The quantized operators.
        feeds: Sets of inputs.
        tolerances: Of the outputs.
        settings: Of the sessions.
        criteria: The criteria for outputs without a tolerance.

    Raises:
        ActivityError: The model itself cannot be run.
    """

    def __init__(
        self,
        quantizer: Quantizer,
        plan: QuantizationPlan,
        method: str,
        ops: Sequence[str],
        feeds: Sequence[Mapping[str, Any]],
        tolerances: Tolerances,
        settings: SessionSettings,
        criteria: AccuracyCriteria | None,
    ) -> None:
        self._quantizer, self._plan = quantizer, plan
        self._method, self._ops = method, ops
        super().__init__(
            quantizer.prepared, "int8", feeds, tolerances, settings, criteria, quantizer.folder
        )

    def switches(self) -> SwitchedCopy:
        """Return a copy in which inputs turn the quantization of tensors on and off."""
        return quantization_switches(self.document, self._plan)

    def candidates(self) -> list[Node]:
        """Return the nodes that ask for a tensor to be quantized, in the order of the model."""
        asking = {rule.node for rule in self._plan.rules if rule.otherwise or rule.when_quantized}
        return [node for node in self.document.main.nodes if node.name in asking]

    def ranked(self) -> list[Node]:
        """Return the same."""
        return self.candidates()

    def convert(self, kept: Collection[Node]) -> Trial:
        """Quantize the model for this very choice, and run that."""
        begin = time.perf_counter()
        quantized = result_of(self._quantizer.quantize(self._method, self._ops, kept))
        with (
            contextlib.closing(quantized.document),
            TensorRunner(quantized.document, self._settings, folder=self._folder) as runner,
        ):
            trial = self._judged(runner.each(self._outputs, self.feeds))
        lowered_nodes = len(self.candidates()) - len(kept)
        return replace(trial, lowered_nodes=lowered_nodes, seconds=time.perf_counter() - begin)


def plan_of(quantized: QuantizedCopy) -> QuantizationPlan:
    """Return the plan of a static quantization.

    Raises:
        ActivityError: The library returned none.
    """
    if quantized.plan is None:
        raise ActivityError("ONNX Runtime's quantizer does not report what it quantizes")
    return quantized.plan
