"""The longest path through measured times, what parallelism could save, and where to cut in two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.cost.memory import execution_order, used_values
from dld_tui.core.model.document.local_functions import call_of, key_of
from dld_tui.core.model.operators.categories import RANDOM_OPERATORS
from dld_tui.core.statistics import share_percent
from dld_tui.core.tables.table import MS, Column, Table
from dld_tui.core.text import clip, visible

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope

_LEAST_SHARE = 0.25
"""A side of a cut that takes less is not worth a device."""
_NAME = 40
_LEAST_UNPLACED = 0.005


@dataclass(frozen=True)
class OnPath:
    """A node of the critical path."""

    node: str
    """Untrusted text."""
    op_type: str
    ms: float


@dataclass(frozen=True)
class Cut:
    """Where a model could be split for two devices that work on one item after another."""

    after: str
    """The last node of the first part: untrusted text."""
    bytes: int
    """Of the tensors that cross, an item."""
    tensors: tuple[str, ...]
    first_ms: float
    second_ms: float

    @property
    def factor(self) -> float:
        """The gain in throughput, if transferring the tensors cost nothing."""
        return (self.first_ms + self.second_ms) / max(self.first_ms, self.second_ms)


@dataclass(frozen=True)
class CriticalPath:
    """The result of the activity ``path``. Fields may be added, never renamed."""

    report: str
    model: str
    work_ms: float
    """All nodes, run sequentially."""
    path_ms: float
    """The nodes of the path: no number of workers is faster."""
    path: tuple[OnPath, ...]
    cut: Cut | None
    """None where no place has a quarter of the time on either side."""
    unsized: int = 0
    """Places that have, but where the size of a tensor that crosses is not known."""
    unplaced_ms: float = 0.0
    """Measured time of layers for which no node of the main graph is known: in no other field."""

    @property
    def most(self) -> float:
        """How many times as fast perfect parallelism between nodes would be."""
        return self.work_ms / self.path_ms if self.path_ms else 1.0


def critical_path(
    document: Document,
    times: Mapping[str, float],
    size: Callable[[Scope, str], int | None],
    names: tuple[str, str] = ("", ""),
    measured_ms: float = 0.0,
) -> CriticalPath:
    """Return the longest path through the main graph, and the best cut.

    Args:
        times: Milliseconds by the references of nodes; others take no time.
        size: Returns the bytes of a value.
        names: Of the report and of the model.
        measured_ms: Milliseconds of all layers.
    """
    import networkx

    main = document.main
    order = execution_order(main.nodes)
    producers = {name: node for node in order for name in node.outputs if name}
    graph = networkx.DiGraph()
    start = object()
    for node in order:
        ms = times.get(node.ref, 0.0)
        graph.add_edge(start, node, weight=ms)
        for name in used_values(node):
            if name in producers:
                graph.add_edge(producers[name], node, weight=ms)
    nodes = networkx.dag_longest_path(graph, weight="weight")[1:] if order else []
    path = tuple(OnPath(node.ref, node.op_type, times.get(node.ref, 0.0)) for node in nodes)
    whole = sum(times.get(node.ref, 0.0) for node in order)
    last = {name: at for at, node in enumerate(order) for name in used_values(node)}
    last.update(dict.fromkeys(main.outputs, len(order)))
    constant = _constants(order, document)
    cut: Cut | None = None
    unsized = 0
    before, crossing = 0.0, dict[str, int | None]()
    for at, node in enumerate(order):
        before += times.get(node.ref, 0.0)
        crossing = {name: many for name, many in crossing.items() if last.get(name, -1) > at}
        for name in filter(None, node.outputs):
            if last.get(name, -1) > at and name not in constant:
                crossing[name] = size(main, name)
        is_even = _LEAST_SHARE * whole <= before <= (1 - _LEAST_SHARE) * whole
        if not whole or not is_even or not crossing:
            continue
        known = [many for many in crossing.values() if many is not None]
        if len(known) < len(crossing):
            unsized += 1
        elif cut is None or sum(known) < cut.bytes:
            cut = Cut(node.ref, sum(known), tuple(crossing), before, whole - before)
    return CriticalPath(
        *names, whole, sum(on_path.ms for on_path in path), path, cut, unsized,
        max(measured_ms - whole, 0.0),
    )  # fmt: skip


def _constants(order: Sequence[Node], document: Document) -> set[str]:
    """Return the values that are the same on each device, which can have its own.

    No input of the model is in them, and nothing random.
    """
    main = document.main
    constant = {name for name in main.named("initializer") if not main.is_default(name)}
    functions = {key_of(function): function for function in document.functions}
    random: dict[Scope, bool] = {}

    def is_random(scope: Scope) -> bool:
        if scope not in random:
            random[scope] = False  # should a function call itself
            random[scope] = any(map(draws, scope.nodes))
        return random[scope]

    def draws(node: Node) -> bool:
        called = functions.get(call_of(node))
        bodies = node.subgraphs() if called is None else [called]
        return node.op_type in RANDOM_OPERATORS or any(map(is_random, bodies))

    for node in order:
        if all(name in constant for name in used_values(node)) and not draws(node):
            constant.update(filter(None, node.outputs))
    return constant


COLUMNS: tuple[Column[OnPath], ...] = (
    Column("node", "node", lambda on_path: on_path.node, least=20, keep="end"),
    Column("op_type", "operator", lambda on_path: on_path.op_type, width=20),
    Column("ms", "ms", lambda on_path: on_path.ms, MS, 10),
)


def path_table(result: CriticalPath) -> Table[OnPath]:
    """Return the nodes of the path, in order."""
    return Table(COLUMNS, result.path, name="critical_path", title="Critical path")


def path_lines(result: CriticalPath) -> list[str]:
    """Return what parallelism could save, and the cut, in lines for people."""
    ms = fmt.milliseconds
    saved = ms(fmt.printed_difference(result.work_ms, result.path_ms))
    if not result.path:
        return ["No layer of the report is a node of the model's main graph."]
    lines = [
        f"The longest path takes {ms(result.path_ms)} of {ms(result.work_ms)} ms, in"
        f" {fmt.plural(len(result.path), 'node')}. Running independent nodes in parallel can save"
        f" {saved} ms, a speedup of at most {result.most:.2f}×."
    ]
    if result.unplaced_ms >= _LEAST_UNPLACED * (result.work_ms + result.unplaced_ms) > 0:
        share = fmt.percent(share_percent(result.unplaced_ms, result.work_ms + result.unplaced_ms))
        lines.append(
            f"Left out: {ms(result.unplaced_ms)} ms ({share} % of the time) of layers whose node"
            " in the main graph is not known."
        )
    if result.unsized:
        left_out = fmt.plural(result.unsized, "place")
        lines.append(f"{left_out} for a cut left out: the size of a tensor is not known.")
    if result.cut is None:
        return [*lines, "No cut leaves a quarter of the time or more on each side."]
    cut = result.cut
    second = ms(fmt.printed_difference(result.work_ms, cut.first_ms))
    return [
        *lines,
        f"Best cut for two devices: after {clip(visible(cut.after), _NAME, keep='end')}, where"
        f" {fmt.plural(len(cut.tensors), 'tensor')} ({fmt.size(cut.bytes)})"
        f" {'crosses' if len(cut.tensors) == 1 else 'cross'}. The parts take {ms(cut.first_ms)} and"
        f" {second} ms: throughput at most {cut.factor:.2f}×, if copies took no time.",
    ]
