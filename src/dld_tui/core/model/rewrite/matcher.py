"""Finding a pattern in a model: from the rarest of its operators along its links.

Each scope of the model, bodies and functions included, is looked at by itself with its own indexes,
so that the time depends on how often the rarest operator occurs and not on the size of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.files import protos as onnx
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.index import record_name
from dld_tui.core.model.document.node import Attribute, Node
from dld_tui.core.model.document.operator_matching import attribute_word, schema_of
from dld_tui.core.model.document.opset_imports import imports_of
from dld_tui.core.model.document.scope import Scope, ScopeOwner
from dld_tui.core.model.document.transactions import (
    DocumentChange,
    SetAttribute,
    SetLinks,
    SetList,
    SetText,
    Splice,
    Transaction,
)
from dld_tui.core.model.document.traversal import captures, inputs_and_outputs, places, scope_of
from dld_tui.core.model.rewrite.expression import UNKNOWN, equal
from dld_tui.core.model.rewrite.pattern import Call, Literal, OmittedInput, Pattern, Variable
from dld_tui.core.model.rewrite.views import (
    NodeView,
    Reads,
    ValueView,
    array_of,
    attribute_value,
    dims_remembered,
    old_meaning,
)
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.process.interpreter import collector_paused
from dld_tui.core.text import shortened

MOST_STEPS = 10_000
"""Tries around one node before a search gives up there."""
MOST_IN_ALL = 1_000_000
"""The most attempts of a search."""
MOST_HITS = 100_000
"""Hits of a pattern in one scope before it does so."""
_MOST_COMPARED = 4096
"""Elements of a constant that is compared with a literal."""


@dataclass(frozen=True, eq=False)
class Hit:
    """One place where a pattern was found."""

    pattern: Pattern
    nodes: tuple[Node, ...]
    """In the order of the pattern's calls."""
    values: Mapping[str, str]
    """Names of the model's values by those of the pattern; ``""`` for one that is left out."""
    attributes: Mapping[str, Any]
    problem: str = ""
    """Why it cannot be replaced. Holds untrusted text."""

    @property
    def scope(self) -> Scope:
        """Where it is."""
        return self.nodes[0].scope

    @property
    def last(self) -> Node:
        """The node that makes the pattern's first output."""
        at, _ = self.pattern.body.made[self.pattern.body.outputs[0]]
        return self.nodes[at]

    def name(self, name: str) -> Any:
        """Return the value of a name in an expression."""
        plain = name.removeprefix("@")
        if plain in self.attributes:
            return self.attributes[plain]
        if plain in self.values:
            return ValueView(self.scope, self.values[plain])
        if plain in self.pattern.absent:
            return ValueView(self.scope, "")
        if plain == "opset":
            return imports_of(self.scope).get("", UNKNOWN)
        for call, node in zip(self.pattern.body.calls, self.nodes, strict=True):
            if call.label == plain:
                return NodeView(node)
        return UNKNOWN

    def outer_uses(self, ends: Ends) -> list[str]:
        """Return the values inside of it that something else uses and that must not be.

        Args:
            ends: Of its scope.
        """
        body = self.pattern.body
        allowed = {self.values.get(name) for name in (*body.outputs, *body.shared)}
        return [
            output
            for node in self.nodes
            for output in node.outputs
            if output and output not in allowed and ends.is_used_beside(output, self.nodes)
        ]


class Ends:
    """Uses of values of a scope other than as inputs of its nodes; valid until the next edit."""

    def __init__(self, scope: Scope) -> None:
        self._consumers = scope.links.consumers
        self._outputs = frozenset(scope.outputs)
        self._capturers = captures(scope)

    def is_used_beside(self, value: str, own: Sequence[Node]) -> bool:
        """Return whether an output, or nodes that are not among some, use a value."""
        if value in self._outputs:
            return True
        users = (*self._consumers.get(value, ()), *self._capturers.get(value, ()))
        return any(user not in own for user in users)


@dataclass
class _State:
    nodes: list[Node | None]
    values: dict[str, str]
    attributes: dict[str, Any]


@dataclass
class Matcher:
    """Looks for one pattern."""

    pattern: Pattern
    given_up: list[Node] = field(default_factory=list)
    """Nodes around which there were too many ways to try."""
    readers: dict[str, set[Node]] | None = None
    """By value that conditions read: the nodes that the conditions are about."""
    _plans: dict[int, list[tuple[int, str, bool]]] = field(default_factory=dict)
    _steps: int = 0
    _all_steps: int = 0
    _parts: list[Matcher] = field(default_factory=list)
    """The variants of the pattern without its optional nodes."""

    def hits(self, document: Document) -> Iterator[Hit]:
        """Yield where a pattern is, in each scope in the order of the file, each set of nodes once.

        Hits may overlap, and those that cannot be replaced say so.
        """
        for scope in document.scopes():
            yield from self.hits_in(scope)

    def hits_in(self, scope: Scope) -> list[Hit]:
        """Return the hits in one scope, by their last nodes."""
        hits: list[Hit] = []
        with collector_paused(), dims_remembered():
            for _ in self.gradually(scope, hits):
                pass
        return hits

    def gradually(self, scope: Scope, collected: list[Hit]) -> Iterator[None]:
        """Enter the hits in one scope, by their last nodes; yields between steps of the search."""
        if not self._parts:
            self._parts = [
                Matcher(variant, self.given_up, self.readers) for variant in self.pattern.variants
            ]
        covered: dict[Node, list[frozenset[Node]]] = {}
        hits: list[Hit] = []
        for part in self._parts:
            seen: dict[frozenset[Node], Hit] = {}
            yield from part._search(scope, seen)
            for nodes, hit in seen.items():
                if any(nodes <= other for other in covered.get(hit.nodes[0], ())):
                    continue  # a longer one has it
                if len(self._parts) > 1:
                    for node in nodes:
                        covered.setdefault(node, []).append(nodes)
                hits.append(hit)
        collected += _in_order(scope, hits)

    def _search(self, scope: Scope, seen: dict[frozenset[Node], Hit]) -> Iterator[None]:
        anchor, candidates = self._anchor(scope)
        if not candidates:
            return
        ends = Ends(scope)
        fits = self._neighbours(scope, anchor)
        for node in candidates:
            if len(seen) > MOST_HITS or self._all_steps > MOST_IN_ALL:
                self.given_up.append(node)
                return
            if not fits(node):
                pass
            elif self.pattern.conditions:
                with dims_remembered():
                    self._collect(anchor, node, ends, seen)
            else:
                self._collect(anchor, node, ends, seen)
            yield

    def hits_through(self, nodes: Sequence[Node], ends: Ends) -> list[Hit]:
        """Return the hits of a pattern without nodes that may be missing that have some nodes.

        Args:
            nodes: Of one scope.
            ends: Of that scope.
        """
        seen: dict[frozenset[Node], Hit] = {}
        for node in nodes:
            for at in range(len(self.pattern.body.calls)):
                self._collect(at, node, ends, seen)
        return list(seen.values())

    def _collect(
        self, anchor: int, node: Node, ends: Ends, seen: dict[frozenset[Node], Hit]
    ) -> None:
        """Enter the hits in which a node is a certain call of the pattern."""
        self._steps = 0
        for state in self._from(node.scope, anchor, node):
            nodes = tuple(n for n in state.nodes if n is not None)
            key = frozenset(nodes)
            known = seen.get(key)
            if known is not None and not known.problem:
                continue
            hit = Hit(self.pattern, nodes, state.values, state.attributes)
            if not self._holds(hit):
                continue
            problem = ""
            if used := hit.outer_uses(ends):
                problem = f"{shortened(used[0])!r} is used elsewhere, too"
            elif old := next(filter(None, map(old_meaning, nodes)), ""):
                problem = f"{old!r} means what newer opsets do not have"
            if problem:
                if known is not None:
                    continue
                hit = Hit(self.pattern, nodes, state.values, state.attributes, problem)
            seen[key] = hit
        if self._steps > MOST_STEPS:
            self.given_up.append(node)

    def _holds(self, hit: Hit) -> bool:
        """Return whether the conditions hold, and note of which values that was asked."""
        conditions = self.pattern.conditions
        if self.readers is None or not conditions:
            return all(condition.holds(hit.name) for condition in conditions)
        names = Reads.begin()
        try:
            return all(condition.holds(hit.name) for condition in conditions)
        finally:
            Reads.end()
            for name in names:
                self.readers.setdefault(name, set()).add(hit.nodes[0])

    def _anchor(self, scope: Scope) -> tuple[int, Sequence[Node]]:
        """Return the call whose operators are rarest in a scope, and the nodes of these."""
        best: tuple[int, Sequence[Node]] | None = None
        for at, call in enumerate(self.pattern.body.calls):
            if not call.kinds:
                continue
            nodes: list[Node] = []
            for name in {name for _, name in call.kinds}:
                nodes += scope.nodes_of_type(name)
            if best is None or len(nodes) < len(best[1]):
                best = at, nodes
            if not nodes:
                break
        assert best is not None
        return best

    def _neighbours(self, scope: Scope, anchor: int) -> Callable[[Node], bool]:
        """Return whether a node has neighbours as a call has them: what tells most nodes apart."""
        body, links = self.pattern.body, scope.links
        call, produced = body.calls[anchor], body.made
        before = [
            body.calls[produced[item.name][0]].kinds
            for item in call.inputs
            if isinstance(item, Variable) and item.name in produced
        ]
        after = [
            other.kinds
            for other in body.calls
            if any(
                isinstance(item, Variable) and item.name in call.outputs for item in other.inputs
            )
        ]
        sides = [(kinds, True) for kinds in before if kinds]
        sides += [(kinds, False) for kinds in after if kinds]

        def fits(node: Node) -> bool:
            for kinds, is_before in sides:
                names = node.inputs if is_before else node.outputs
                linked = links.producers if is_before else links.consumers
                if not any(
                    (other.domain, other.op_type) in kinds
                    for name in names
                    for other in linked.get(name, ())
                ):
                    return False
            return True

        return fits

    def _plan(self, anchor: int) -> list[tuple[int, str, bool]]:
        """Return in which order calls are looked for: call, linking value, whether it makes it."""
        known = self._plans.get(anchor)
        if known is not None:
            return known
        body = self.pattern.body
        produced = body.made
        placed = {anchor}
        plan: list[tuple[int, str, bool]] = []

        def names_of(call: Call) -> list[str]:
            return [item.name for item in call.inputs if isinstance(item, Variable)]

        while len(placed) < len(body.calls):
            step = None
            for at in placed:  # what makes a value is one node: follow that first
                for name in names_of(body.calls[at]):
                    if name in produced and produced[name][0] not in placed:
                        step = (produced[name][0], name, True)
            if step is None:
                values = {n for at in placed for n in (*names_of(body.calls[at]),
                                                       *body.calls[at].outputs)}  # fmt: skip
                inner = sorted(values, key=lambda name: name not in produced)
                step = next(
                    (at, name, False)
                    for name in inner
                    if name and name != "_"
                    for at, call in enumerate(body.calls)
                    if at not in placed and name in names_of(call)
                )
            plan.append(step)
            placed.add(step[0])
        self._plans[anchor] = plan
        return plan

    def _from(self, scope: Scope, anchor: int, node: Node) -> Iterator[_State]:
        empty = _State([None] * len(self.pattern.body.calls), {}, {})
        plan = self._plan(anchor)
        for state in self._with(empty, anchor, node):
            yield from self._rest(scope, plan, 0, state)

    def _rest(
        self, scope: Scope, plan: list[tuple[int, str, bool]], step: int, state: _State
    ) -> Iterator[_State]:
        if step == len(plan):
            yield state
            return
        at, name, is_maker = plan[step]
        value = state.values.get(name)
        if not value:
            return
        links = scope.links
        candidates: Sequence[Node] = (links.producers if is_maker else links.consumers).get(
            value, []
        )
        for node in list(dict.fromkeys(candidates)) if len(candidates) > 1 else candidates:
            for further in self._with(state, at, node):
                yield from self._rest(scope, plan, step + 1, further)

    def _with(self, state: _State, at: int, node: Node) -> Iterator[_State]:
        """Yield the ways in which a node can be a call of the pattern."""
        self._steps += 1
        self._all_steps += 1
        if self._steps > MOST_STEPS or self._all_steps > MOST_IN_ALL:
            return
        call = self.pattern.body.calls[at]
        if call.kinds and (node.domain, node.op_type) not in call.kinds:
            return
        if node in state.nodes:
            return
        values = self._outputs(state.values, call, node)
        if values is None:
            return
        merged = self._attributes(state.attributes, call, node)
        if merged is None:
            return
        attributes, inputs_left = merged
        inputs = node.inputs[:inputs_left]
        orders = [inputs]
        if call.swaps and len(inputs) == 2:
            orders.append((inputs[1], inputs[0]))
        for order in orders:
            bound = self._bind(values, call, node.scope, order)
            if bound is not None:
                nodes = list(state.nodes)
                nodes[at] = node
                yield _State(nodes, bound, attributes)

    @staticmethod
    def _outputs(values: dict[str, str], call: Call, node: Node) -> dict[str, str] | None:
        outputs = node.outputs
        if len(outputs) < len(call.outputs):
            return None
        bound = dict(values)
        for name, actual in zip(call.outputs, outputs, strict=False):
            if not name:
                continue
            if not actual or bound.setdefault(name, actual) != actual:
                return None
        return bound

    @staticmethod
    def _attributes(
        known: dict[str, Any], call: Call, node: Node
    ) -> tuple[dict[str, Any], int | None] | None:
        """Return what attributes are called, and how many inputs are no attributes."""
        if not call.attributes:
            return known, None
        bound = dict(known)
        inputs_left: int | None = None
        for name, wanted in call.attributes:
            place = _input_called(node, name)
            if place is None:
                value = attribute_value(node, name)
            else:
                inputs_left = place if inputs_left is None else min(place, inputs_left)
                names = node.inputs
                pattern_name = names[place] if place < len(names) else ""
                value = ValueView(node.scope, pattern_name).field("value") if pattern_name else None
                if isinstance(value, np.ndarray):
                    value = value.tolist()
            if value is UNKNOWN:
                return None
            if isinstance(wanted, str):
                if wanted == "_":
                    continue
                if wanted in bound and equal(bound[wanted], value) is not True:
                    return None
                bound[wanted] = value
                continue
            if isinstance(value, np.ndarray):
                value = value.tolist()
            if equal(value, wanted.value(lambda name: UNKNOWN)) is not True:
                return None
        return bound, inputs_left

    def _bind(
        self, values: dict[str, str], call: Call, scope: Scope, inputs: Sequence[str]
    ) -> dict[str, str] | None:
        wanted = call.inputs
        if len(inputs) > len(wanted) and not call.more and any(inputs[len(wanted) :]):
            return None
        bound = dict(values)
        for place, item in enumerate(wanted):
            actual = inputs[place] if place < len(inputs) else ""
            if isinstance(item, Variable):
                if not actual and not item.optional:
                    return None
                if item.name != "_" and bound.setdefault(item.name, actual) != actual:
                    return None
            elif isinstance(item, OmittedInput):
                if actual:
                    return None
            elif not isinstance(item, Literal) or not is_constant_of(scope, actual, item.value):
                return None
        return bound


def _in_order(scope: Scope, hits: list[Hit]) -> list[Hit]:
    """Return hits as their last nodes are in a scope."""
    if len(hits) > 12:
        place = {node: at for at, node in enumerate(scope.nodes)}
        hits.sort(key=lambda hit: place[hit.last])
    elif len(hits) > 1:
        hits.sort(key=lambda hit: scope.index_of(hit.last))
    return hits


def _input_called(node: Node, name: str) -> int | None:
    """Return the place of the input that an attribute has become; None where it is none."""
    schema = schema_of(node)
    if schema is None or schema.attribute(name) is not None:
        return None
    return next((at for at, formal in enumerate(schema.inputs) if formal.name == name), None)


def is_constant_of(scope: Scope, name: str, wanted: object) -> bool:
    """Return whether a value is a constant with some elements, as its type rounds them.

    Args:
        scope: Where the value is seen.
        wanted: A number for a tensor of one element, lists for one of the same shape. Numbers may
            be as far apart as the digits of float32, or of a narrower type, can tell.
    """
    constant = ValueView(scope, name).constant()
    if constant is None:
        return False
    if isinstance(constant, Tensor):
        if constant.element_count > _MOST_COMPARED:
            return False
        constant = array_of(constant)
    if not isinstance(constant, np.ndarray) or constant.dtype.kind in "OSU":
        return False
    expected = np.asarray(wanted)
    if constant.size != expected.size or (expected.ndim and constant.shape != expected.shape):
        return False
    elements = constant.reshape(-1).astype(float)
    coarse = constant.dtype.itemsize < 4 and constant.dtype.kind not in "iub"
    tolerance = 4e-3 if coarse else 1e-5
    return bool(np.all(np.abs(elements - expected.reshape(-1)) <= tolerance * np.abs(elements)))


def find_hits(document: Document, pattern: Pattern) -> list[Hit]:
    """Return all hits of a pattern in a model."""
    return list(Matcher(pattern).hits(document))


def disjoint(hits: Sequence[Hit]) -> tuple[list[Hit], list[Hit]]:
    """Return the hits that share no node with one before, and those that do."""
    claimed: set[Node] = set()
    chosen: list[Hit] = []
    overlapping: list[Hit] = []
    for hit in hits:
        if claimed.isdisjoint(hit.nodes):
            claimed.update(hit.nodes)
            chosen.append(hit)
        else:
            overlapping.append(hit)
    return chosen, overlapping


_PLAIN = ("int", "ints", "float", "floats", "string")
_MOST_VALUES = 8


def pattern_of(nodes: Sequence[Node]) -> str:
    """Return the text of a pattern that finds nodes of one scope, and others that are linked so.

    Weights are inputs, as others have others. Attributes must be the same; large ones, tensors and
    bodies are left out.

    Raises:
        UsageError: There are none, they are of several scopes, or no output of theirs is used.
    """
    scope = scope_of(nodes, "make a pattern of", "Mark those of one graph")
    place = places(scope, list(nodes))
    ordered = sorted(place, key=place.__getitem__)
    pattern_inputs, pattern_outputs = inputs_and_outputs(scope, ordered)
    names: dict[str, str] = {}
    for value in pattern_inputs:
        names[value] = f"x{len(names) + 1}"
    produced = [name for node in ordered for name in node.outputs if name]
    for at, value in enumerate(produced, 1):
        names[value] = f"v{at}"
    captured = set(names) - {name for node in ordered for name in (*node.inputs, *node.outputs)}
    ends = Ends(scope)
    lines = []
    kept: set[str] = set()
    for node in ordered:
        outputs = list(node.outputs)
        while len(outputs) > 1 and not (outputs[-1] and ends.is_used_beside(outputs[-1], ())):
            outputs.pop()
        kept.update(outputs)
        results_text = ", ".join(names.get(name, '""') for name in outputs)
        inputs = ", ".join(names.get(name, '""') for name in node.inputs)
        operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        lines.append(f"{results_text} = {operator}{_attributes(node)}({inputs})")
    heads = ", ".join(names[name] for name in pattern_inputs if name not in captured)
    results = ", ".join(names[name] for name in pattern_outputs if name and name in kept)
    if not results:
        raise UsageError("these nodes make nothing")
    return f"({heads}) => ({results}) {{ {'; '.join(lines)} }}"


def _attributes(node: Node) -> str:
    attributes = [text for attribute in node.attributes() if (text := _attribute(attribute))]
    return f" <{', '.join(attributes)}> " if attributes else ""


def _attribute(attribute: Attribute) -> str:
    if attribute.kind not in _PLAIN or attribute.reference or not attribute.name.isidentifier():
        return ""
    if (word := attribute_word(attribute)) is not None:
        return f"{attribute.name} = '{word}'"
    value = attribute.value
    if isinstance(value, list) and len(value) > _MOST_VALUES:
        return ""
    if isinstance(value, bytes):
        text = value.decode("utf-8", "surrogateescape")
        return f"{attribute.name} = '{text}'" if text.isidentifier() else ""
    return f"{attribute.name} = {value!r}"


_OF_VALUES = frozenset(
    ("initializer", "input", "output", "quantization_annotation", "sparse_initializer",
     "value_info")
)  # fmt: skip
"""Lists of a graph whose records are about values."""
_BODIES = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
_MOST_TOUCHED = 2_000
"""Nodes around an edit, above which all is searched again."""


class LiveHits:
    """Hits of a pattern in a document.

    There are none before :meth:`refresh` or :meth:`search`.

    Args:
        document: Pass its edits to :meth:`update`.
        pattern: Types in its conditions are those that are known at the time.
    """

    def __init__(self, document: ScopeOwner, pattern: Pattern) -> None:
        self.document = document
        self.pattern = pattern
        self._readers: dict[str, set[Node]] = {}
        self._variants = [Matcher(variant, readers=self._readers) for variant in pattern.variants]
        self._hits: dict[frozenset[Node], Hit] = {}
        self._of_node: dict[Node, set[frozenset[Node]]] = {}

    def __len__(self) -> int:
        return len(self._hits)

    def __contains__(self, node: Node) -> bool:
        """Return whether a node is part of a hit."""
        return node in self._of_node

    def __iter__(self) -> Iterator[Hit]:
        """Yield the hits, in no order."""
        return iter(self._hits.values())

    def refresh(self) -> None:
        """Search the whole document again."""
        with collector_paused():
            for _ in self.search():
                pass

    def search(self) -> Iterator[None]:
        """Search the whole document again; yields between steps. Hits are there at its end."""
        self._hits.clear()
        self._of_node.clear()
        self._readers.clear()
        hits: list[Hit] = []
        matcher = Matcher(self.pattern, readers=self._readers)
        for scope in self.document.scopes():
            yield from matcher.gradually(scope, hits)
        for hit in hits:
            self._enter(hit)

    def update(self, change: DocumentChange) -> set[Node]:
        """Update the hits after an edit, undo or redo; return nodes of changed hits."""
        transaction = change.transaction
        touched = None
        if transaction is not None and not change.is_everything:
            touched = self._touched(transaction)
        if touched is None or len(touched) > _MOST_TOUCHED:
            before = set(self._of_node)
            self.refresh()
            return before ^ set(self._of_node)
        waiting = list(touched)
        while waiting:  # what was covered by a hit that goes may be one itself
            for key in list(self._of_node.get(waiting.pop(), ())):
                self._leave(key)
                waiting += (node for node in key if node not in touched)
                touched |= key
        by_scope: dict[Scope, list[Node]] = {}
        for node in touched:
            if _is_there(node):
                by_scope.setdefault(node.scope, []).append(node)
        for scope, nodes in by_scope.items():
            ends = Ends(scope)
            for matcher in self._variants:
                for hit in matcher.hits_through(nodes, ends):
                    self._enter(hit)
                    touched |= set(hit.nodes)
        return touched

    def _touched(self, transaction: Transaction) -> set[Node] | None:
        """Return the nodes around which hits may have changed; None for all."""
        touched = _touched(transaction)
        if touched is None:
            return None
        nodes, names = touched
        for name in names:
            nodes |= self._readers.get(name, set())
        return nodes

    def _enter(self, hit: Hit) -> None:
        key = frozenset(hit.nodes)
        sharing = {other for node in key for other in self._of_node.get(node, ())}
        if any(key < other for other in sharing):
            return
        for other in sharing:
            if other < key:
                self._leave(other)
        self._hits[key] = hit
        for node in key:
            self._of_node.setdefault(node, set()).add(key)

    def _leave(self, key: frozenset[Node]) -> None:
        if self._hits.pop(key, None) is None:
            return
        for node in key:
            keys = self._of_node[node]
            keys.discard(key)
            if not keys:
                del self._of_node[node]


def _is_there(node: Node) -> bool:
    producers = node.scope.links.producers
    return any(node in producers.get(name, ()) for name in node.outputs if name)


def _touched(transaction: Transaction) -> tuple[set[Node], set[str]] | None:
    """Return nodes and values around which hits may have changed; None for all."""
    nodes: dict[Node, None] = {}
    produced: set[tuple[Scope, str]] = set()
    consumed: set[tuple[Scope, str]] = set()
    for primitive in transaction.primitives:
        if isinstance(primitive, SetAttribute) and any(
            attribute is not None and attribute.type in _BODIES
            for attribute in (primitive.old, primitive.new)
        ):
            return None
        if isinstance(primitive, Splice) and primitive.list_name == "node":
            nodes.update(dict.fromkeys((*primitive.removed, *primitive.inserted)))
        elif isinstance(primitive, Splice) and primitive.list_name in _OF_VALUES:
            records = (*primitive.removed, *primitive.inserted)
            produced.update(
                (primitive.scope, record_name(primitive.list_name, record)) for record in records
            )
        elif isinstance(primitive, SetLinks) and primitive.node is not None:
            nodes[primitive.node] = None
            (produced if primitive.side == "output" else consumed).update(
                (primitive.scope, name) for name in (*primitive.old, *primitive.new)
            )
        elif isinstance(primitive, (SetAttribute, SetText, SetList)) and primitive.node is not None:
            nodes[primitive.node] = None
        elif isinstance(primitive, SetText) and primitive.list_name in _OF_VALUES:
            names = (
                record_name(primitive.list_name, primitive.record),
                primitive.old,
                primitive.new,
            )
            produced.update((primitive.scope, name) for name in names if isinstance(name, str))
        elif not isinstance(primitive, SetList) or primitive.field_name != "metadata_props":
            return None
    if any(node.children for node in nodes):
        return None
    for node in nodes:
        produced.update((node.scope, name) for name in node.outputs)
        consumed.update((node.scope, name) for name in node.inputs)
    touched = set(nodes)
    for scope, name in produced | consumed:
        definition = scope.resolve(name) if name else None
        if definition is not None and definition.node is not None:
            touched.add(definition.node)
        if (scope, name) in produced and name:
            home = definition.scope if definition is not None else scope
            touched.update(use.node for use in home.users(name))
            if len(touched) > _MOST_TOUCHED:
                return None
    return touched, {name for _, name in produced | consumed if name}
