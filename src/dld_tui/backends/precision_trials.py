"""Trials of a precision search: a model in a lower precision but for some nodes, and its results.

ONNX Runtime runs the copy that :func:`~dld_tui.core.tensorrt.retyping.lowered` makes. On a CPU it
would compute a float16 model in float32 without rounding between nodes (measured with 1.31: what
overflows float16 comes out finite), so there values are rounded by casts there and back. What is
lost is then what Tensor Cores lose, which add up in float32: values that overflow, underflow or are
rounded on their way from one node to the next.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dld_tui.backends.accuracy_runs import types_with
from dld_tui.backends.onnxruntime_options import SessionSettings
from dld_tui.backends.onnxruntime_tensors import TensorRunner, groups
from dld_tui.core.accuracy.statistics import TensorError, compare
from dld_tui.core.accuracy.tolerance import Tolerances
from dld_tui.core.document.casting import Relink
from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.errors import ActivityError
from dld_tui.core.inputs.dtypes import AnyArray
from dld_tui.core.tensorrt.retyping import Retyping, lowered

_BUDGET = 100 << 20
"""Bytes of values that are kept at a time."""
_NEXT = 1e30
"""More noise than any node adds that makes no value infinite."""


@dataclass(frozen=True)
class Trial:
    """What came of one set of nodes that keep fp32."""

    problem: str = ""
    """Why it is not good, e.g. which output is how far off; empty when it is. Foreign text."""
    errors: Mapping[str, TensorError] = field(default_factory=dict)
    """By output, the worst over all inputs."""
    lowered_nodes: int = 0
    """Nodes that compute in the lower precision."""
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether every output is within its tolerance."""
        return not self.problem


class PrecisionTrials:
    """Runs trials against the model's own results.

    Args:
        document: The model; it stays open and as it is.
        precision: The lower one, e.g. ``fp16``.
        feeds: Sets of inputs.
        tolerances: What outputs may be off.
        settings: How to run; the reference is run in the same way.

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
    ) -> None:
        self._document = document
        self._precision = precision
        self._feeds = feeds
        self._tolerances = tolerances
        self._settings = settings
        self._rounded = not settings.uses_cuda
        self._folder = document.path.parent if document.path is not None else None
        with TensorRunner(document, settings) as runner:
            self._outputs = runner.outputs
            self._reference = [runner.values(self._outputs, feed) for feed in feeds]

    def candidates(self) -> list[Node]:
        """Return the nodes of the document that the lower precision changes, the worst first.

        The worst are those that make values NaN or infinite, in the order in which that happens,
        and then those that take these, which would be rounded again there; then those that add most
        noise to what they take. Nodes in bodies and local functions come
        after those of the main graph, as their values cannot be looked at.
        """
        retyping = lowered(self._document, self._precision, rounded=self._rounded)
        with contextlib.closing(retyping.document):
            changed = {
                (link.node.scope.path, link.node.ref): link for link in retyping.plan.relinks
            }
            main: dict[Node, Relink] = {}
            others: list[Node] = []
            for scope in self._document.scopes():
                for node in scope.nodes:
                    link = changed.get((scope.path, node.ref))
                    if scope is self._document.main and link is not None:
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

    def _noise(self, retyping: Retyping, links: Mapping[Node, Relink]) -> dict[Node, float]:
        """Return how much noise each node adds, relative to its values; infinite for overflow."""
        pairs = {
            theirs: theirs if self._rounded else mine
            for node, link in links.items()
            for theirs, mine in zip(node.outputs, link.outputs, strict=True)
            if theirs
        }
        found: dict[str, float] = {}
        types = types_with(self._document, self._feeds[0])
        with (
            TensorRunner(self._document, self._settings) as reference,
            TensorRunner(retyping.document, self._settings, folder=self._folder) as other,
        ):
            for group in groups(types, list(pairs), _BUDGET // 2):
                values = reference.values(group, self._feeds[0])
                lower = other.values([pairs[name] for name in group], self._feeds[0])
                for name in group:
                    one, two = values[name], lower[pairs[name]]
                    if one is not None and two is not None:
                        found[name] = compare(one, two).noise
        added: dict[Node, float] = {}
        odd: set[str] = set()
        for node in links:
            made = max([found.get(name, 0.0) for name in node.outputs], default=0.0)
            taken = max([found.get(name, 0.0) for name in node.inputs], default=0.0)
            if made == math.inf and taken != math.inf:
                odd.update(node.outputs)
            added[node] = made - taken if taken != math.inf else 0.0
            if not odd.isdisjoint(node.inputs):
                added[node] = _NEXT
        return added

    def run(self, kept: Collection[Node]) -> Trial:
        """Run with some nodes in fp32 and compare the outputs.

        A copy that ONNX Runtime refuses is a trial that is not good.
        """
        begin = time.perf_counter()
        retyping = lowered(self._document, self._precision, kept, rounded=self._rounded)
        with contextlib.closing(retyping.document):
            try:
                problem, errors = self._compared(retyping)
            except ActivityError as error:
                problem, errors = f"it cannot be run: {error.message}", {}
        return Trial(problem, errors, len(retyping.plan.relinks), time.perf_counter() - begin)

    def _compared(self, retyping: Retyping) -> tuple[str, dict[str, TensorError]]:
        worst: dict[str, TensorError] = {}
        problem = ""
        with TensorRunner(retyping.document, self._settings, folder=self._folder) as runner:
            for feed, reference in zip(self._feeds, self._reference, strict=True):
                values = runner.values(self._outputs, feed)
                for name in self._outputs:
                    error = self._error(name, reference[name], values[name])
                    if error is None:
                        continue
                    if name not in worst or (error.max_abs or 0) > (worst[name].max_abs or 0):
                        worst[name] = error
                    why = self._tolerances.of(name).problem(error)
                    problem = problem or (f"{name}: {why}" if why else "")
        return problem, worst

    def _error(
        self, name: str, reference: AnyArray | None, value: AnyArray | None
    ) -> TensorError | None:
        if reference is None or value is None:
            return None  # no tensor
        return compare(reference, value, self._tolerances.of(name))
