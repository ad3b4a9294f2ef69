"""What has to be said of a comparison, so that its figures are not misread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.text import clip, visible

if TYPE_CHECKING:
    from dld_tui.backends.accuracy_runs import Comparison
    from dld_tui.backends.accuracy_sides import Runner
    from dld_tui.core.document.document import Document
    from dld_tui.core.inputs.shapes import InputSpec

_MOST_NAMED = 3
_MARKED = (
    "inner tensors are outputs of the engines here, so TensorRT does not fuse across them: without"
    " --tensors it may take other kernels, with other errors"
)


def comparison_remarks(comparison: Comparison, *, tensors: bool) -> Iterator[str]:
    """Yield what to say of two runs, fit for a terminal.

    Args:
        comparison: One that has run.
        tensors: Whether inner tensors were compared.
    """
    one, two = comparison.one, comparison.two
    if tensors and comparison.document is not None:
        yield from _inner(comparison.document)
        if one.builds or two.builds:
            yield _MARKED
    yield from _outputs(comparison)
    yield from _inputs(comparison)
    yield from one.remarks
    yield from two.remarks
    for reason, names in grouped(comparison.not_compared).items():
        shown = ", ".join(clip(visible(name), 40, keep="middle") for name in names[:_MOST_NAMED])
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        yield f"not compared: {fmt.plural(len(names), 'tensor')}, {visible(reason)} ({shown}{more})"


def grouped(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names by reason."""
    found: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        found.setdefault(reason, []).append(name)
    return found


def _inner(document: Document) -> Iterator[str]:
    """Say how many tensors are where this does not look."""
    counts = {"subgraph": 0, "function": 0}
    for scope in document.scopes():
        if scope is not document.main:
            kind = "function" if _in_function(scope.path) else "subgraph"
            counts[kind] += sum(bool(name) for node in scope.nodes for name in node.outputs)
    places = {"subgraph": "bodies of If, Loop and Scan", "function": "local functions"}
    for kind, count in counts.items():
        if count:
            verb = "is" if count == 1 else "are"
            yield f"not compared: {fmt.plural(count, 'tensor')} that {verb} in {places[kind]}"


def _in_function(path: tuple[str, ...]) -> bool:
    return bool(path) and path[0].startswith("function ")


def _outputs(comparison: Comparison) -> Iterator[str]:
    both = comparison.one.is_engine and comparison.two.is_engine
    other = "the engine" if comparison.two.is_engine and not both else "the other"
    for mine, theirs in comparison.outputs.items():
        if mine != theirs:
            yield f"output {visible(mine)} is compared with {visible(theirs)}, by place"
    for name in sorted(set(comparison.reference_outputs) - set(comparison.outputs)):
        yield f"output {visible(name)} is not in {other}"
    for name in sorted(set(comparison.two.outputs) - set(comparison.outputs.values())):
        yield f"output {visible(name)} of {other} is not in the reference"
    if comparison.one.is_engine or comparison.two.is_engine:
        for name, (mine, theirs) in comparison.retyped.items():
            yield f"output {visible(name)} is {mine} in the reference and {theirs} in {other}"


def _inputs(comparison: Comparison) -> Iterator[str]:
    """Say what is fed to which input, where that is not obvious."""
    for runner in (comparison.one, comparison.two):
        types = dict(runner.types)
        for spec in comparison.inputs if runner is comparison.one else comparison.other_inputs:
            found = types.get(spec.name, spec.dtype)
            yield from _retyped(runner, spec, found)
    mine = {spec.name: spec.dtype for spec in comparison.inputs}
    for name, source in comparison.sources.items():
        if name != source:
            yield f"input {visible(name)} is fed with {visible(source)}, by place"
        theirs = next(one.dtype for one in comparison.other_inputs if one.name == name)
        if comparison.two.is_engine and theirs != mine[source]:
            yield (
                f"input {visible(name)} of the engine is {theirs}, not {mine[source]}: it is cast"
            )


def _retyped(runner: Runner, spec: InputSpec, found: str) -> Iterator[str]:
    if found != spec.dtype:
        yield f"input {visible(spec.name)} of the engine is {found}, not {spec.dtype}: it is cast"
