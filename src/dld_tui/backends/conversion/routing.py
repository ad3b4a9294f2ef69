"""Tokens that a mixture of experts sends to other experts after a conversion.

A router takes the experts with the greatest scores. Where two scores are nearly the same, rounding
decides, and the token gets another result, which no tolerance covers. In a decoder, tokens see only
those before them: what comes before the first such token can still be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import numpy_helper

from dld_tui.core.accuracy.tensor_errors import compare
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.inputs.roles import cache_pairs, is_token_ids
from dld_tui.core.model.inputs.shapes import AnyArray, InputSpec

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.scope import Scope

_MIXTURES = ("MoE", "QMoE")
_LEAST_TOKENS = 8
"""Fewer comparable tokens say nothing."""


@dataclass(frozen=True)
class Router:
    """What sends tokens to experts."""

    scores: str
    """The tensor, with a row for each token."""
    count: int
    """The number of experts for each token."""


@dataclass
class Routes:
    """The tokens of one set of inputs that can be compared."""

    batch: int
    length: int
    first: list[int]
    """The place of the first token of each sequence that goes to other experts."""
    axes: Mapping[str, int] = field(default_factory=dict)
    """The axis of tokens of each cache."""

    def kept(self, name: str, value: AnyArray) -> AnyArray | None:
        """Return the comparable elements of an output, None if its axes are unknown."""
        axis = self.axes.get(name, 1)
        if value.ndim <= axis or value.shape[0] != self.batch or value.shape[axis] < self.length:
            return None
        past = value.shape[axis] - self.length
        rows = (
            np.moveaxis(value[at], axis - 1, 0)[: past + first].reshape(-1)
            for at, first in enumerate(self.first)
        )
        return np.concatenate([*rows])


def routers_of(document: Document) -> list[Router]:
    """Return the routers of the main graph, in the order of the nodes."""
    main = document.main
    routers = []
    for node in main.nodes:
        if node.op_type in _MIXTURES and len(node.inputs) > 1:
            routers.append(Router(node.inputs[1], node.integer("k", 1)))
        elif (
            node.op_type == "TopK" and len(node.inputs) > 1 and node.integer("axis", -1) in (-1, 1)
        ):
            count = _number(main, node.inputs[1])
            if count is not None:
                routers.append(Router(node.inputs[0], count))
    return routers


def _number(main: Scope, name: str) -> int | None:
    """Return the only element of a stored tensor, None for any other value."""
    tensor, maker = main.initializer(name), main.producer(name)
    if tensor is not None and tensor.element_count == 1:
        return int(tensor.read()[0])
    for attribute in maker.proto.attribute if maker is not None else ():
        if attribute.name == "value":
            values = numpy_helper.to_array(attribute.t).reshape(-1)
            return int(values[0]) if values.size == 1 else None
    return None


def token_shape(document: Document, feed: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return batch and length of the tokens of a decoder; None if it is none."""
    if not cache_pairs(document):
        return None
    for name, value in feed.items():
        known = document.main.value_type(name)
        spec = InputSpec(name, known.dtype or "" if known is not None else "", np.shape(value))
        if is_token_ids(spec) and np.ndim(value) == 2:
            return int(value.shape[0]), int(value.shape[1])
    return None


def comparable_routes(
    document: Document,
    routers: list[Router],
    tokens: tuple[int, int],
    original: Mapping[str, AnyArray | None],
    result: Mapping[str, AnyArray | None],
    quiet_db: float,
) -> Routes | None:
    """Return which tokens can be compared; None if all can, or if no near tie explains the rest.

    Args:
        document: The original.
        routers: Its routers.
        tokens: Batch and length.
        original: The scores by name.
        result: The same of the result.
        quiet_db: Signal to noise ratio of scores that are near enough.
    """
    batch, length = tokens
    routes = Routes(
        batch, length, [length] * batch, {p.present: p.axis for p in cache_pairs(document)}
    )
    for router in routers:
        mine, theirs = original.get(router.scores), result.get(router.scores)
        if mine is None or theirs is None or mine.shape != theirs.shape:
            continue
        if mine.size != batch * length * mine.shape[-1] or mine.shape[-1] <= router.count:
            continue
        mine, theirs = mine.reshape(batch, length, -1), theirs.reshape(batch, length, -1)
        for row, place in _other_choices(mine, theirs, router.count):
            if place >= routes.first[row]:
                continue
            error = compare(mine[row, place], theirs[row, place])
            if error.special or (error.snr_db if error.snr_db is not None else math.inf) < quiet_db:
                return None  # no near tie: the scores themselves are wrong
            routes.first[row] = place
    return routes if min(routes.first) < length and sum(routes.first) >= _LEAST_TOKENS else None


def _other_choices(mine: AnyArray, theirs: AnyArray, count: int) -> Iterator[tuple[int, int]]:
    """Yield the sequence and place of each token with other experts."""
    chosen = [
        np.sort(np.argsort(-scores.astype(np.float64), -1, kind="stable")[..., :count], -1)
        for scores in (mine, theirs)
    ]
    for row, place in np.argwhere((chosen[0] != chosen[1]).any(-1)):
        yield int(row), int(place)
