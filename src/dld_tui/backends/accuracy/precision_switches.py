"""Runs of a model in which each node rounds its values, or not, as each run says: one session.

To load a model takes many times as long as to run it. What comes of weights alone, their rounding
above all, is computed in sessions of their own and kept for the next runs.
"""

from __future__ import annotations

import contextlib
import math
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from dld_tui.backends.onnxruntime.session import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner, TensorSession, taken_by
from dld_tui.core.document.casting import Switched
from dld_tui.core.document.node import Node
from dld_tui.core.errors import ActivityError
from dld_tui.core.inputs.shapes import AnyArray

_KEPT_BYTES = 1 << 30
"""Of rounded weights, at most."""
_SESSIONS, _TOGETHER = 32, 8
"""Sessions for weights, and values in each at least. A run computes all outputs of a session."""
_RANDOM = ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike",
           "RandomUniform", "RandomUniformLike")  # fmt: skip


class SwitchedModel:
    """A model whose nodes round their values by choice. Close it before the document.

    Args:
        switched: The model with its switches, which is closed with this.
        folder: Where the weights can be referred to.
        settings: How to run.
        outputs: What is wanted of a run.
        fed: The inputs that runs will give.

    Raises:
        ActivityError: Such a model cannot be run.
    """

    def __init__(
        self,
        switched: Switched,
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
        taken = {spec.name for spec in self._session.inputs}
        switches = {name: np.array(name in lowered) for name in self._switched.names}
        for feed in feeds:
            given = {**feed, **switches}
            fed = self._session.feed({name: given[name] for name in given if name in taken})
            yield self._session.tensors(self._outputs, {**fed, **weights})


class _Weights:
    """What nodes take that comes of weights and switches alone."""

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
        found = {name: self._known[key] for name, key in keys.items() if key in self._known}
        for name in found:
            self._known.move_to_end(keys[name])
        for number, group in enumerate(self._groups):
            if any(name not in found for name in group):
                made = self._made(number, lowered)
                found |= made
                for name, value in made.items():
                    old = self._known.pop(keys[name], None)
                    self._bytes += value.nbytes - (0 if old is None else old.nbytes)
                    self._known[keys[name]] = value
        while self._bytes > _KEPT_BYTES:
            self._bytes -= self._known.popitem(last=False)[1].nbytes
        return found

    def _made(self, number: int, lowered: Collection[str]) -> dict[str, AnyArray]:
        names = self._groups[number]
        session = self._sessions.get(number)
        if session is None:
            session = self._sessions[number] = self._runner.session(names, {})
        switches = {spec.name: np.array(spec.name in lowered) for spec in session.inputs}
        made = session.tensors(names, session.feed(switches))
        values = {name: value for name, value in made.items() if value is not None}
        if len(values) < len(names):
            raise ActivityError("a value that comes of weights is no tensor")
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
    left = [*graph.node]
    while left:
        others = []
        for node in left:
            taken = _taken_from_outside(node)
            if not _is_random(node) and all(name in fixed for name in taken):
                needs = frozenset[str]().union(*(fixed[name] for name in taken))
                fixed |= dict.fromkeys(filter(None, node.output), needs)
            else:
                others.append(node)
        if len(others) == len(left):
            break
        left = others  # nodes need not be sorted
    for node in left:
        wanted |= dict.fromkeys(taken_by(node))
    own = {*switches}
    return {name: fixed[name] for name in wanted if name not in own and fixed.get(name)}


def _taken_from_outside(node: onnx.NodeProto) -> set[str]:
    """Return the values that a node takes, its bodies included."""
    return set(filter(None, taken_by(node))) - {
        name for one in _inside(node) for name in one.output
    }


def _is_random(node: onnx.NodeProto) -> bool:
    return any(one.op_type in _RANDOM for one in (node, *_inside(node)))


def _inside(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes in the bodies of a node."""
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            for inner in body.node:
                yield inner
                yield from _inside(inner)
