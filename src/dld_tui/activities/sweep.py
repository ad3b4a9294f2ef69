"""Measure a model at several sizes, thread counts and providers; the points are measured in turns.

One session serves all sizes of a setting. A sweep that is stopped goes on where it was.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.activities.profile_onnxruntime import Request as Profile
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Event, Finished, Log, Progress
from dld_tui.core.inputs.settings import InputSettings
from dld_tui.core.params import like, param, to_json
from dld_tui.core.report.sweep import (
    BATCH,
    PROVIDER,
    THREADS,
    Sweep,
    SweepAxis,
    SweepPoint,
    parse_values,
    places,
)
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.onnxruntime.session import Session, SessionSettings
    from dld_tui.core.document.document import Document
    from dld_tui.core.inputs.guess import Guess
    from dld_tui.core.inputs.shapes import InputSpec
    from dld_tui.core.tune.journal import Journal

Result = Sweep
TURNS = 6
"""Turns of each point: between the smallest and the largest of six medians lies the median with a
confidence of 97 %."""
_KEPT = 1 << 28
"""Bytes of inputs that stay between turns; those of other points are made anew for each."""
Place = tuple[int | str, ...]
_BATCHES = (1, 2, 4, 8)
"""Where nothing else is varied."""


def _no_batch(values: Mapping[str, JSON]) -> str:
    varied = [values.get(name) for name in ("dim", "threads")]
    several = values.get("provider")
    is_alone = not any(varied) and not (isinstance(several, list) and len(several) > 1)
    return ",".join(map(str, _BATCHES)) if is_alone else "as guessed"


@dataclass(frozen=True)
class Request:
    """What to vary, and how long to measure."""

    model: Path = like(Profile, "model", help="The ONNX model.")
    batch: str = param(
        "",
        label="Batch sizes",
        help="Batch sizes with commas between them, such as 1,2,4,8.",
        spellings=("--batch",),
        metavar="N,…",
        empty=_no_batch,
        of_model=True,
    )
    dim: tuple[str, ...] = param(
        (),
        label="Dimensions",
        help="Sizes of a dynamic dimension by name, such as sequence=16,64,256. May be repeated.",
        spellings=("--dim", "--dims"),
        metavar="NAME=N,…",
        empty="as guessed",
    )
    threads: str = param(
        "",
        label="Threads",
        help="Counts of intra-op threads, such as 1,2,4.",
        spellings=("--threads",),
        metavar="N,…",
        empty="one a core",
    )
    provider: tuple[str, ...] = param(
        (),
        label="Providers",
        help="Execution providers to compare. May be repeated.",
        spellings=("--provider", "--providers"),
        metavar="NAME",
        empty="CPU",
        of_model=False,
    )
    duration: float = param(
        3.0,
        label="Seconds a point",
        help="Time that each point is measured for, in six turns.",
        unit="s",
        minimum=0.0,
        maximum=3600.0,
        spellings=("--duration",),
        metavar="S",
    )
    shape: tuple[str, ...] = like(InputSettings, "shape")
    seed: int = like(InputSettings, "seed")
    device_id: int = like(Profile, "device_id")
    again: bool = param(
        False,
        label="Start over",
        help="Start over instead of resuming an interrupted sweep.",
        spellings=("--again",),
    )

    def axes(self) -> list[SweepAxis]:
        """Return what is varied; provider and threads vary slowest, so that sessions are few.

        Raises:
            UsageError: A value is malformed, or a dimension is given twice.
        """
        axes = []
        if len(set(self.provider)) > 1:
            axes.append(SweepAxis(PROVIDER, tuple(dict.fromkeys(self.provider))))
        if self.threads:
            axes.append(SweepAxis(THREADS, parse_values(self.threads, "--threads")))
        if self.batch:
            axes.append(SweepAxis(BATCH, parse_values(self.batch, "--batch")))
        for text in self.dim:
            name, found, sizes = text.rpartition("=")
            if not found or not name:
                raise UsageError(f"--dim is {text!r}", hint="Write --dim sequence=16,64,256")
            axes.append(SweepAxis(name, parse_values(sizes, f"--dim {name}=")))
        names = [axis.name for axis in axes]
        if len(set(names)) < len(names):
            raise UsageError("a dimension is given twice", hint="Give its sizes in one --dim")
        return axes or [SweepAxis(BATCH, _BATCHES)]


@dataclass
class _Point:
    """A point while it is measured."""

    at: Place
    session: Session | None = None
    settings: SessionSettings | None = None
    guess: Guess | None = None
    values: Mapping[str, Any] | None = None
    rounds: list[float] = field(default_factory=list)
    problem: str = ""

    @property
    def key(self) -> str:
        """Its name in the journal."""
        return "/".join(map(str, self.at))


def run(request: Request) -> Iterator[Event]:
    """Measure.

    Raises:
        UsageError: A value is malformed, or the model has no such dimension.
        InputError: The model cannot be read.
        UnavailableError: ONNX Runtime or a provider is missing.
        ActivityError: No point can be run.
    """
    from dld_tui.core.document.document import Document
    from dld_tui.core.tune.journal import Journal

    axes = request.axes()
    spots = [_Point(at) for at in places(axes)]
    with contextlib.closing(Document.open(request.model)) as document:
        _require_dimensions(document, axes)
        journal = Journal.of({"sweep": True, **to_json(request)}, document, again=request.again)
        with contextlib.closing(journal):
            yield from _Measurement(request, axes, spots, document, journal).events()


def _require_dimensions(document: Document, axes: list[SweepAxis]) -> None:
    """Refuse names that no input has."""
    from dld_tui.core.inputs.guess import input_specs

    known = {
        dim for spec in input_specs(document) for dim in spec.dims or () if isinstance(dim, str)
    }
    for axis in axes:
        if axis.name not in (BATCH, THREADS, PROVIDER) and axis.name not in known:
            named = ", ".join(sorted(known)) or "none: all of its sizes are fixed"
            raise UsageError(f"no input has a dimension {axis.name!r}", hint=f"There are {named}")


class _Measurement:
    """Makes the sessions, tries each point once, and measures those that ran in turns."""

    def __init__(
        self,
        request: Request,
        axes: list[SweepAxis],
        spots: list[_Point],
        document: Document,
        journal: Journal,
    ) -> None:
        self._request, self._axes, self._spots = request, axes, spots
        self._document, self._journal = document, journal
        self._sessions: dict[Place, tuple[Session, SessionSettings]] = {}
        self._kept = 0
        self._fixed = ""
        self._measured_s = 0.0

    def events(self) -> Iterator[Event]:
        """Yield what happens, the result last."""
        from dld_tui.backends.onnxruntime.limits import limit_trials, naming
        from dld_tui.backends.onnxruntime.runtime import version

        began = time.monotonic()
        if {*self._request.provider} <= {"CPU"}:
            limit_trials(self._document, shapes=self._request.shape)
        with naming(self._document):
            for done, spot in enumerate(self._spots):
                yield Progress(done, len(self._spots), "points", "Trying each point once")
                self._prepare(spot)
            ready = [spot for spot in self._spots if not spot.problem]
            if not ready:
                raise ActivityError(f"no point can be run: {self._spots[0].problem}")
            yield from self._rounds(ready)
        points = [
            SweepPoint(spot.at, () if spot.problem else tuple(spot.rounds), spot.problem)
            for spot in self._spots
        ]  # fmt: skip
        self._journal.forget()
        yield Finished(
            Sweep(
                str(self._request.model), f"ONNX Runtime {version()}", tuple(self._axes),
                tuple(points), self._fixed, self._measured_s, time.monotonic() - began,
            )
        )  # fmt: skip

    # --- each point once --------------------------------------------------------------------------

    def _prepare(self, spot: _Point) -> None:
        from dld_tui.backends.onnxruntime.limits import with_node

        try:
            spot.session, spot.settings = self._session(spot)
            self._values(spot)
        except ActivityError as error:  # others are of what was given for all points
            spot.problem = with_node(error)

    def _sizes(self, spot: _Point) -> dict[str, int | str]:
        return dict(zip((axis.name for axis in self._axes), spot.at, strict=True))

    def _session(self, spot: _Point) -> tuple[Session, SessionSettings]:
        """Return the session that all sizes of the settings of a point share."""
        from dld_tui.backends.onnxruntime.session import Session

        sizes, model = self._sizes(spot), self._request.model
        key = (
            sizes.get(PROVIDER, next(iter(self._request.provider), "CPU")),
            sizes.get(THREADS, 0),
        )
        if key not in self._sessions:
            asked = Profile(
                model=model, provider=str(key[0]), threads=int(key[1]),
                device_id=self._request.device_id,
            )  # fmt: skip
            settings = replace(asked.session_settings(), quiet=True)
            self._sessions[key] = (Session(model, settings), settings)
        return self._sessions[key]

    def _values(self, spot: _Point) -> Mapping[str, Any]:
        """Return inputs of the sizes of a point that the model was run with once."""
        from dld_tui.core.inputs.guess import first_that_runs, specs_for

        if spot.values is not None:
            return spot.values
        session = spot.session
        assert session is not None
        specs = specs_for(session.inputs, self._document)
        guess = spot.guess
        if guess is None:
            guess, _ = first_that_runs(
                self._guesses(spot, specs), self._request.seed,
                lambda values: session.try_once(session.feed(dict(values))),
            )  # fmt: skip
            spot.guess, self._fixed = guess, self._fixed or guess.text
        values = guess.values(self._request.seed)
        size = sum(getattr(value, "nbytes", 0) for value in values.values())
        if self._kept + size <= _KEPT:
            self._kept += size
            spot.values = values
        return values

    def _guesses(self, spot: _Point, specs: Sequence[InputSpec]) -> Iterator[Guess]:
        from dld_tui.core.inputs.guess import candidate_guesses
        from dld_tui.core.inputs.shapes import parse_shapes

        sizes = {name: n for name, n in self._sizes(spot).items() if isinstance(n, int)}
        batch = sizes.pop(BATCH, None)
        sizes.pop(THREADS, None)
        given = parse_shapes(self._request.shape, [spec.name for spec in specs])

        def guesses(batch: int | None) -> Iterator[Guess]:
            return candidate_guesses(specs, self._document, given, sizes, batch=batch)

        if batch is not None:
            shapes, others = (next(guesses(n)).shapes for n in (batch, batch + 1))
            if shapes == others and all(shape[:1] != (batch,) for shape in shapes.values()):
                raise ActivityError("no input takes another batch: it is fixed in the model")
        return guesses(batch)

    # --- in turns --------------------------------------------------------------------------------

    def _rounds(self, ready: list[_Point]) -> Iterator[Event]:
        keys = [spot.key for spot in ready]
        for figures in self._journal.rounds("sweep", keys)[:TURNS]:
            for spot in ready:
                spot.rounds.append(figures[spot.key])
        resumed = len(ready[0].rounds)
        if resumed:
            yield Log(f"{resumed} of {TURNS} turns of each point are known from before")
        for number in range(resumed, TURNS):
            # The order turns, so that what changes slowly hits all points alike.
            at = number * len(ready) // TURNS
            figures = {}
            for done, spot in enumerate(ready[at:] + ready[:at]):
                total = len(ready) * TURNS
                yield Progress(number * len(ready) + done, total, "turns", "Measuring in turns")
                if not spot.problem:
                    self._time(spot, figures)
            if not any(spot.problem for spot in ready):
                self._journal.add_round("sweep", keys, figures)

    def _time(self, spot: _Point, figures: dict[str, float]) -> None:
        from dld_tui.backends.onnxruntime.contest import Contestant
        from dld_tui.backends.onnxruntime.limits import with_node

        assert spot.session is not None
        assert spot.settings is not None
        try:
            contestant = Contestant(self._request.model, spot.settings, [self._values(spot)])
            contestant.use(spot.session, 0.0)
            began = time.monotonic()
            figures[spot.key] = contestant.time(self._request.duration / TURNS)
        except ActivityError as error:
            spot.problem = with_node(error)
            return
        self._measured_s += time.monotonic() - began
        spot.rounds.append(figures[spot.key])
