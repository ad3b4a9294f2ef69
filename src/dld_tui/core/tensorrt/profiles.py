"""The optimization profiles of a build: from the command, the model, or the inferred batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.metadata import (
    KINDS,
    Profile,
    Range,
    declared_inputs,
    is_dynamic,
    problem_of,
    profiles_of,
)
from dld_tui.core.model.inputs.guess import Guess, guess_inputs, input_specs
from dld_tui.core.model.inputs.shape_texts import Shape
from dld_tui.core.model.shapes.evaluation import Evaluation
from dld_tui.core.model.shapes.following import declared_dims
from dld_tui.core.model.shapes.value import Value
from dld_tui.core.model.tensors.value_types import Dims
from dld_tui.core.tensorrt.trtexec_arguments import parse_profile_shapes
from dld_tui.core.text import shortened, visible

if TYPE_CHECKING:
    from dld_tui.core.model.document import Document
    from dld_tui.core.tensorrt.settings import BuildSettings

_INTEGERS = ("int32", "int64")
_NUMBERS = (1, 7)
"""Tried for the values of an input. 1 alone changes nothing where it is broadcast."""


def shape_inputs(document: Document) -> dict[str, int]:
    """Return the inputs of a model that hold a shape, and how many values each has.

    These are small inputs of integers whose values the sizes of other tensors depend on, as the
    rules of operators tell. Inputs whose number of values is open are left out, since these cannot
    be ranged.
    """
    main = document.main
    dims = {name: declared_dims(main, name) for name in main.inputs}
    counts = {}
    for name in main.inputs:
        known, size = main.value_type(name), dims[name]
        if main.is_weight(name) or known is None or known.dtype not in _INTEGERS or size is None:
            continue
        if len(size) <= 1 and all(isinstance(dim, int) for dim in size):
            counts[name] = next((dim for dim in size if isinstance(dim, int)), 1)
    if not counts:
        return {}
    inputs = {name: Value(size) for name, size in dims.items()}
    before = _known_shapes(document, inputs)

    def matters(name: str, number: int) -> bool:
        given = {one: Value(dims[one], (number,) * count) for one, count in counts.items()}
        if _known_shapes(document, {**inputs, name: given[name]}) != before:
            return True
        if len(counts) == 1:
            return False
        # As with the starts and ends of a Slice: one says nothing without the other.
        others = {**inputs, **given, name: inputs[name]}
        return _known_shapes(document, others) != _known_shapes(document, {**inputs, **given})

    return {
        name: count
        for name, count in counts.items()
        if any(matters(name, number) for number in _NUMBERS)
    }


def _known_shapes(document: Document, inputs: Mapping[str, Value]) -> list[Any]:
    evaluation = Evaluation(document, inputs, named=True)
    return [
        (number, name, None if value.dims is None else [*map(str, value.dims)])
        for number, frames in enumerate(evaluation.frames.values())
        for frame in frames
        for name, value in frame.values.items()
    ]


_FLAGS = {"min": "--min-shapes", "opt": "--opt-shapes", "max": "--max-shapes"}
_MOST_NAMED = 8
"""Inputs that an error lists, at most."""


@dataclass(frozen=True)
class Profiles:
    """The profiles of a build, and guesses about them."""

    ranges: list[Profile]
    """Empty when all inputs are fixed."""
    guess: Guess | None = None
    """None if the command or the model is complete."""

    @property
    def remarks(self) -> list[str]:
        """The guesses and how to change them, for display."""
        if self.guess is None:
            return []
        remarks = [
            f"Input {guess.text}: the engine accepts no other shape; --opt-shapes"
            f" {visible(guess.option)}, with --min-shapes and --max-shapes, sets it"
            for guess in self.guess.guessed[:_MOST_NAMED]
        ]
        more = len(self.guess.guessed) - _MOST_NAMED
        if more > 0:
            verb = "is" if more == 1 else "are"
            remarks.append(f"{fmt.plural(more, 'more input')} {verb} guessed in the same way")
        return remarks


def profiles_for(document: Document, settings: BuildSettings) -> Profiles:
    """Return the profiles to build an engine with.

    The shapes of the command come first, then the profiles stored in the model, then the inferred
    batch; other shapes are guessed, and are then the only ones that the engine accepts. A range of
    an input that holds a shape consists of values instead of dimensions;
    :func:`dld_tui.core.tensorrt.profiles.shape_inputs` finds these inputs.

    Raises:
        UsageError: A range does not match its input, or none can be guessed.
        InputError: The profiles of the model are damaged.
    """
    needed = _ModelInputs(document)
    user_profiles = _given(needed.names, settings)
    guess = None
    if user_profiles:
        profiles = [needed.completed(profile) for profile in user_profiles]
        if any(name not in profile for profile in profiles for name in needed.ranged):
            profiles, guess = _guessed(document, needed, profiles, settings.batch)
    elif stored := profiles_of(document):
        profiles = [dict(profile) for profile in stored]
    else:
        profiles = [needed.batched(settings.batch)] if needed.ranged else []
        if any(name not in profile for profile in profiles for name in needed.ranged):
            profiles, guess = _guessed(document, needed, profiles, settings.batch)
    for number, profile in enumerate(profiles):
        needed.check(profile, number, several=len(profiles) > 1)
    return Profiles(
        [needed.without_fixed(profile) for profile in profiles] if needed.ranged else [], guess
    )


def _guessed(
    document: Document,
    needed: _ModelInputs,
    profiles: list[dict[str, Range]],
    batch: int | None,
) -> tuple[list[dict[str, Range]], Guess]:
    """Return profiles with guesses where they lack an input, and the guess of the first."""
    first: Guess | None = None
    full_profiles = []
    for profile in profiles:
        user_shapes = {
            name: tuple(range_.opt)
            for name, range_ in profile.items()
            if name not in needed.values and len(range_.opt) == len(needed.dims.get(name, ()))
        }
        guess = guess_inputs(input_specs(document), document, user_shapes, batch=batch, empty=False)
        first = first or guess
        full = dict(profile)
        for guessed in guess.inputs:
            if guessed.name not in needed.ranged or guessed.name in full:
                continue
            shape = guessed.shape
            if guessed.name in needed.values:
                if guessed.fill.kind != "constant" or guessed.fill.low < 0:
                    continue
                shape = (int(guessed.fill.low),) * max(1, needed.values[guessed.name])
            full[guessed.name] = Range(shape, shape, shape)
        full_profiles.append(full)
    assert first is not None
    return full_profiles, first


def profiles_from(document: Document, feeds: Sequence[Mapping[str, Any]]) -> list[Profile]:
    """Return the profile that takes given inputs and no others; empty when all inputs are fixed.

    Its usual shapes are those of the first set.

    Args:
        feeds: Sets of arrays by input.

    Raises:
        UsageError: An input has another number of dimensions in another set, or does not fit.
    """
    needed = _ModelInputs(document)
    profile = {}
    for name in needed.ranged:
        arrays = [feed[name] for feed in feeds if name in feed]
        shapes = [
            tuple(map(int, array.reshape(-1) if name in needed.values else array.shape))
            for array in arrays
        ]
        if len({*map(len, shapes)}) > 1:
            raise UsageError(
                f"input {shortened(name)} has a different number of dimensions in each set"
            )
        if shapes:
            sizes = [*zip(*shapes, strict=True)]
            profile[name] = Range(tuple(map(min, sizes)), shapes[0], tuple(map(max, sizes)))
    needed.check(profile, 0, several=False)
    return [profile] if profile else []


class _ModelInputs:
    """The profile requirements of a model's inputs."""

    def __init__(self, document: Document) -> None:
        main = document.main
        self.dims: dict[str, Dims] = declared_inputs(document)
        self.values = shape_inputs(document)
        self.names = [name for name in main.inputs if not main.is_weight(name)]
        unknown = [name for name in self.names if name not in self.dims]
        dynamic = [name for name, dims in self.dims.items() if is_dynamic(dims)]
        ranged = {*unknown, *dynamic, *self.values}
        self.ranged = [name for name in self.names if name in ranged]
        """The inputs that need a range."""

    def completed(self, profile: Mapping[str, Range]) -> dict[str, Range]:
        """Return a profile with further inputs, whose dynamic dimensions follow from others."""
        sizes: dict[str, dict[str, int]] = {kind: {} for kind in KINDS}
        for name, given in profile.items():
            dims = self.dims.get(name, ())
            for kind in KINDS:
                shape = given.shape(kind)
                if name not in self.values and len(shape) == len(dims):
                    pairs = zip(dims, shape, strict=True)
                    sizes[kind] |= {dim: size for dim, size in pairs if isinstance(dim, str)}
        full = dict(profile)
        for name in self.ranged:
            declared = self.dims.get(name)
            if name not in full and declared is not None and name not in self.values:
                declared_shapes = [_shape_with(declared, sizes[kind]) for kind in KINDS]
                if all(shape is not None for shape in declared_shapes):
                    full[name] = Range(*(shape for shape in declared_shapes if shape is not None))
        return full

    def batched(self, batch: int | None) -> dict[str, Range]:
        """Return the profile of the inputs that leave only their first dimension open."""
        ranges = {}
        for name in self.ranged if batch is not None else ():
            dims = self.dims.get(name)
            if dims and name not in self.values and not is_dynamic(dims[1:]):
                shape = tuple(dim if isinstance(dim, int) else batch or 1 for dim in dims)
                ranges[name] = Range(shape, shape, shape)
        return ranges

    def check(self, profile: Mapping[str, Range], number: int, *, several: bool) -> None:
        """Refuse a profile that lacks an input or does not fit one."""
        where = f"profile {number}" if several else None
        for name, given in profile.items():
            problem = self._problem(name, given)
            if problem:
                raise UsageError(f"input {shortened(name)}: {problem}", where=where)
        missing = [name for name in self.ranged if name not in profile]
        if missing:
            raise _missing(missing, self.dims, self.values, where)

    def _problem(self, name: str, given: Range) -> str | None:
        if name not in self.names:
            return "the model has no such input"
        count = self.values.get(name)
        shapes = [given.shape(kind) for kind in KINDS]
        if count is not None and all(len(shape) == max(count, 1) for shape in shapes):
            return _values_problem(shapes)
        if any(size < 0 for shape in shapes for size in shape):
            return "a dimension is negative"
        if count is not None:
            return f"it holds {fmt.plural(count, 'value')}, which a profile must give"
        return problem_of(self.dims.get(name), given)

    def without_fixed(self, profile: Mapping[str, Range]) -> Profile:
        """Return a profile without inputs that need no range."""
        return {name: profile[name] for name in self.ranged if name in profile}


def _shape_with(dims: Dims, sizes: Mapping[str, int]) -> Shape | None:
    shape: list[int] = []
    for dim in dims:
        size = dim if isinstance(dim, int) else sizes.get(str(dim))
        if size is None:
            return None
        shape.append(size)
    return tuple(shape)


def _values_problem(shapes: list[Shape]) -> str | None:
    for at, (low, middle, high) in enumerate(zip(*shapes, strict=True)):
        if not low <= middle <= high:
            return f"value {at}: {low} ≤ {middle} ≤ {high} does not hold"
    return None


def _given(names: list[str], settings: BuildSettings) -> list[dict[str, Range]]:
    """Return the ranges of the command.

    Missing smallest and largest shapes are the optimal one; a missing optimal one is the
    largest. Shapes to measure with are used for all three if there is nothing else.
    """
    texts = {kind: getattr(settings, f"{kind}_shapes") for kind in KINDS}
    flags = _FLAGS
    if not any(texts.values()):
        texts = {"min": (), "opt": getattr(settings, "shape", ()), "max": ()}
        flags = {**_FLAGS, "opt": "--shape"}
    kinds = {kind: parse_profile_shapes(texts[kind], names, flags[kind]) for kind in KINDS}
    count = max(map(len, kinds.values()))
    return [_ranges({kind: _at(kinds[kind], number) for kind in KINDS}) for number in range(count)]


def _at(profiles: list[dict[str, Shape]], number: int) -> dict[str, Shape]:
    return profiles[number] if number < len(profiles) else {}


def _ranges(shapes: Mapping[str, Mapping[str, Shape]]) -> dict[str, Range]:
    low, usual, high = (shapes[kind] for kind in KINDS)
    ranges = {}
    for name in dict.fromkeys((*low, *usual, *high)):
        opt = usual.get(name, high.get(name, low.get(name, ())))
        ranges[name] = Range(low.get(name, opt), opt, high.get(name, opt))
    return ranges


def _missing(
    names: Iterable[str],
    dims: Mapping[str, Dims],
    values: Mapping[str, int],
    where: str | None,
) -> UsageError:
    texts, options = [], []
    for name in names:
        shape = dims.get(name)
        if name in values:
            texts.append(f"{shortened(name)} ({fmt.plural(values[name], 'value')} of a shape)")
            options.append(f"{shortened(name)}:{'x'.join('?' * max(values[name], 1))}")
        else:
            texts.append(f"{shortened(name)} {visible(fmt.shape(shape))}")
            sizes = (str(d) if isinstance(d, int) else f"<{d or '?'}>" for d in shape or ("?",))
            options.append(visible(f"{shortened(name)}:{'x'.join(sizes)}"))
    more = len(texts) - _MOST_NAMED
    if more > 0:
        texts = [*texts[:_MOST_NAMED], f"{more} more"]
        options = [*options[:_MOST_NAMED], "…"]
    plural = "an input has" if len(texts) == 1 else "inputs have"
    return UsageError(
        f"{plural} no range of shapes: {', '.join(texts)}",
        where=where,
        hint=f"Give --min-shapes, --opt-shapes and --max-shapes {','.join(options)}, or set"
        " profiles in the model",
    )
