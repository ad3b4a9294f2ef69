"""Which layers a table shows: filter and groups; and what a selection adds up to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.report.groups import group_layers
from dld_tui.core.report.layer_table import shape_text
from dld_tui.core.report.records import Group, Layer
from dld_tui.widgets.layers.columns import (
    REPORT_COLUMNS,
    ColumnSet,
    LayerColumn,
    short_precision,
    short_provider,
)

if TYPE_CHECKING:
    from dld_tui.core.report.pass_times import PassTimes

_Test: TypeAlias = "Callable[[Layer], bool]"
_LIMIT = re.compile(r"([a-z%]+)(<=|>=|<|>)([0-9.]+(?:e[0-9]+)?)")
_FIELD = re.compile(r"([a-z]+):(.+)", re.DOTALL)


def matcher(text: str, columns: ColumnSet = REPORT_COLUMNS) -> _Test | None:
    """Return a test for the words of a filter, or None when it lets everything through.

    Every word must be found, in any case: ``conv fp16``. ``type:``, ``name:``, ``provider:``,
    ``precision:``, ``node:``, ``op:`` and ``scope:`` look in one place; ``ms>0.1``, ``%>=5``,
    ``gpu``, ``min``, ``max``, ``mean``, ``runs`` and ``passes`` compare a number. The columns may
    know more of both.
    """
    tests = [_test_of(word, columns) for word in text.split()]
    if not tests:
        return None
    return lambda layer: all(test(layer) for test in tests)


def _test_of(word: str, columns: ColumnSet) -> _Test:
    limit = _LIMIT.fullmatch(word)
    if limit is not None and limit.group(1) in columns.limits:
        try:
            column = columns.by_key[columns.limits[limit.group(1)]]
            return _limit_test(column, limit.group(2), float(limit.group(3)))
        except ValueError:  # such as 1.2.3: then it is a plain word
            pass
    named = _FIELD.fullmatch(word)
    if named is not None:
        texts = columns.places.get(named.group(1)) or _PLACES.get(named.group(1))
        if texts is not None:
            wanted = named.group(2).lower()
            return lambda layer: any(wanted in text.lower() for text in texts(layer))
    wanted = word.lower()
    own = tuple(columns.places.values())

    def test(layer: Layer) -> bool:
        if any(wanted in text.lower() for text in _all_texts(layer)):
            return True
        return any(wanted in text.lower() for texts in own for text in texts(layer))

    return test


def _limit_test(column: LayerColumn, operator: str, limit: float) -> _Test:
    def test(layer: Layer) -> bool:
        value = column.value(layer)
        if not isinstance(value, (int, float)):
            return False
        if operator.startswith(">"):
            return value >= limit if operator == ">=" else value > limit
        return value <= limit if operator == "<=" else value < limit

    return test


def _precisions(layer: Layer) -> tuple[str, str]:
    return short_precision(layer.precision), layer.precision or ""


def _scopes(layer: Layer) -> Iterator[str]:
    for link in layer.nodes:
        yield "/".join(link.scope)
        yield link.name.rpartition("/")[0]


_PLACES: Mapping[str, Callable[[Layer], Iterable[str]]] = {
    "type": lambda layer: (layer.type,),
    "name": lambda layer: (layer.name,),
    "provider": lambda layer: (short_provider(layer.provider),),
    "precision": _precisions,
    "prec": _precisions,
    "node": lambda layer: (link.label for link in layer.nodes),
    "op": lambda layer: (link.op_type for link in layer.nodes),
    "scope": _scopes,
}


def _all_texts(layer: Layer) -> Iterator[str]:
    for place in ("type", "name", "provider", "precision", "node", "op"):
        yield from _PLACES[place](layer)


def select(
    layers: Sequence[Layer],
    text: str = "",
    group: tuple[str, str] | None = None,
    columns: ColumnSet = REPORT_COLUMNS,
) -> list[int]:
    """Return the positions of the layers that pass a filter and belong to a (grouping, key)."""
    test = matcher(text, columns)
    return [
        position
        for position, layer in enumerate(layers)
        if (test is None or test(layer)) and (group is None or _in_group(layer, *group))
    ]


def _in_group(layer: Layer, by: str, key: str) -> bool:
    return any(group.key == key for group in group_layers([layer], by))


def groups_of(
    layers: Sequence[Layer],
    by: str,
    total_ms: float,
    text: str = "",
    columns: ColumnSet = REPORT_COLUMNS,
    by_pass: PassTimes | None = None,
    gpu_by_pass: PassTimes | None = None,
) -> list[Group]:
    """Return the groups of layers that pass a filter, the costliest first, percent of `total_ms`.

    The times by pass are as in :func:`~dld_tui.core.report.groups.group_layers`.
    """
    chosen = select(layers, text, columns=columns)
    found = group_layers([layers[position] for position in chosen], by, by_pass, gpu_by_pass)
    share = 100 / total_ms if total_ms > 0 else 0.0
    return [replace(group, percent=group.cost_ms * share) for group in found]


@dataclass(frozen=True)
class Selection:
    """What marked layers add up to; times in milliseconds."""

    count: int
    total_ms: float
    """The sum of their medians."""
    min_ms: float
    max_ms: float
    mean_ms: float
    percent: float
    types: tuple[tuple[str, int], ...]
    """Types by frequency."""
    gpu_ms: float | None = None
    """On the GPU; None when that is known of none."""
    pass_percent: float | None = None
    """Of the full pass, by pass, the median; None when there was none."""
    together_ms: float | None = None
    """What they take together in a pass, the median; None when that is not known."""
    distinct: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    """(what, its values by frequency) of what tells layers apart."""


_DISTINCT: tuple[tuple[str, Callable[[Layer], str]], ...] = (
    ("type", lambda layer: layer.type),
    ("precision", lambda layer: short_precision(layer.precision)),
    ("provider", lambda layer: short_provider(layer.provider)),
    ("output", lambda layer: "; ".join(shape_text(dims) for dims in layer.output_dims)),
    ("input", lambda layer: "; ".join(shape_text(dims) for dims in layer.input_dims)),
)


def summarise_selection(
    layers: Sequence[Layer], total_ms: float, by_pass: PassTimes | None = None
) -> Selection | None:
    """Return the sums over some layers, or None without any.

    Args:
        layers: The marked ones.
        total_ms: The sum over all layers.
        by_pass: The times of all layers by pass, by `Layer.index`; None when they are not known.
    """
    if not layers:
        return None
    times = [layer.time_ms or 0.0 for layer in layers]
    indices = [layer.index for layer in layers]
    total = sum(times)
    gpu = [layer.gpu_time_ms for layer in layers if layer.gpu_time_ms is not None]
    return Selection(
        count=len(layers),
        total_ms=total,
        min_ms=min(times),
        max_ms=max(times),
        mean_ms=total / len(times),
        percent=100 * total / total_ms if total_ms > 0 else 0.0,
        types=tuple(Counter(layer.type for layer in layers).most_common()),
        gpu_ms=sum(gpu) if gpu else None,
        together_ms=None if by_pass is None else by_pass.together_ms(indices),
        pass_percent=None if by_pass is None else by_pass.of_pass_percent(indices),
        distinct=tuple(
            (what, tuple(Counter(map(value, layers)).most_common())) for what, value in _DISTINCT
        ),
    )
