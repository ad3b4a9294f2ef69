"""Changing dimensions, verified by runs at two sizes.

At a size that both models accept, the result must compute the same outputs. At another size of a
dimension that is the first axis of its inputs, it must compute for each item what the original
computes for this item; for other dimensions, it must run.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dld_tui.backends.conversion.value_check import session_of
from dld_tui.backends.conversion.verification import (
    MANY_BYTES,
    VerificationSummary,
    same_arithmetic,
    verified,
    verify,
)
from dld_tui.core.accuracy.tensor_errors import (
    TensorError,
    Tolerances,
    compare,
    elements_of,
    parse_tolerances,
)
from dld_tui.core.conversion.accuracy_criteria import QUANTIZED, AccuracyCriteria
from dld_tui.core.conversion.changed_dimensions import change_dimensions
from dld_tui.core.conversion.dimensions import Dimension
from dld_tui.core.conversion.request import Verification
from dld_tui.core.conversion.result import (
    ComparedValues,
    NotCompared,
    OutputError,
    ResizedDimension,
    figures,
)
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, DldError
from dld_tui.core.events import Event, Progress
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.inputs.guess import (
    Guess,
    InputGuess,
    candidate_guesses,
    first_that_runs,
    input_specs,
    specs_for,
)
from dld_tui.core.model.inputs.shapes import InputSpec, parse_shapes
from dld_tui.core.notes import texts

_HINT = (
    "Inputs that share a size change together: --dim batch=N --dim state:1=N; --shape gives others"
)
_SETS = 4
"""Sets of inputs that differ; more items than these repeat them."""


@dataclass(frozen=True)
class ResizedCopy:
    """A copy of a model with other dimensions. Close it."""

    document: Document
    notes: list[str]
    dimensions: list[ResizedDimension]
    changed: list[str]
    """Nodes with constants that held an old size, one sentence each. Untrusted text."""
    verified: VerificationSummary


def resized(
    request: Verification, texts: Sequence[str], original: Document, output: Path
) -> Generator[Event, None, ResizedCopy]:
    """Return a copy with other dimensions. Close the copy.

    Raises:
        UsageError: The dimension does not exist.
        ActivityError: A node or a weight prevents it, or ONNX Runtime cannot use the result.
    """
    guess: Guess | None = None

    def shapes() -> Mapping[str, Sequence[int]]:
        nonlocal guess
        guess = _guess(request, original, output)
        return guess.shapes

    yield Progress(0, None, stage="Finding a size that the model accepts")
    change = change_dimensions(original, texts, shapes)
    assert guess is not None
    result = Document(
        change.model, blobs=original.blobs.reopened(), external=original.external.reopened()
    )
    try:
        verified_values, remarks = yield from _verified(
            request, original, result, change.asked, guess, output
        )
    except BaseException:
        result.close()
        raise
    dimensions = [
        ResizedDimension(
            key=dimension.key,
            axes=dict(dimension.axes),
            from_=dimension.size or dimension.name or None,
            to=dimension.to,
        )
        for dimension in change.asked
    ]
    return ResizedCopy(result, [*change.notes, *remarks], dimensions, change.nodes, verified_values)


def _guess(request: Verification, original: Document, title: Path) -> Guess:
    """Return inputs that the original takes; where it cannot be run, the likeliest."""
    specs: list[InputSpec] = input_specs(original)
    user_shapes = parse_shapes(request.shape, [spec.name for spec in specs])
    if request.verify and figures(original).weight_bytes <= MANY_BYTES:
        try:
            session = session_of(original, title)
            specs = specs_for(session.inputs, original)
            guesses = candidate_guesses(specs, original, user_shapes)
            return first_that_runs(
                guesses, 0, lambda feeds: session.run_unread(session.feed(dict(feeds)))
            )[0]
        except DldError:
            pass  # that it cannot be run is said later
    guess = next(iter(candidate_guesses(specs, original, user_shapes)), None)
    if guess is None:
        raise ActivityError("the sizes of the inputs cannot be inferred", hint="Give --shape")
    return guess


def _verified(
    request: Verification,
    original: Document,
    result: Document,
    asked: Sequence[Dimension],
    guess: Guess,
    output: Path,
) -> Generator[Event, None, tuple[VerificationSummary, list[str]]]:
    sized = [
        change
        for change in asked
        if isinstance(change.to, int) and change.size not in (None, change.to)
    ]
    if not sized:
        shared = request
        if any(isinstance(change.to, int) for change in asked) and not request.inputs:
            shared = replace(request, shape=_texts(_resized(guess, asked, result)))
        verified_values, notes = yield from verified(
            shared, original, result, output, _criteria(original), hint=_HINT
        )
        if isinstance(verified_values.values, NotCompared):
            return verified_values, notes
    elif not request.verify or request.values == "never":
        return VerificationSummary(NotCompared("it is switched off"), None), []
    else:
        shapes = _texts(_resized(guess, asked, result))
        notes = texts((yield from verify(original, result, output, shapes, _HINT)))
        verified_values = VerificationSummary(
            NotCompared("the original accepts only another size"), None
        )
        if figures(original).weight_bytes > MANY_BYTES:
            return verified_values, notes
    if any(not change.is_batch for change in sized):
        return verified_values, notes
    values = verified_values.values
    try:
        is_readable = session_of(original, output).is_readable
    except DldError:
        return verified_values, notes  # which notes say
    for change in asked:
        if change.size is None or change.to == change.size:
            continue
        yield Progress(0, None, stage="Running the result at another size")
        size = change.to if isinstance(change.to, int) else 2 * change.size
        others = [dimension for dimension in sized if dimension is not change]
        if change.is_batch and not others and is_readable:
            before, after = session_of(original, output), session_of(result, output)
            rows = _items(request, original, before, after, change, size, guess)
            values = _merged(values, rows)
            notes.append(f"items at {change.key} {size} were compared with runs of the original")
            if _criteria(original) is QUANTIZED:
                notes.append("DynamicQuantizeLinear takes one range for all items: they may differ")
        elif not others:
            feeds = Guess(
                _shaped(guess, {(name, axis): size for name, axis in change.axes.items()})
            )
            _run(session_of(result, output), feeds.values(0), change, size, is_read=False)
            notes.append(
                f"it runs with {change.key} {size}; values were compared with {change.size}"
            )
    together = [change for change in asked if change.size not in (None, change.to)]
    if len(together) > 1 and not sized:
        yield Progress(0, None, stage="Running the result with all dimensions at another size")
        session = session_of(result, output)
        rows = _together(request, original, session, together, guess) if is_readable else {}
        values = _merged(values, rows) if rows else values
        named = " and ".join(f"{change.key} {2 * (change.size or 1)}" for change in together)
        notes.append(f"it runs with {named} together")
    return verified_values._replace(values=values), notes


def _together(
    request: Verification,
    original: Document,
    session: Any,
    changes: Sequence[Dimension],
    guess: Guess,
) -> dict[str, OutputError]:
    """Run the result with all dimensions at another size; compare items with those alone."""
    axes = {
        (name, axis): 2 * (change.size or 1)
        for change in changes if not change.is_batch
        for name, axis in change.axes.items()
    }  # fmt: skip
    larger = Guess(_shaped(guess, axes))
    batch = next((change for change in changes if change.is_batch), None)
    if batch is None:
        _run(session, larger.values(0), changes[0], 2 * (changes[0].size or 1))
        return {}
    return _items(request, original, session, session, batch, 2 * (batch.size or 1), larger)


def _items(
    request: Verification,
    original: Document,
    before: Any,
    after: Any,
    dimension: Dimension,
    size: int,
    guess: Guess,
) -> dict[str, OutputError]:
    """Compare items that were computed together with those computed by another session."""
    own = dimension.size
    assert own is not None
    count = math.lcm(own, size)
    first = guess.values(0)
    seeds = [guess.values(seed) for seed in range(min(_SETS, count // own))]
    sets = [{name: seeded[name] if name in dimension.axes else first[name] for name in first}
            for seeded in seeds]  # fmt: skip
    runs = [before.run(before.feed(dict(seeded))) for seeded in sets]
    order = [index % len(sets) for index in range(count // own)]
    together = {
        name: np.concatenate([sets[index][name] for index in order], dimension.axes[name])
        if name in dimension.axes else first[name] for name in first
    }  # fmt: skip
    results: list[list[Any]] = []
    for begin in range(0, count, size):
        part = {
            name: np.take(value, range(begin, begin + size), dimension.axes[name])
            if name in dimension.axes else value for name, value in together.items()
        }  # fmt: skip
        results.append(_run(after, part, dimension, size))
    criteria = _criteria(original)
    tolerances = (
        parse_tolerances(request.tolerance) if request.tolerance
        else Tolerances(criteria.tolerance)
    )  # fmt: skip
    rows: dict[str, OutputError] = {}
    for name, (seeded, other) in _by_name(before, [runs[index] for index in order], results):
        if not seeded or not other:
            error = TensorError((), 0, mismatch="sequences of other lengths")
            problem = f"at {dimension.key} {size}: {error.mismatch}"
            rows[name] = OutputError.of(error, problem)
            continue
        axis = _grown(seeded[0].shape, other[0].shape)
        if axis is not None:
            seeded, other = [np.concatenate(seeded, axis)], [np.concatenate(other, axis)]
        other = [other[0]] * len(seeded) if len(other) < len(seeded) else other
        tolerance = tolerances.of(name)
        for mine, theirs in zip(seeded, other, strict=False):
            error = compare(mine, theirs, tolerance)
            problem = tolerance.problem(error) or ""
            if not request.tolerance:
                problem = criteria.problem(error, problem)
            text = f"at {dimension.key} {size}, items are not what each is alone: {problem}"
            if problem or name not in rows:
                rows[name] = OutputError.of(error, text if problem else "")
    return rows


def _by_name(
    session: Any, runs: Sequence[Sequence[Any]], results: Sequence[Sequence[Any]]
) -> Iterator[tuple[str, tuple[list[Any], list[Any]]]]:
    """Yield outputs by name of all runs of both models, what sequences hold one by one.

    Sequences that grow with the dimension are joined. Nothing is there of what some run lacks.
    """
    for at, output in enumerate(session.outputs):
        sides = [[values[at] for values in side] for side in (runs, results)]
        if all(isinstance(side[0], list) for side in sides) and _differ(sides):
            sides = [[[item for items in side for item in items]] for side in sides]
        flat = [[dict(elements_of(output, value)) for value in side] for side in sides]
        for name in {**flat[0][0], **flat[1][0]}:
            mine, theirs = ([one.get(name) for one in side] for side in flat)
            pair = [[] if any(one is None for one in side) else side for side in (mine, theirs)]
            yield name, (pair[0], pair[1])


def _differ(sides: Sequence[Sequence[Sized]]) -> bool:
    """Return whether sequences of both models have other lengths, and as many items in all."""
    (one, *_), (other, *_) = sides
    return len(one) != len(other) and sum(map(len, sides[0])) == sum(map(len, sides[1]))


def _grown(shape: Sequence[int], other: Sequence[int]) -> int | None:
    """Return the axis in which two shapes differ."""
    if len(shape) != len(other):
        return None
    return next(
        (axis for axis, (a, b) in enumerate(zip(shape, other, strict=True)) if a != b), None
    )


def _merged(values: ComparedValues | NotCompared, rows: dict[str, OutputError]) -> ComparedValues:
    """Return the figures of the outputs with those at another size where these are worse."""
    if isinstance(values, NotCompared):
        merged_values = ComparedValues(rows, False, sets=_SETS)
    else:
        worse = {name: row for name, row in rows.items() if row.problem}
        merged_values = replace(values, outputs={**values.outputs, **worse})
    is_good = not any(row.problem for row in merged_values.outputs.values())
    return replace(merged_values, is_good=is_good)


def _run(
    session: Any, feeds: Mapping[str, Any], dimension: Dimension, size: int, *, is_read: bool = True
) -> list[Any]:
    """Return what a session makes of inputs; nothing where it is not read: NumPy lacks types."""
    try:
        run = session.run if is_read else session.run_unread
        outputs: list[Any] = run(session.feed(dict(feeds))) or []
        return outputs
    except ActivityError as error:
        raise ActivityError(
            f"the result does not run with {dimension.key} {size}: {error.message}",
            where=error.where, hint=error.hint or _HINT, details=error.details,
        ) from error  # fmt: skip


def _criteria(original: Document) -> AccuracyCriteria:
    """Return the criteria: ranges computed at run time are those of all items together."""
    dynamic = any(
        node.op_type in ("DynamicQuantizeLinear", "DynamicQuantizeMatMul")
        for scope in original.scopes() for node in scope.nodes
    )  # fmt: skip
    return QUANTIZED if dynamic else same_arithmetic(original)


def _resized(
    guess: Guess, asked: Sequence[Dimension], result: Document
) -> dict[str, Sequence[int]]:
    """Return shapes of inputs for a result, in which axes of one name change together."""
    shapes = {name: list(shape) for name, shape in guess.shapes.items()}
    for dimension in asked:
        for name, axis in dimension.axes.items():
            if isinstance(dimension.to, int):
                shapes[name][axis] = dimension.to
    for name, shape in shapes.items():
        known = result.main.value_type(name)
        for axis, dim in enumerate((known.dims if known is not None else None) or ()):
            if isinstance(dim, int) and dim >= 0:
                shape[axis] = dim
    return dict(shapes)


def _shaped(guess: Guess, axes: Mapping[tuple[str, int], int]) -> tuple[InputGuess, ...]:
    """Return the inputs with other sizes of some axes."""
    return tuple(
        replace(
            item,
            shape=tuple(axes.get((item.name, axis), size) for axis, size in enumerate(item.shape)),
        )
        for item in guess.inputs
    )


def _texts(shapes: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    return tuple(f"{name}:[{','.join(map(str, shape))}]" for name, shape in shapes.items())
