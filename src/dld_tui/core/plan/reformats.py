"""Why an engine changes formats and types, and the edit that avoids each change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dld_tui.core.plan.json_text import layout_of
from dld_tui.core.plan.lint import (
    FLOATS,
    Links,
    channels,
    in_dtype,
    is_reformat,
    out_dtype,
    quantizing,
)
from dld_tui.core.plan.macs import is_convolution
from dld_tui.core.plan.model import EngineLayer, EnginePlan, EngineTensor
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.tables.units import BYTES, FINE_MS, PERCENT

_ALIGNED = 8
_STEPS = 8


class Reformat(NamedTuple):
    """A change, its cause and what avoids it. Texts are foreign."""

    layer: EngineLayer
    cause: str
    about: str
    """The cause in full."""
    edit: str


def reformats(plan: EnginePlan) -> list[Reformat]:
    """Return the layers that change format or type only, those of one cause together.

    The cause that takes longest comes first.
    """
    links = Links(plan)
    found = [
        Reformat(layer, *_explained(layer, links, place))
        for place, layer in enumerate(plan.layers)
        if is_reformat(layer)
    ]
    total: dict[str, float] = {}
    for one in found:
        total[one.cause] = total.get(one.cause, 0.0) + (one.layer.time_ms or 0.0)
    return sorted(found, key=lambda one: (-total[one.cause], one.cause, -(one.layer.time_ms or 0)))


def _explained(layer: EngineLayer, links: Links, place: int) -> tuple[str, str, str]:
    """Return the cause in a word, in full, and the edit."""
    of, to = in_dtype(layer), out_dtype(layer)
    before, after = _neighbour(links, place, links.before), _neighbour(links, place, links.after)
    maker, reader = _called(before, "the input"), _called(after, "the output")
    layouts = [layout_of(one[0].format) if one else "" for one in (layer.inputs, layer.outputs)]
    role = quantizing(layer, None)
    if role == "Quantize" and links.is_at_input(place):
        return (
            "input type",
            f"an input is {of} and is quantized for {reader}",
            f"Feed {to}: let the model begin behind its first QuantizeLinear",
        )
    if role:
        where = f"after {maker}" if role == "Quantize" else f"before {reader}"
        fused = f"let {maker} quantize" if role == "Quantize" else f"quantize {reader}, too"
        return (
            "quantization",
            f"{role} {where} is a layer of its own, not a part of one",
            f"{fused[0].upper()}{fused[1:]}; or leave the part around it in floats"
            " (dld convert quantize --exclude)",
        )
    if of and to and of != to:
        return _converted(links, place, of, to, maker, reader)
    if links.is_at_input(place):
        return (
            "input format",
            f"an input comes as {layouts[0] or 'it is'}, {reader} wants {layouts[1] or 'another'}",
            _given("--input-formats", to, layouts[1], "what makes the input"),
        )
    if links.is_at_output(place):
        return (
            "output format",
            f"{maker} makes {layouts[0] or 'another'}, an output is {layouts[1] or 'as set'}",
            _given("--output-formats", of, layouts[0], "what reads the output"),
        )
    odd = next((one for one in (before, after) if one is not None and _is_odd(one)), None)
    if odd is not None:
        made = channels(odd)
        return (
            "channels",
            f"{odd.name} has {' to '.join(map(str, made or ()))} channels, which vectorized formats"
            " hold with padding only",
            f"Make its channels a multiple of {_ALIGNED} (16 for int8)",
        )
    for one, side in ((before, "makes"), (after, "takes")):
        if one is not None and not is_convolution(one) and not is_reformat(one):
            return (
                "operator between",
                f"{one.name} ({one.kind}) {side} another format than what is around it",
                f"Move it out of the way between the layers around it, or replace it: a {one.kind}"
                " at an end of the network, or fused into a neighbour, needs no copy",
            )
    return (
        "choice of tactics",
        f"{maker} and {reader} are fastest in different formats, by the builder's measurements",
        "Build with more timings (--avg-timing 8) or --optimization-level 5, and compare both",
    )


def _converted(
    links: Links, place: int, of: str, to: str, maker: str, reader: str
) -> tuple[str, str, str]:
    if links.is_at_input(place):
        return (
            "input type",
            f"an input is {of}, {reader} works in {to}",
            f"Let the model take {to} (dld convert fp16 does, without --keep-io-types), or feed it"
            f" (--input-formats {to}:chw, to TensorRT 10)",
        )
    if links.is_at_output(place):
        return (
            "output type",
            f"{maker} works in {of}, an output is {to}",
            f"Let the model give {of} (dld convert fp16 does, without --keep-io-types), or take it"
            f" (--output-formats {of}:chw, to TensorRT 10)",
        )
    how = "with Casts in the model, or --layer-precision" if {of, to} <= FLOATS else (
        "by quantizing both or neither"
    )  # fmt: skip
    return (
        "mixed types",
        f"{maker} works in {of}, {reader} in {to}",
        f"Let both work in one type, {how}",
    )


def _given(option: str, dtype: str, layout: str, who: str) -> str:
    name = "chw" if layout == "LINEAR" else layout.lower()
    return f"Build with {option} {dtype or 'TYPE'}:{name or 'FORMAT'}, if {who} can"


def _is_odd(layer: EngineLayer) -> bool:
    made = channels(layer) if is_convolution(layer) else None
    return made is not None and any(number % _ALIGNED for number in made)


def _neighbour(links: Links, place: int, step: Callable[[int], list[int]]) -> EngineLayer | None:
    """Return the next layer in a direction that is no change of format itself."""
    for _ in range(_STEPS):
        near = step(place)
        if not near:
            return None
        place = near[0]
        if not is_reformat(links.layers[place]):
            return links.layers[place]
    return None


def _called(layer: EngineLayer | None, otherwise: str) -> str:
    return otherwise if layer is None else layer.name


def reformat_table(plan: EnginePlan) -> Table[Reformat]:
    """Return the changes by cause as a table."""

    def form(tensors: Sequence[EngineTensor]) -> str:
        return tensors[0].format if tensors else ""

    def converts(one: Reformat) -> str:
        return "type" if one.layer.precision != one.layer.output_precision else "layout"

    columns: tuple[Column[Reformat], ...] = (
        Column("name", "layer", lambda one: one.layer.name, least=28, keep="end", pinned=True),
        Column("time_ms", "time ms", lambda one: one.layer.time_ms, FINE_MS, 9, heat=True),
        Column("percent", "%", lambda one: one.layer.percent, PERCENT, 6),
        Column("cause", "cause", lambda one: one.cause, width=17),
        Column("edit", "what avoids it", lambda one: one.edit, priority=5),
        Column("about", "why", lambda one: one.about, priority=10),
        Column("from", "from", lambda one: form(one.layer.inputs), priority=20),
        Column("to", "to", lambda one: form(one.layer.outputs), priority=20),
        Column("converts", "converts", converts, width=8, priority=15),
        Column("io_bytes", "in + out", lambda one: one.layer.io_bytes, BYTES, 10, priority=15),
        Column("origin", "origin", lambda one: one.layer.origin, priority=30),
    )
    return Table(columns, reformats(plan))
