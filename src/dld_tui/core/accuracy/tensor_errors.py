"""Errors of a tensor against a reference, and tolerances for all outputs or for single ones.

The figures are kept when the values are not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.params import param
from dld_tui.core.text import visible

if TYPE_CHECKING:
    import numpy as np


Array: TypeAlias = "np.ndarray[Any, Any]"
_PART = 1 << 13
"""Elements that are looked at together: they stay in the cache, and OpenBLAS starts no threads for
so few, which would take twenty times as long."""


@dataclass(frozen=True, slots=True)
class TensorError:
    """The difference of two tensors. None is unknown, which is not 0."""

    shape: tuple[int, ...]
    """Of the reference."""
    count: int
    """Elements compared."""
    max_abs: float | None = None
    """Largest absolute difference, of elements that are finite in both."""
    mean_abs: float | None = None
    max_rel: float | None = None
    """Largest difference divided by the reference, where that is not 0."""
    mean_rel: float | None = None
    cosine: float | None = None
    """Cosine of the angle between the two as vectors; None where one of them is 0."""
    snr_db: float | None = None
    """Signal to noise ratio, ``10 log10(Σ reference² / Σ difference²)``; None without noise."""
    largest: float | None = None
    """Largest absolute value of the reference."""
    nan_reference: int = 0
    nan_other: int = 0
    inf_reference: int = 0
    inf_other: int = 0
    special: int = 0
    """Elements that are NaN or infinite in one of the two and not the same in the other."""
    outside: int | None = None
    """Elements outside the tolerance; None without one."""
    mismatch: str = ""
    """Why they cannot be compared: other shapes or kinds of elements."""
    lost: str = ""
    """Channels that carry no information any more (:func:`lost_channels`), if requested."""

    @property
    def is_equal(self) -> bool:
        """Whether every element is the same."""
        return not self.mismatch and not self.special and not self.max_abs

    @property
    def noise(self) -> float:
        """The difference relative to the reference; infinite for NaN and infinite values."""
        if self.mismatch or self.special:
            return math.inf
        if self.is_equal:
            return 0.0
        return 10 ** (-self.snr_db / 20) if self.snr_db is not None else 1.0


def elements_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors in a sequence or a map, named by their places; nothing for None."""
    import numpy as np  # lazy: tables of errors need none

    if isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from elements_of(f"{name}[{key}]", item)
    elif value is not None:
        yield name, np.asarray(value)


def compare_element(
    reference: Array | None, other: Array | None, tolerance: Tolerance
) -> TensorError:
    """Return the difference of an element of an output, None where one of the two has none."""
    if reference is None or other is None:
        return TensorError((), 0, mismatch="it is an element of one only")
    return compare(reference, other, tolerance)


def compare(reference: Array, other: Array, tolerance: Tolerance | None = None) -> TensorError:
    """Return the difference of a tensor from a reference.

    Args:
        reference: Numbers or bools of any type, including ml_dtypes, or bytes and strings.
        other: The same shape; its element type may differ.
        tolerance: Count the elements outside of it.
    """
    if reference.shape != other.shape:
        text = f"the shape is {list(other.shape)}, not {list(reference.shape)}"
        return TensorError(reference.shape, 0, mismatch=text)
    texts = [array.dtype.kind in "OSU" for array in (reference, other)]
    if any(texts):
        if not all(texts):
            return TensorError(reference.shape, 0, mismatch="one holds strings, the other numbers")
        return _compared_texts(reference, other)
    sums = _Sums()
    left, right = reference.reshape(-1), other.reshape(-1)
    for start in range(0, left.size, _PART):
        sums.add(left[start : start + _PART], right[start : start + _PART], tolerance)
    return sums.result(reference.shape, left.size, tolerance is not None)


def _compared_texts(reference: Array, other: Array) -> TensorError:
    import numpy as np

    different = int(np.count_nonzero(reference != other))
    return TensorError(
        reference.shape, reference.size, special=different,
        mismatch=f"{different:,} of {reference.size:,} strings differ" if different else "",
    )  # fmt: skip


class _Sums:
    """Sums that are accumulated part by part."""

    def __init__(self) -> None:
        self.absolute = self.relative = self.cross = 0.0
        self.signal = self.power = self.noise = 0.0
        self.max_abs = self.max_rel = self.largest = -1.0
        self.finite = self.divided = 0
        self.counts = Counter[str]()

    def add(self, reference: Array, other: Array, tolerance: Tolerance | None) -> None:
        """Take in a part."""
        import numpy as np

        with np.errstate(over="ignore", invalid="ignore"):  # sums that overflow are left out
            self._add(reference.astype(np.float64), other.astype(np.float64), tolerance)

    def _add(self, reference: Array, other: Array, tolerance: Tolerance | None) -> None:
        import numpy as np

        if np.isfinite(reference).all() and np.isfinite(other).all():
            if reference.size:
                self._add_finite(reference, other, tolerance)
            return
        counts = self.counts
        nans = np.isnan(reference), np.isnan(other)
        infinite = np.isinf(reference), np.isinf(other)
        for name, mask in zip(("nan_reference", "nan_other"), nans, strict=True):
            counts[name] += int(np.count_nonzero(mask))
        for name, mask in zip(("inf_reference", "inf_other"), infinite, strict=True):
            counts[name] += int(np.count_nonzero(mask))
        odd = nans[0] | nans[1] | infinite[0] | infinite[1]
        same = (nans[0] & nans[1]) | (reference == other)
        special = int(np.count_nonzero(odd & ~same))
        counts["special"] += special
        if tolerance is not None:
            counts["outside"] += special
        reference, other = reference[~odd], other[~odd]
        if reference.size:
            self._add_finite(reference, other, tolerance)

    def _add_finite(self, reference: Array, other: Array, tolerance: Tolerance | None) -> None:
        import numpy as np

        size = np.abs(reference)
        difference = np.abs(reference - other)
        self.finite += reference.size
        self.largest = max(self.largest, float(size.max()))
        self.max_abs = max(self.max_abs, float(difference.max()))
        self.absolute += float(difference.sum())
        self.noise += float(np.dot(difference, difference))
        self.signal += float(np.dot(reference, reference))
        self.power += float(np.dot(other, other))
        self.cross += float(np.dot(reference, other))
        if tolerance is not None:
            allowed = tolerance.absolute + tolerance.relative * size
            self.counts["outside"] += int(np.count_nonzero(difference > allowed))
        divisible = size > 0
        if divisible.all():
            ratios = difference / size
        else:
            ratios = difference[divisible] / size[divisible]
        if ratios.size:
            self.max_rel = max(self.max_rel, float(ratios.max()))
            self.relative += float(ratios.sum())
            self.divided += ratios.size

    def result(self, shape: tuple[int, ...], count: int, bounded: bool) -> TensorError:
        """Return the figures."""
        finite, divided = self.finite, self.divided
        norm = math.sqrt(self.signal) * math.sqrt(self.power)
        cosine = max(-1.0, min(1.0, self.cross / norm)) if norm else None
        snr = 10 * math.log10(self.signal / self.noise) if self.signal and self.noise else None
        counts = self.counts
        return TensorError(
            shape,
            count,
            max_abs=_known(self.max_abs) if finite else None,
            mean_abs=_known(self.absolute / finite) if finite else None,
            max_rel=_known(self.max_rel) if divided else None,
            mean_rel=_known(self.relative / divided) if divided else None,
            cosine=_known(cosine),
            snr_db=_known(snr),
            largest=self.largest if finite else None,
            nan_reference=counts["nan_reference"],
            nan_other=counts["nan_other"],
            inf_reference=counts["inf_reference"],
            inf_other=counts["inf_other"],
            special=counts["special"],
            outside=counts["outside"] if bounded else None,
        )


def _known(value: float | None) -> float | None:
    """Return a figure that is a number; sums of huge numbers may not be."""
    return value if value is not None and math.isfinite(value) else None


_FEWEST, _MOST = 2, 4096
"""How many channels an axis may have to be looked at."""
_ELEMENTS = 8
"""Values that a channel needs, so that being constant says something."""
_SIGNAL = 1e-3
"""A channel that varies by less, absolutely, is taken for constant: scores are of this size."""
_RELATIVE = 0.02
"""And so is one that varies by less relative to its largest value: bfloat16 rounds it away."""


def lost_channels(reference: Array, other: Array) -> str:
    """Return which channels vary in the reference and are constant in the other; empty for none.

    Channels are looked for along axis 1 (NCHW, boxes x anchors) and along the last one (NHWC,
    anchors x boxes) of tensors with three axes or more.

    Args:
        reference: Real numbers.
        other: The same shape.
    """
    if reference.ndim < 3 or reference.shape != other.shape or not reference.size:
        return ""
    if reference.dtype.kind in "bOSU" or other.dtype.kind in "bOSU":
        return ""
    texts = [
        text for axis in (1, reference.ndim - 1) if (text := _lost_along(axis, reference, other))
    ]
    return texts[0] if texts else ""


def _lost_along(axis: int, reference: Array, other: Array) -> str:
    import numpy as np

    count = reference.shape[axis]
    if not _FEWEST <= count <= _MOST or reference.size // count < _ELEMENTS:
        return ""
    others = tuple(index for index in range(reference.ndim) if index != axis)
    with np.errstate(all="ignore"):
        wide = reference.astype(np.float32), other.astype(np.float32)
        varies, left = (side.max(others) - side.min(others) for side in wide)
        peaks = np.abs(wide[0]).max(others)
        has_signal = (varies > _SIGNAL) & (varies > _RELATIVE * peaks)
        lost = np.flatnonzero(has_signal & (left == 0))
        if not lost.size or lost.size == np.count_nonzero(has_signal) == count:
            return ""  # all of them: the figures of the whole tensor say it
        peak = float(peaks[lost].max())
    # The last axis may as well be the width of pictures.
    unit, place = ("channel", f"of axis {axis}") if axis == 1 else ("slice", f"along axis {axis}")
    named = f"{unit} {lost[0]}" if lost.size == 1 else f"{unit}s {_ranges(lost.tolist())}"
    return (
        f"{lost.size:,} of {count:,} {unit}s {place} are constant ({named}), where the"
        f" reference reaches {peak:.3g}"
    )


def _ranges(numbers: list[int]) -> str:
    """Return for example ``0, 4 to 83``; the first three ranges."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [str(a) if a == b else f"{a} to {b}" for a, b in ranges[:3]]
    return ", ".join(texts) + (", …" if len(ranges) > 3 else "")


_NAMES = {
    "atol": "absolute", "abs": "absolute", "rtol": "relative", "rel": "relative",
    "cosine": "cosine", "cos": "cosine", "snr": "snr_db",
}  # fmt: skip


@dataclass(frozen=True)
class Tolerance:
    """A tolerance; an element may differ by ``absolute + relative * |reference|``.

    The same rule as :func:`numpy.allclose`.
    """

    absolute: float = 1e-5
    relative: float = 1e-5
    cosine: float | None = None
    """The least cosine; None allows any. With this or `snr_db` the elements are not looked at."""
    snr_db: float | None = None
    """The least signal to noise ratio in dB; None allows any."""

    @property
    def text(self) -> str:
        """Return for example ``atol 1e-05, rtol 1e-05``."""
        if self.cosine is None and self.snr_db is None:
            return f"atol {self.absolute:g}, rtol {self.relative:g}"
        parts = [] if self.cosine is None else [f"cosine {self.cosine:g}"]
        return ", ".join(parts + ([] if self.snr_db is None else [f"SNR {self.snr_db:g} dB"]))

    def problem(self, error: TensorError) -> str | None:
        """Return what of an error is not allowed, None when all is.

        The error must come from a comparison with this very tolerance.
        """
        if error.mismatch:
            return error.mismatch
        if error.special:
            return f"NaN or infinite in one of the two: {fmt.plural(error.special, 'element')}"
        if error.lost:
            return error.lost
        if self.cosine is not None or self.snr_db is not None:
            return self._figure_problem(error)
        if error.outside:
            return f"{error.outside:,} of {error.count:,} elements are outside of {self.text}"
        return None

    def _figure_problem(self, error: TensorError) -> str | None:
        if error.is_equal:
            return None
        if self.cosine is not None and (error.cosine is None or error.cosine < self.cosine):
            # All significant digits: a value just too small may differ from 1 by only 1e-7.
            if error.cosine is None:
                return f"the cosine is unknown, {self.cosine:.10g} is required"
            return f"the cosine is {error.cosine:.10g}, less than {self.cosine:.10g}"
        if self.snr_db is not None and (error.snr_db is None or error.snr_db < self.snr_db):
            ratio = "the signal to noise ratio is"
            if error.snr_db is None:
                return f"{ratio} unknown, {self.snr_db:g} dB is required"
            return f"{ratio} {error.snr_db:.1f} dB, less than {self.snr_db:g} dB"
        return None


@dataclass(frozen=True)
class Tolerances:
    """One for all values, and others for some by name."""

    every: Tolerance = field(default_factory=Tolerance)
    by_name: Mapping[str, Tolerance] = field(default_factory=dict)
    rounded: frozenset[str] = frozenset()
    """Values that are rounded to integers, which may be one step further off."""

    def of(self, name: str) -> Tolerance:
        """Return what holds for a value."""
        tolerance = self.by_name.get(name, self.every)
        if name not in self.rounded:
            return tolerance
        return replace(tolerance, absolute=tolerance.absolute + 1)

    def require_names(self, compared: Collection[str], hint: str | None = None) -> None:
        """Refuse tolerances for values that are not compared, which would have no effect.

        Args:
            compared: The names of all compared values.
            hint: What to do next if no name is similar.

        Raises:
            UsageError: Names the first.
        """
        for name in self.by_name:
            if name not in compared:
                matches = get_close_matches(name, compared, 1)
                if matches:
                    hint = f"Did you mean {visible(matches[0])!r}?"
                raise UsageError(
                    f"a tolerance names the unknown output {visible(name)!r}", hint=hint
                )


def parse_tolerances(
    specs: Sequence[str], absolute: float | None = None, relative: float | None = None
) -> Tolerances:
    """Return the tolerances of specifications.

    Args:
        specs: ``atol=1e-3,rtol=1e-2`` for all values, ``NAME:cosine=0.999`` for one.
        absolute: For all values without a specification.
        relative: The same.

    Raises:
        UsageError: A specification is malformed, or a number makes no sense.
    """
    base = Tolerance()
    every = Tolerance(
        base.absolute if absolute is None else _checked("atol", absolute),
        base.relative if relative is None else _checked("rtol", relative),
    )
    by_name: dict[str, dict[str, float]] = {}
    for spec in specs:
        name, values = _parse(spec)
        if name:
            by_name[name] = values
        else:
            every = _with(every, values)
    return Tolerances(every, {name: _with(every, values) for name, values in by_name.items()})


def _with(base: Tolerance, values: Mapping[str, float]) -> Tolerance:
    known = {
        "absolute": base.absolute,
        "relative": base.relative,
        "cosine": base.cosine,
        "snr_db": base.snr_db,
    }
    return Tolerance(**{**known, **values})  # type: ignore[arg-type]


def _parse(spec: str) -> tuple[str, dict[str, float]]:
    """Return the name of a value, empty for all, and the numbers by field."""
    head, _, first = spec.rpartition(":") if ":" in spec.partition("=")[0] else ("", "", spec)
    values = {}
    for part in first.split(","):
        key, sign, number = part.partition("=")
        field_name = _NAMES.get(key.strip().lower())
        if not sign or field_name is None:
            raise UsageError(
                f"tolerance {visible(spec)!r} is not understood",
                hint="Write atol=1e-3,rtol=1e-2, cosine=0.999, snr=30, or NAME:atol=1e-3",
            )
        try:
            values[field_name] = _checked(key.strip(), float(number))
        except ValueError:
            raise UsageError(f"{visible(number)!r} is not a number (tolerance {key})") from None
    return head, values


def _checked(name: str, value: float) -> float:
    least = -1.0 if name.startswith("cos") else 0.0
    if name == "snr":
        least = -1000.0
    if not value >= least or value == float("inf"):
        raise UsageError(f"tolerance {name} cannot be {value:g}")
    return value


@dataclass(frozen=True)
class ToleranceSettings:
    """How far outputs may be off; requests declare theirs like these."""

    tolerance: tuple[str, ...] = param(
        (),
        label="Tolerances",
        help=(
            "Tolerance: atol=1e-3,rtol=1e-2, cosine=0.999 or snr=30 for all tensors, "
            "NAME:atol=… for one."
        ),
        spellings=("--tolerance",),
        metavar="SPEC",
        empty="from the types",
    )
    atol: float = param(
        1e-2, label="Absolute", help="Absolute tolerance.", spellings=("--atol",), minimum=0
    )
    rtol: float = param(
        1e-2, label="Relative", help="Relative tolerance.", spellings=("--rtol",), minimum=0
    )
