"""How far results may be from a reference, for all outputs or for some."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from dld_tui.core.accuracy.statistics import TensorError
from dld_tui.core.errors import UsageError
from dld_tui.core.params import param
from dld_tui.core.text import visible

_NAMES = {
    "atol": "absolute", "abs": "absolute", "rtol": "relative", "rel": "relative",
    "cosine": "cosine", "cos": "cosine", "snr": "snr_db",
}  # fmt: skip


@dataclass(frozen=True)
class Tolerance:
    """What is allowed; an element may differ by ``absolute + relative * |reference|``.

    The same rule as of :func:`numpy.allclose`.
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
            return f"{error.special:,} elements are NaN or infinite in one of the two"
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
            # All digits that count: what is too little may differ from 1 by 1e-7 only.
            shown = "unknown" if error.cosine is None else f"{error.cosine:.10g}"
            return f"the cosine is {shown}, less than {self.cosine:.10g}"
        if self.snr_db is not None and (error.snr_db is None or error.snr_db < self.snr_db):
            shown = "unknown" if error.snr_db is None else f"{error.snr_db:.1f} dB"
            return f"the signal to noise ratio is {shown}, less than {self.snr_db:g} dB"
        return None


@dataclass(frozen=True)
class Tolerances:
    """One for all values, and others for some by name."""

    every: Tolerance = field(default_factory=Tolerance)
    by_name: Mapping[str, Tolerance] = field(default_factory=dict)

    def of(self, name: str) -> Tolerance:
        """Return what holds for a value."""
        return self.by_name.get(name, self.every)

    def require_names(self, compared: Collection[str], hint: str | None = None) -> None:
        """Refuse a tolerance for what is not compared: it would hold for nothing.

        Args:
            compared: The names of all values that are.
            hint: What to do next, where no name is like it.

        Raises:
            UsageError: Names the first.
        """
        for name in self.by_name:
            if name not in compared:
                near = get_close_matches(name, compared, 1)
                if near:
                    hint = f"Did you mean {visible(near[0])!r}?"
                raise UsageError(
                    f"there is no output {visible(name)!r} that a tolerance could be for", hint=hint
                )


def parse_tolerances(
    specs: Sequence[str], absolute: float | None = None, relative: float | None = None
) -> Tolerances:
    """Return the tolerances that specs give.

    Args:
        specs: ``atol=1e-3,rtol=1e-2`` for all values, ``NAME:cosine=0.999`` for one.
        absolute: For all values where no spec says so.
        relative: The same.

    Raises:
        UsageError: A spec has another form, or a number makes no sense.
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
        help="What may be off: atol=1e-3,rtol=1e-2 or cosine=0.999 or snr=30 for all tensors,"
        " NAME:atol=… for one.",
        spellings=("--tolerance",),
        metavar="SPEC",
        empty="as the types allow",
    )
    atol: float = param(
        1e-2, label="Absolute", help="Absolute tolerance.", spellings=("--atol",), minimum=0
    )
    rtol: float = param(
        1e-2, label="Relative", help="Relative tolerance.", spellings=("--rtol",), minimum=0
    )
