"""Which layers a table shows: filter and groups; and what some layers add up to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.report.groups import group_layers
from dld_tui.core.report.layer_table import shapes_text, short_precision, short_provider
from dld_tui.core.report.records import Group, Layer

if TYPE_CHECKING:
    from dld_tui.core.report.pass_times import PassTimes

_Test: TypeAlias = "Callable[[Layer], bool]"
_LIMIT = re.compile(r"([a-z%]+)(<=|>=|<|>)([0-9.]+(?:e[0-9]+)?)")
_FIELD = re.compile(r"([a-z]+):(.+)", re.DOTALL)
REPORT_FILTER = "words all must match · type:Conv · node:enc · provider:CPU · ms>0.1 · %>5"
ENGINE_FILTER = "words all must match · type:conv · prec:int8 · tactic:xmma · ms>0.1 · bytes>1e6"


def matcher(text: str, *, engine: bool = False) -> _Test | None:
    """Return a test for the words of a filter; None if it passes everything.

    Every word must be found, in any case: ``conv fp16``. ``type:``, ``name:``, ``provider:``,
    ``prec:``, ``node:``, ``op:`` and ``scope:`` search one field; ``ms>0.1``, ``%>=5``, ``gpu``,
    ``min``, ``max``, ``mean``, ``runs`` and ``passes`` compare a number. Engines also have
    ``tactic:``, ``kind:``, ``out:``, ``origin:``, ``format:``, ``bytes``, ``weights`` and
    ``findings``.
    """
    tests = [_test_of(word, engine) for word in text.split()]
    return (lambda layer: all(test(layer) for test in tests)) if tests else None


def _test_of(word: str, engine: bool) -> _Test:
    places = {**_PLACES, **_ENGINE_PLACES} if engine else _PLACES
    limits = _ENGINE_LIMITS if engine else _LIMITS
    limit = _LIMIT.fullmatch(word)
    if limit is not None and limit[1] in limits:
        try:
            return _limit_test(limits[limit[1]], limit[2], float(limit[3]))
        except ValueError:  # such as 1.2.3: then it is a plain word
            pass
    named = _FIELD.fullmatch(word)
    if named is not None and named[1] in places:
        texts, wanted = [places[named[1]]], named[2].lower()
    else:
        texts, wanted = [places[name] for name in places if name not in _NAMED_ONLY], word.lower()
    return lambda layer: any(
        wanted in text.lower() for texts_of in texts for text in texts_of(layer)
    )


def _limit_test(key: str, sign: str, limit: float) -> _Test:
    def test(layer: Layer) -> bool:
        value = getattr(layer, key)
        if not isinstance(value, (int, float)):
            return False
        if sign.startswith(">"):
            return value >= limit if sign == ">=" else value > limit
        return value <= limit if sign == "<=" else value < limit

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
_ENGINE_PLACES: Mapping[str, Callable[[Layer], Iterable[str]]] = {
    "tactic": lambda layer: (layer.tactic,),
    "kind": lambda layer: (layer.layer_type,),
    "out": lambda layer: (layer.output_precision,),
    "origin": lambda layer: (layer.origin,),
    "format": lambda layer: (*layer.input_types, *layer.output_types),
}
_NAMED_ONLY = ("prec", "scope")
_LIMITS: Mapping[str, str] = {
    "ms": "time_ms", "time": "time_ms", "%": "percent", "percent": "percent",
    "gpu": "gpu_time_ms", "min": "min_ms", "max": "max_ms", "mean": "mean_ms", "runs": "count",
    "count": "count", "passes": "passes",
}  # fmt: skip
_ENGINE_LIMITS: Mapping[str, str] = {
    "ms": "time_ms", "time": "time_ms", "%": "percent", "percent": "percent",
    "bytes": "footprint", "weights": "weights_bytes", "findings": "findings",
}  # fmt: skip


def select(
    layers: Sequence[Layer],
    text: str = "",
    group: tuple[str, str] | None = None,
    *,
    engine: bool = False,
) -> list[int]:
    """Return the positions of the layers that pass a filter and belong to a (grouping, key)."""
    test = matcher(text, engine=engine)
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
    text: str = "",
    by_pass: PassTimes | None = None,
    gpu_by_pass: PassTimes | None = None,
    *,
    engine: bool = False,
) -> list[Group]:
    """Return the groups of layers that pass a filter, the costliest first, percent of all layers.

    The times by pass are as in :func:`~dld_tui.core.report.groups.group_layers`.
    """
    chosen = [layers[at] for at in select(layers, text, engine=engine)]
    return group_layers(chosen, by, by_pass, gpu_by_pass, whole=layers)


@dataclass(frozen=True)
class Selection:
    """What some layers add up to; times in milliseconds."""

    count: int
    total_ms: float
    """The sum of their times, each the median or the mean of its passes."""
    min_ms: float
    max_ms: float
    mean_ms: float
    percent: float
    gpu_ms: float | None = None
    """On the GPU; None when that is known of none."""
    pass_percent: float | None = None
    """Of the full pass, the median over passes; None without passes."""
    together_ms: float | None = None
    """Their total time in a pass, the median; None if unknown."""
    distinct: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    """(property, its values by frequency) of the properties of layers."""


_DISTINCT: tuple[tuple[str, Callable[[Layer], str]], ...] = (
    ("type", lambda layer: layer.type),
    ("precision", lambda layer: short_precision(layer.precision)),
    ("provider", lambda layer: short_provider(layer.provider)),
    ("output", lambda layer: shapes_text(layer.output_dims)),
    ("input", lambda layer: shapes_text(layer.input_dims)),
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
        gpu_ms=sum(gpu) if gpu else None,
        together_ms=None if by_pass is None else by_pass.together_ms(indices),
        pass_percent=None if by_pass is None else by_pass.of_pass_percent(indices),
        distinct=tuple(
            (title, tuple(Counter(map(value, layers)).most_common())) for title, value in _DISTINCT
        ),
    )
