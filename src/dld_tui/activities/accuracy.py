"""Whether two models, or two ways to run one, give the same results.

Result: ``{"reference", "other": {"model", "provider", "optimization", "round"}, "inputs": [...],
"sets", "tolerance", "tensors": [ROW, ...], "is_good", "first": NAME or null, "unmatched",
"kept_bytes", "seconds", "remarks": [...]}``; rows as
:class:`dld_tui.core.accuracy.result.Row` has them, in the order of the computation.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.params import param
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.accuracy_runs import Comparison, Side
    from dld_tui.backends.onnxruntime_options import SessionSettings
    from dld_tui.core.document.document import Document

_LEVELS = ("disabled", "basic", "extended", "layout", "all")
_MIB = 1 << 20
_LOOSE = 1e-2
"""The default tolerances where one of the runs is in 16 bits."""
_CPU_HALVES = (
    "ONNX Runtime on a CPU computes a float16 or bfloat16 model in float32 and does not round"
    " between nodes, so what overflows may come out finite: compare the float32 model with --round"
    " fp16, or run on CUDA"
)


@dataclass(frozen=True)
class Request:
    """What to compare with what, and how near it has to be."""

    model: Path = param(
        label="Model",
        help="The ONNX model that is the reference.",
        kind="file",
        positional=True,
        metavar="MODEL",
    )
    against: Path | None = param(
        None,
        label="Against",
        help="The model to compare with it; by default the same one, run in another way.",
        spellings=("--against",),
        kind="file",
        metavar="MODEL_B",
    )
    tensors: bool = param(
        False,
        label="All tensors",
        help="Compare every tensor of the main graph, not the outputs only.",
        spellings=("--tensors",),
    )
    round: str = param(
        "none",
        label="Round to",
        help="Round what the other model's nodes take and make to this precision.",
        choices=("none", "fp16", "bf16"),
        spellings=("--round",),
    )
    provider: str = param(
        "CPU",
        label="Provider",
        help="Execution provider of the reference.",
        spellings=("--provider",),
        metavar="NAME",
    )
    against_provider: str = param(
        "",
        label="Other provider",
        help="Execution provider of the other run; by default the same.",
        spellings=("--against-provider",),
        metavar="NAME",
    )
    optimization: str = param(
        "usual",
        label="Optimization",
        help="Graph optimization of the reference; usual is all, and disabled with --tensors.",
        choices=("usual", *_LEVELS),
        spellings=("--optimization",),
    )
    against_optimization: str = param(
        "same",
        label="Other optimiz.",
        help="Graph optimization of the other run.",
        choices=("same", *_LEVELS),
        spellings=("--against-optimization",),
    )
    tolerance: tuple[str, ...] = param(
        (),
        label="Tolerances",
        help="What may be off: atol=1e-3,rtol=1e-2 or cosine=0.999 or snr=30 for all tensors,"
        " NAME:atol=… for one.",
        spellings=("--tolerance",),
        metavar="SPEC",
    )
    atol: float | None = param(
        None,
        label="Absolute",
        help="Absolute tolerance; by default 1e-5, and 1e-2 where a run is in fp16 or bf16.",
        spellings=("--atol",),
        minimum=0,
    )
    rtol: float | None = param(
        None,
        label="Relative",
        help="Relative tolerance; by default 1e-5, and 1e-2 where a run is in fp16 or bf16.",
        spellings=("--rtol",),
        minimum=0,
    )
    inputs: Path | None = param(
        None,
        label="Input data",
        help="Folder with input_0.pb, … or NAME.npy, or with folders test_data_set_0, … of these."
        " By default inputs are random.",
        spellings=("--inputs",),
        kind="folder",
        metavar="DIR",
    )
    shape: tuple[str, ...] = param(
        (),
        label="Input shapes",
        help="Shape of an input, as NAME:1x3x224x224.",
        spellings=("--shape", "--shapes", "--input-shapes"),
        kind="shapes",
        metavar="NAME:DIMS",
    )
    seed: int = param(
        0, label="Seed", help="Of the random inputs.", spellings=("--seed",), minimum=0
    )
    sets: int = param(
        1,
        label="Sets",
        help="How many random sets of inputs; of each tensor the worst is told.",
        spellings=("--sets",),
        minimum=1,
        maximum=1000,
    )
    memory_budget: float = param(
        100.0,
        label="Memory budget",
        help="How much of the tensors' values is kept at a time.",
        unit="MiB",
        spellings=("--memory-budget",),
        minimum=1,
    )


def run(request: Request) -> Iterator[Event]:
    """Compare.

    Raises:
        UsageError: A setting does not fit the models, or there is nothing to compare.
        InputError: A model or an input cannot be read, or the models do not fit each other.
        UnavailableError: ONNX Runtime or a provider is missing.
        ActivityError: A model cannot be run.
    """
    yield Progress(0, None, stage="Opening the models")
    with contextlib.ExitStack() as stack:
        reference, other = _sides(request, stack)
        yield from _compare(request, reference, other)


def _compare(request: Request, reference: Side, other: Side) -> Iterator[Event]:
    from dld_tui.backends.accuracy_runs import Comparison
    from dld_tui.core.accuracy.result import Result
    from dld_tui.core.accuracy.tolerance import parse_tolerances

    loose = _LOOSE if request.round != "none" or _have_halves(reference, other) else None
    tolerances = parse_tolerances(
        request.tolerance,
        loose if request.atol is None else request.atol,
        loose if request.rtol is None else request.rtol,
    )
    begin = time.perf_counter()
    with Comparison(reference, other, tolerances) as comparison:
        feeds, remarks = _feeds(request, comparison)
        yield Progress(0, None, stage="Running both")
        for state in comparison.run(
            feeds, tensors=request.tensors, budget=int(request.memory_budget * _MIB)
        ):
            yield Progress(state.done, state.total, "tensors", "Comparing")
        remarks += _remarks(request, reference, other, comparison)
        found = Result(tuple(state.rows), tuple(remarks))
        inputs = [spec.text for spec in comparison.inputs]
    yield Finished({
        "reference": _told(reference, request.model, "none"),
        "other": _told(other, request.against or request.model, request.round),
        "inputs": [*inputs],
        "sets": len(feeds),
        "tolerance": tolerances.every.text,
        "tensors": [row.to_json() for row in found.rows],
        "is_good": found.is_good,
        "first": found.first.name if found.first is not None else None,
        "unmatched": comparison.unmatched,
        "kept_bytes": state.kept_bytes,
        "seconds": time.perf_counter() - begin,
        "remarks": [*found.remarks],
    })  # fmt: skip


def _sides(request: Request, stack: contextlib.ExitStack) -> tuple[Side, Side]:
    from dld_tui.backends.accuracy_runs import Side
    from dld_tui.core.document.document import Document
    from dld_tui.core.tensorrt.retyping import lowered

    level, other_level = request.optimization, request.against_optimization
    if level == "usual":
        level = "disabled" if request.tensors else "all"
    mine = _settings(request.provider, level)
    theirs = _settings(
        request.against_provider or request.provider,
        level if other_level == "same" else other_level,
    )
    if request.against is None and request.round == "none" and mine == theirs:
        raise UsageError(
            "there is nothing to compare with",
            hint="Give --against MODEL_B, --against-provider NAME, --against-optimization LEVEL or"
            " --round fp16",
        )

    def opened(path: Path) -> Document:
        return stack.enter_context(contextlib.closing(Document.open(path)))

    first = opened(request.model)
    second = first if request.against is None else opened(request.against)
    folder = second.path.parent if second.path is not None else None
    if request.round != "none":
        copy = lowered(second, request.round, rounded=True).document
        second = stack.enter_context(contextlib.closing(copy))
    return Side(first, mine), Side(second, theirs, folder)


def _have_halves(*sides: Side) -> bool:
    from dld_tui.backends.accuracy_runs import has_halves

    return any(has_halves(side.document) for side in sides)


def _settings(provider: str, level: str) -> SessionSettings:
    from dld_tui.backends.onnxruntime import find_provider
    from dld_tui.backends.onnxruntime_options import SessionSettings

    return SessionSettings((find_provider(provider),), optimization_level=level, quiet=True)


def _feeds(
    request: Request, comparison: Comparison
) -> tuple[Sequence[Mapping[str, Any]], list[str]]:
    from dld_tui.core.inputs.feeds import input_feeds
    from dld_tui.core.inputs.shapes import guessed_inputs, parse_shapes

    specs = comparison.inputs
    seeds = range(request.seed, request.seed + request.sets)
    feeds = input_feeds(specs, request.inputs, request.shape, seeds)
    if request.inputs is not None:
        return feeds, []
    guessed = guessed_inputs(specs, parse_shapes(request.shape, [spec.name for spec in specs]))
    remarks = [
        f"free dimensions of input {spec.text} were taken as 1: --shape {spec.option} gives them"
        for spec in guessed
    ]
    return feeds, remarks


def _remarks(request: Request, reference: Side, other: Side, comparison: Comparison) -> list[str]:
    found = []
    on_cpu = [side for side in (reference, other) if side.settings.providers[0] == "CPU"]
    if request.round == "none" and _have_halves(*on_cpu):
        found.append(_CPU_HALVES)
    levels = {side.settings.optimization_level for side in (reference, other)}
    if request.tensors and levels != {"disabled"}:
        found.append("an optimized graph computes inner tensors only for this comparison, where it"
                     " would fuse their nodes otherwise")  # fmt: skip
    if comparison.unmatched:
        found.append(f"{comparison.unmatched:,} tensors of the reference are not in the other model"
                     " under the same name")  # fmt: skip
    renamed = [(a, b) for a, b in comparison.outputs.items() if a != b]
    found += [f"output {visible(a)} is compared with {visible(b)}, by place" for a, b in renamed]
    missing = set(comparison.reference_outputs) - set(comparison.outputs)
    found += [f"output {visible(name)} is not in the other model" for name in sorted(missing)]
    return found


def _told(side: Side, path: Path, rounded: str) -> dict[str, JSON]:
    return {
        "model": str(path),
        "provider": side.settings.providers[0],
        "optimization": side.settings.optimization_level,
        "round": rounded,
    }
