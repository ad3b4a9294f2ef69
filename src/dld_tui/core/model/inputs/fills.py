"""Chooses plausible values of inputs, generated from a seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError
from dld_tui.core.model.inputs.roles import (
    AUDIO_WORDS,
    CACHE_WORDS,
    is_self_mask,
    is_state,
    words_of,
)
from dld_tui.core.model.inputs.shape_texts import Shape
from dld_tui.core.model.inputs.shapes import AnyArray, InputSpec, numpy_dtype
from dld_tui.core.process.child import free_memory
from dld_tui.core.text import clip, visible
from dld_tui.core.types import FLOATS

if TYPE_CHECKING:
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.inputs.propagation import Propagation

_COPIES_OF_SHAPES = {("Reshape", 1), ("Expand", 1), ("Tile", 1), ("ConstantOfShape", 0)}
_COUNTS = {("TopK", 1): 1, ("OneHot", 1): 10, ("NonMaxSuppression", 2): 100,
           ("Pad", 1): 0, ("Range", 0): 0, ("Range", 1): 16, ("Range", 2): 1,
           ("Slice", 1): 0, ("Slice", 2): 1, ("CumSum", 1): 0, ("Unsqueeze", 1): 0,
           ("Squeeze", 1): 0, ("Loop", 0): 4}  # fmt: skip
"""Arguments of operators, and a value that suits them."""
_STATES = {("LSTM", 5), ("LSTM", 6), ("GRU", 5), ("RNN", 5), ("DynamicQuantizeLSTM", 5),
           ("DynamicQuantizeLSTM", 6)}  # fmt: skip
_ADDED_MASKS = {
    ("Add", 0), ("Add", 1), ("Attention", 3), ("MultiHeadAttention", 5),
    ("GroupQueryAttention", 10),
}  # fmt: skip
"""Operators that add a mask of floating point numbers to the scores."""
_HIDES = -10_000.0
"""What a mask adds to hide a position: float16 can hold it, with a score added."""
_MANY_STEPS = 100.0
"""A factor that makes a part of all steps, as Flux takes, a step."""
_LENGTH_WORDS = frozenset({"length", "lengths", "len", "lens", "seqlen", "seqlens"})


@dataclass(frozen=True)
class Fill:
    """How an input is filled."""

    kind: str
    """``uniform``, ``constant``, ``counting``, ``mask``, ``listed``, ``words`` or ``none``."""
    reason: str
    """Why these values. Untrusted text."""
    low: float = 0.0
    """The least value, the constant, where counting begins, or how many positions the last row of
    a mask shows."""
    high: float = 1.0
    """The greatest integer; floating point numbers stay below it."""
    numbers: tuple[float, ...] = ()
    """What is listed, from the first element on; of a mask what hides and what shows."""

    @property
    def text(self) -> str:
        """The values for people."""
        if self.kind == "constant":
            return {0.0: "zeros", 1.0: "ones"}.get(self.low, f"{self.low:g}")
        if self.kind == "counting":
            return f"counting from {self.low:g}"
        if self.kind == "mask":
            hides, shows = self.numbers
            return f"{shows:g} for the first {fmt.count(int(self.low))} positions, then {hides:g}"
        if self.kind == "uniform":
            return f"random from {self.low:g} to {fmt.count(int(self.high))}"
        if self.kind == "listed":
            return ", ".join(f"{number:g}" for number in self.numbers[:8])
        return self.kind


@dataclass(frozen=True)
class Surroundings:
    """What is known about other inputs that the values of one depend on."""

    shapes: Mapping[str, Shape] = field(default_factory=dict)
    roles: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The roles of free dimensions; empty for those that the model fixes."""
    past: int = 0
    """Tokens in the cache."""
    constants: Mapping[str, float] = field(default_factory=dict)
    """Values of scalars that are known."""
    caches: Mapping[str, str] = field(default_factory=dict)
    """The outputs that return a cache, by its input."""
    states: Mapping[str, str] = field(default_factory=dict)
    """The same of states of a fixed size."""
    present: int = 1
    """New tokens of each sequence."""


def fill_for(spec: InputSpec, around: Surroundings, propagation: Propagation | None = None) -> Fill:
    """Return the values of an input.

    Args:
        spec: The input.
        around: The other inputs.
        propagation: What the graph does with it, where there is a graph.
    """
    words = set(words_of(spec.name))
    if spec.dtype == "string":
        return Fill("words", "strings")
    constant = around.constants.get(spec.name)
    if constant is not None:
        return Fill("constant", _constant_reason(spec, propagation), constant)
    uses = [] if propagation is None else propagation.uses.get(spec.name, [])
    if spec.dtype in FLOATS:
        factors = [] if propagation is None else propagation.factors.get(spec.name, [])
        return _floats(spec, words, around, uses, factors)
    if spec.dtype == "bool":
        return _switches(spec, words, around)
    return _integers(spec, words, around, propagation, uses)


def _constant_reason(spec: InputSpec, propagation: Propagation | None) -> str:
    if propagation is not None and propagation.compared.get(spec.name):
        return "the graph compares it with constants"
    return f"the name {spec.name}"


def _floats(
    spec: InputSpec,
    words: set[str],
    around: Surroundings,
    uses: Sequence[tuple[str, int, Node]],
    factors: Sequence[float],
) -> Fill:
    name = f"the name {spec.name}"
    consumers = {(op, at) for op, at, _ in uses}
    shape = around.shapes.get(spec.name, ())
    if "mask" in words and (len(shape) < 4 or words & {"attention", "attn"}):
        if consumers & _ADDED_MASKS:
            reason = f"a mask that is added by {name}"
            filled = _filled(words, around, shape, (_HIDES, 0.0), reason)
            return filled or Fill("constant", reason, 0.0)
        return _mask(spec, words, around)
    if spec.name in around.states:
        return Fill("constant", f"a state by its pair, the output {around.states[spec.name]}")
    if consumers & _STATES or (is_state(spec) and not words & CACHE_WORDS):
        return Fill("constant", "the state of a recurrent network" if consumers & _STATES else name)
    if consumers & {("NonMaxSuppression", 3), ("NonMaxSuppression", 4)}:
        return Fill("constant", "a threshold", 0.5)
    if words & {"scale", "factor", "speed", "tempo", "temperature"} and len(shape) <= 2:
        return Fill("constant", name, 1.0)
    size = _image_size(words, around)
    if size and len(shape) <= 2 and shape and shape[-1] in (2, 3):
        return Fill("listed", f"{name} and the image", numbers=size)
    if words & {"timestep", "timesteps"}:
        if any(factor >= _MANY_STEPS for factor in factors):
            return Fill("uniform", f"a part of all steps by {name}, which the graph multiplies")
        return Fill("uniform", name, 0.0, 999.0)
    if words & CACHE_WORDS:
        return Fill("uniform", f"a cache by {name}")
    if spec.name in around.caches:
        return Fill("uniform", f"a cache by its pair, the output {around.caches[spec.name]}")
    roles = around.roles.get(spec.name, ())
    if words & (AUDIO_WORDS - {"samples"}) or any(role.startswith("samples") for role in roles):
        return Fill("uniform", f"audio by {name}" if words & AUDIO_WORDS else "audio", -1.0, 1.0)
    if len(shape) == 4:
        return Fill("uniform", "an image by its shape", 0.0, 1.0)
    return Fill("uniform", "floating point numbers")


def _image_size(words: set[str], around: Surroundings) -> tuple[float, ...]:
    if not (
        words & {"shape", "size", "sizes"} and words & {"im", "image", "img", "orig", "target"}
    ):
        return ()
    image = next((s for s in around.shapes.values() if len(s) == 4), None)
    return () if image is None else (float(image[2]), float(image[3]))


def _mask(spec: InputSpec, words: set[str], around: Surroundings) -> Fill:
    shape = around.shapes.get(spec.name, ())
    if words & {"padding", "pad", "ignore", "masked"} and spec.dtype == "bool":
        reason = f"a mask of excluded positions by the name {spec.name}"
        return _filled(words, around, shape, (1.0, 0.0), reason) or Fill("constant", reason, 0.0)
    reason = f"a mask by the name {spec.name}"
    return _filled(words, around, shape, (0.0, 1.0), reason) or Fill("constant", reason, 1.0)


def _filled(
    words: set[str],
    around: Surroundings,
    shape: Shape,
    numbers: tuple[float, float],
    reason: str,
) -> Fill | None:
    """Return a mask that shows what is in a cache and no later token; None where it shows all."""
    total = around.past + around.present
    if not around.caches or not is_self_mask(words) or len(shape) < 2 or shape[-1] < total:
        return None
    rows = shape[-2] if len(shape) > 2 else 1
    if rows not in (1, around.present) or (shape[-1] == total and rows == 1):
        return None
    return Fill("mask", f"{reason}, and what is in the cache", float(total), numbers=numbers)


def _switches(spec: InputSpec, words: set[str], around: Surroundings) -> Fill:
    if "mask" in words or "masked" in words:
        return _mask(spec, words, around)
    if {"use", "cache"} <= words:
        return Fill("constant", f"the name {spec.name} and the past", float(around.past > 0))
    return Fill("uniform", "switches")


def _integers(
    spec: InputSpec,
    words: set[str],
    around: Surroundings,
    propagation: Propagation | None,
    uses: Sequence[tuple[str, int, Node]],
) -> Fill:
    name = f"the name {spec.name}"
    if "mask" in words:
        return _mask(spec, words, around)
    bounds = [] if propagation is None else [
        (rows, node) for size, node in propagation.demands.bounds.get(spec.name, ())
        if (rows := _first(size)) is not None and rows > 0
    ]  # fmt: skip
    rows, table = min(bounds, key=lambda pair: pair[0]) if bounds else (0, None)
    length = around.shapes.get(spec.name, ())
    if words & {"position", "positions", "pos"}:
        begin = around.past
        if rows and length and begin + length[-1] > rows:
            begin = 0
        if len(length) == 1 and "batch" in around.roles.get(spec.name, ()):  # one a sequence
            return Fill("constant", f"a position by {name}", float(begin))
        return Fill("counting", f"positions by {name}", float(begin))
    if words & {"segment", "segments"} or {"token", "type"} <= words:
        return Fill("constant", f"one sentence by {name}", 0.0)
    if table is not None:
        label = clip(visible(table.name or next(iter(table.outputs), "")), 40, keep="middle")
        reason = f"{visible(table.op_type)} {label} has {fmt.count(rows)} rows"
        return Fill("uniform", reason, 0.0, float(rows - 1))
    if words & _LENGTH_WORDS and len(length) <= 1 and words & {"past", "total", "nonpad"}:
        seen = around.past if "past" in words else around.past + around.present
        return Fill("constant", f"a length by {name}", float(seen))
    argument = _argument(spec, around, uses)
    if argument is not None:
        return argument
    if {"grid", "thw"} <= words and length and length[-1] == 3:
        return Fill("listed", f"{name} and the patches", numbers=_grid(length, around))
    if "indirection" in words:
        return Fill("constant", f"each beam goes on by {name}", 0.0)
    if {"beam", "width"} <= words or {"num", "beams"} <= words:
        return Fill("constant", name, float(_of_role("beams", around) or 1))
    if words & _LENGTH_WORDS and len(length) <= 1:
        return Fill("constant", f"a length by {name}", float(_length_for(spec, around)))
    if words & {"timestep", "timesteps"}:
        return Fill("uniform", name, 0.0, 999.0)
    size = _image_size(words, around)
    if size and length and length[-1] in (2, 3):
        return Fill("listed", f"{name} and the image", numbers=size)
    if spec.dtype in ("int8", "uint8"):
        is_image = spec.dtype == "uint8" and len(length) == 4
        return Fill("uniform", "bytes", 0.0, 255.0 if is_image else 127.0)
    return Fill("uniform", "integers of unknown meaning", 0.0, 1.0)


def _first(size: Any) -> int | None:
    """Return the size of the only candidate."""
    if size is None:
        return None
    return int(size.reshape(-1)[0]) if hasattr(size, "reshape") else int(size)


def _argument(
    spec: InputSpec, around: Surroundings, uses: Sequence[tuple[str, int, Node]]
) -> Fill | None:
    """Return the values of an input that is an argument of an operator."""
    shape = around.shapes.get(spec.name, ())
    count = shape[0] if len(shape) == 1 else 1
    for op, at, node in uses:
        reason = f"an argument of {op} {visible(node.name)}".rstrip()
        if (op, at) == ("Reshape", 1):
            return Fill("listed", reason, numbers=(-1.0, *(1.0 for _ in range(count - 1))))
        if (op, at) in _COPIES_OF_SHAPES:
            return Fill("constant", reason, 1.0)
        if (op, at) in _COUNTS:
            return Fill("constant", reason, float(_COUNTS[op, at]))
        if (op, at) in (("Div", 1), ("Mod", 1)):
            return Fill("uniform", reason, 1.0, 10.0)
        if op == "GroupQueryAttention" and at in (5, 6):
            total = around.past + around.present
            return Fill("constant", reason, float(total - 1 if at == 5 else total))
        if op in ("LSTM", "GRU", "RNN") and at == 4:
            return Fill("constant", reason, float(_length_for(spec, around)))
        if (op, at) == ("Resize", 3):
            image = next((s for s in around.shapes.values() if len(s) == count), None)
            if image is not None:
                return Fill("listed", reason, numbers=tuple(map(float, image)))
    return None


def _of_role(wanted: str, around: Surroundings) -> int | None:
    """Return the size of the first dimension that has a role."""
    for name, roles in around.roles.items():
        for role, size in zip(roles, around.shapes.get(name, ()), strict=False):
            if role == wanted:
                return size
    return None


def _grid(shape: Shape, around: Surroundings) -> tuple[float, ...]:
    """Return frames, rows and columns of each image whose patches are given together."""
    images = math.prod(shape[:-1]) or 1
    per_image = max(1, (_of_role("patches", around) or 4 * images) // images)
    rows = max(n for n in range(1, math.isqrt(per_image) + 1) if per_image % n == 0)
    return (1.0, float(rows), float(per_image // rows)) * images


def _length_for(spec: InputSpec, around: Surroundings) -> int:
    """Return the length that an input describes: that of a similarly named input, or the first."""
    words = set(words_of(spec.name)) - _LENGTH_WORDS
    names = [name for name, shape in around.shapes.items() if len(shape) > 1 and name != spec.name]
    names.sort(key=lambda name: -len(words & set(words_of(name))))
    for name in names:
        pairs = zip(around.roles.get(name, ()), around.shapes[name], strict=False)
        known = [(role, size) for role, size in pairs if role]
        free = [size for role, size in known if role != "batch"]
        return free[0] if free else max([size for _, size in known] or around.shapes[name][1:])
    return 1


_WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog")
_MOST_ELEMENTS = 1 << 40
"""Of an input: more than any memory holds."""


def random_inputs(
    specs: Sequence[InputSpec],
    shapes: Mapping[str, Shape],
    seed: int,
    fills: Mapping[str, Fill] | None = None,
) -> dict[str, AnyArray]:
    """Return an array for every input.

    Without a fill, floating point numbers are uniform in [0, 1). Integers are 0 or 1, which suit as
    indices, segments and masks; those of 8 bits, mostly images and quantised data, are 0 to 127.
    Strings are words.

    Args:
        specs: The inputs.
        shapes: Of each.
        seed: Of random values.
        fills: What to fill inputs with, by name.

    Raises:
        ActivityError: An input is not a tensor, of a type that cannot be made, or they take more
            than half of the free memory.
    """
    generator = np.random.default_rng(seed)
    arrays = {}
    free, taken = free_memory(), 0
    for spec in specs:
        if spec.container:
            raise ActivityError(
                f"input {spec.text} is not a tensor: no random data can be generated for it",
                hint="Give data with --inputs DIR",
            )
        high = 127.0 if spec.dtype in ("int8", "uint8") else 1.0
        fill = (fills or {}).get(spec.name) or Fill("uniform", "", 0.0, high)
        shape = shapes[spec.name]
        # NumPy takes no huge dimension, even beside one of 0.
        if math.prod(filter(None, shape)) > _MOST_ELEMENTS:
            raise ActivityError(f"input {spec.text} has too many elements to generate")
        taken += math.prod(shape) * numpy_dtype(spec.dtype).itemsize
        if free is not None and taken > free // 2:
            raise ActivityError(
                f"the inputs up to {spec.text} take {fmt.size(taken)}, and {fmt.size(free)} of"
                " memory are free",
                hint="Give smaller shapes with --shape",
            )
        arrays[spec.name] = _array(spec.dtype, shape, generator, fill)
    return arrays


def _array(dtype: str, shape: Shape, generator: np.random.Generator, fill: Fill) -> AnyArray:
    kind = numpy_dtype(dtype)
    if dtype == "string":
        return generator.choice(np.array(_WORDS, dtype=object), size=shape)
    if fill.kind == "constant":
        return np.full(shape, fill.low).astype(kind)
    if fill.kind == "listed":
        count = math.prod(shape)
        padded = (*fill.numbers, *(1.0,) * count)
        return np.array(padded[:count]).reshape(shape).astype(kind)
    if fill.kind == "counting":
        numbers = np.arange(shape[-1] if shape else 1) + int(fill.low)
        return np.array(np.broadcast_to(numbers if shape else numbers[0], shape)).astype(kind)
    if fill.kind == "mask":
        hides, shows = fill.numbers
        rows = shape[-2] if len(shape) > 2 else 1
        last = int(fill.low) - np.arange(rows - 1, -1, -1)
        seen = np.arange(shape[-1]) < last[:, None]
        values = np.where(seen if len(shape) > 2 else seen[0], shows, hides)
        return np.array(np.broadcast_to(values, shape)).astype(kind)
    if dtype == "bool" or kind.kind in "iu":
        low, high = (0, 1) if dtype == "bool" else (int(fill.low), int(fill.high))
        wide = np.uint64 if kind == np.uint64 else np.int64
        return generator.integers(low, high, size=shape, dtype=wide, endpoint=True).astype(kind)
    if kind.kind == "c":
        parts = generator.random((2, *shape))
        return np.asarray(parts[0] + 1j * parts[1]).astype(kind)
    # In place of a float64 array of twice the size, where that is possible.
    single = generator.random(shape, dtype=np.float32 if kind.itemsize <= 4 else np.float64)
    if (fill.low, fill.high) != (0.0, 1.0):
        single = single * (fill.high - fill.low) + fill.low
    return np.asarray(single).astype(kind, copy=False)
