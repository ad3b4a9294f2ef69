"""Find the fastest setup of a model whose outputs stay within the tolerance.

Converted models race first, then session options with the fastest model, then combinations of what
helped; what a report of the model advises is tried before the rest. The winner must beat the
original model again in new processes. Candidates that are left then have the time that is left, in
the same way. At last both are profiled, and the gain is attributed to ONNX nodes.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.activities.profile_onnxruntime import Request as Profile
from dld_tui.core import fmt
from dld_tui.core.accuracy.statistics import ToleranceSettings
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import (
    ActivityError,
    CancelledError,
    DldError,
    SaveError,
    TimeLimitError,
    UsageError,
)
from dld_tui.core.events import Event, Finished, Log, Metric, Progress, events_of
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.files.writer import put_in_place
from dld_tui.core.inputs.settings import InputSettings
from dld_tui.core.notes import NoteKind
from dld_tui.core.params import from_json, like, output_path, param, to_json
from dld_tui.core.process.paths import unused
from dld_tui.core.text import visible
from dld_tui.core.tune.changes import CHANGES, DEFAULT_LIMIT, Change, Setup, combinations
from dld_tui.core.tune.result import (
    NOTHING,
    CandidateState,
    Closeness,
    Exclusion,
    TuneResult,
    candidates,
    no_time,
    ratios_of,
)
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.onnxruntime.contest import Contestant
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.backends.processes import ForkServer
    from dld_tui.core.compare.gate import GateRow, Pair
    from dld_tui.core.document.document import Document
    from dld_tui.core.inputs.feeds import Feeds
    from dld_tui.core.tune.gain import Gain
    from dld_tui.core.tune.race import Race

Result = TuneResult
_PROOF, _MOST_PROOF = 0.3, 0.75
"""What is kept of the time for the confirmation and the profiles of the winner: this share of it. A
model whose pairs of runs take longer gets more; nothing is kept where they take more than the last
share: there is time for the races alone."""
_LEAST_PROOF_S = 9.0
"""About what the least number of the shortest pairs takes."""
_LEAST_PASSES = 3
"""Passes of each version in a pair of runs, at least: two before the clock runs."""
_PROCESS_S, _SLACK_S = 1.0, 5.0
"""What a process takes to start, and how much more a busy machine may need for a pair before it
measures less."""
_NO_TIME = no_time("before it was measured")
_SPENT = 0.1
"""Share of the budget that may be left where candidates are."""
_IDLE_S = 1.0
"""Races that take less have found nothing to do."""
_PROOFS = 2
"""Candidates that have to prove themselves after the same races, at most."""
_NOT_PROFILED = "The budget was spent before both could be profiled."
_CONVERTING, _CONVERTED, _CONVERTED_LATER = 0.45, 0.55, 0.8
"""Shares of the other time after which no conversion is started any more, and none goes on: a slow
one has to let the others race first."""
_MODELS, _SETTINGS, _BOTH = 0.7, 0.9, 1.0
"""Shares of it at which the races end at the latest."""
_OVERHEAD = 0.08
"""Share of the time measured that loading and checking may take. A model that loads slowly gets
longer turns and longer runs of pairs for it, as far as the budget allows, and no new sessions."""
_SHORTEST_S, _LONGEST_S = 0.1, 1.0
"""How long one turn takes, unless three passes take longer, or the session took long to load."""
_RENEWING = 0.05
"""Share of the time measured that is spent on new sessions in the place of those that race: as long
as it lasts, a session keeps where its threads and its memory are, which can make it faster or
slower than another one of the same set-up."""
_ROUNDS, _LEAST_ROUNDS = 12, 2
"""How many rounds a race has, at most, and for how many there must be time to admit a candidate."""
_CONFIRM_S, _CONFIRM_LEAST_S = 2.0, 0.2
"""How long a run of a pair takes that confirms the winner, unless the overhead asks for more, and
at least."""
_CONFIRM_PAIRS = 12
"""Pairs that confirm it, at most: each starts a process, which takes about a second."""
_PAIR_IMPORTS = (
    "onnx",
    "onnxruntime",
    "dld_tui.activities.time_pair",
    "dld_tui.backends.onnxruntime.profiling",
    "dld_tui.core.inputs.feeds",
    "dld_tui.core.inputs.guess",
)
"""Modules whose imports take most of the time that a process for a pair takes to start."""
_OVER = 0.05
"""The share of the budget after which even the profiles of a confirmed winner stop."""
_QUICK_S, _QUICK_BYTES = 1.0, 64 << 20
"""Loading and a pass, and weights, up to which conversions run in this process: they end soon."""
_SEEMS = 0.98
"""The ratio to the first one of a race below which a set-up goes on without proof."""
_PROFILES = ("before", "after")
_PROFILE_PAIRS, _PROFILE_S, _PROFILE_SHARE, _TURNS_S = 8, 20.0, 0.15, 0.5
"""How often both are profiled in new sessions, after how long no more (of a short budget this share
of it), and for how long each."""
_LEAST_PROFILED = 13
"""Passes of a session that is profiled, at least."""
_AS_CONFIRMED = 0.15
"""A difference from what was confirmed below which no more profiles are taken."""
_MOST_ITEMS = 1_000_000
_MOST_NODES = 500
"""Of those that a result lists."""
_SETS = 3
_HELD_BYTES = 2 << 30
"""Weights of sessions that are held at once; with more, sessions are made for each turn."""
_HELD_MODELS = 30
"""More sessions than race at once."""


@dataclass(frozen=True)
class Request:
    """What to tune, and within which bounds."""

    model: Path = param(
        label="Model", help="The ONNX model to tune.", kind="file", positional=True,
        metavar="MODEL",
    )  # fmt: skip
    output: Path | None = param(
        None,
        label="Result",
        help=(
            "Write the result here, with the model, the settings as Python and two profiles "
            "beside it. By default NAME.tune.json in the current folder."
        ),
        spellings=("--output", "-o"),
        kind="output",
        suffix=".tune.json",
        default_path=lambda request: unused(Path(f"{request.model.stem}.tune.json")),
        beside=(
            "{stem}.onnx", "{stem}.onnx.data", "{stem}.py", "{stem}.before.dldprof",
            "{stem}.after.dldprof",
        ),
        metavar="FILE",
    )  # fmt: skip
    budget: float = param(
        300.0,
        label="Time",
        help="Time budget. The best candidate so far is the result.",
        unit="s",
        minimum=1,
        spellings=("--budget",),
        metavar="S",
    )
    provider: str = like(
        Profile,
        "provider",
        help="Execution provider, such as CPU or CUDA.",
        spellings=("--provider",),
    )
    only: tuple[str, ...] = param(
        (),
        label="Only",
        empty="all applicable changes",
        help="Try only these changes: ids separated by commas, such as int8-dynamic,threads-1.",
        spellings=("--only",),
        metavar="CHANGE,…",
    )
    tolerance: tuple[str, ...] = like(
        ToleranceSettings,
        "tolerance",
        spellings=("--tolerance", "--accuracy"),
        help=(
            "Tolerance of outputs: cosine=0.999, snr=30 or atol=1e-3,rtol=1e-2 for all, "
            f"NAME:atol=… for one. By default {DEFAULT_LIMIT}."
        ),
    )
    calibration: Path | None = param(
        None,
        label="Calibration",
        empty="none: static int8 is not tried",
        help=(
            "Folder of inputs for static quantization. Without it, static quantization is not "
            "tried."
        ),
        kind="folder",
        spellings=("--calibration",),
        metavar="DIR",
    )
    batch: tuple[str, ...] = param(
        (),
        label="Batch sizes",
        empty="as in the inputs",
        help="Batch sizes to try, such as 2,4,8. Candidates are then compared by time per item.",
        spellings=("--batch",),
        metavar="N,…",
    )
    fix_shapes: bool = param(
        False,
        label="Fix shapes",
        help="Also try fixing dynamic dimensions to the sizes of the inputs.",
        spellings=("--fix-shapes",),
    )
    shape: tuple[str, ...] = like(InputSettings, "shape", page="Inputs")
    inputs: Path | None = like(InputSettings, "inputs", page="Inputs")
    seed: int = like(InputSettings, "seed", page="Inputs")
    device_id: int = like(Profile, "device_id", page="Inputs")
    again: bool = param(
        False,
        label="Start over",
        help="Start over instead of resuming an interrupted run.",
        spellings=("--again",),
        page="Inputs",
    )

    def require(self) -> None:
        """Refuse settings that exclude each other, before anything is loaded.

        Raises:
            UsageError: Says which.
        """
        if self.batch and self.inputs is not None:
            raise UsageError(
                "--batch cannot be combined with --inputs, whose data have a fixed size"
            )


def run(request: Request) -> Iterator[Event]:
    """Tune.

    Raises:
        UsageError: Settings do not fit each other or the model.
        InputError: The model or an input cannot be read.
        UnavailableError: ONNX Runtime or the provider is missing.
        ActivityError: The model cannot be run.
        SaveError: A result cannot be written.
    """
    from dld_tui.core.llm.folder import open_document

    request.require()
    folder = Path.cwd() if request.output is None else request.output.absolute().parent
    if not os.access(folder, os.W_OK | os.X_OK):  # said before the work
        raise SaveError(
            "the folder is not writable", where=str(folder), hint="Choose another --output"
        )
    yield Progress(0, None, stage="Reading the model")
    yield Metric("budget", request.budget, "s")  # beside the time that has passed
    with contextlib.closing(open_document(request.model)) as document:
        tuning = _Tuning(request, document)
        try:
            yield from tuning.events()
        except (CancelledError, SaveError) as error:
            error.hint = tuning.left_behind() or error.hint
            raise
        finally:
            tuning.close()


class _Tuning:
    """One run."""

    def __init__(self, request: Request, document: Document) -> None:
        from dld_tui.core.accuracy.statistics import parse_tolerances
        from dld_tui.core.machine.environment import CpuWatch
        from dld_tui.core.tune.journal import Journal

        self._watch = CpuWatch()
        self._request, self._document = request, document
        self._begin = time.monotonic()
        self._seconds = dict.fromkeys(
            ("measuring", "waiting", "converting", "loading", "checking"), 0.0
        )
        self._journal = Journal.of(to_json(request), document, again=request.again)
        self._strict = parse_tolerances(request.tolerance) if request.tolerance else None
        self._base = Setup(request.model.absolute())
        self._made: dict[str, Contestant] = {}
        self._first: Session | None = None
        """The session that the inputs were made with, until it races as the original model."""
        self._first_s = 0.0
        """The seconds that it took to create."""
        self._pass_s = 0.0
        """What a pass of the original model takes, by the longest of the first ones."""
        self._renewing_s = 0.0
        self._pair_took_s = 0.0
        """What the last pair of runs took."""
        self._problems: dict[str, Exclusion] = {}
        self._failed: set[str] = set()
        """Changes whose conversion failed (a full disk, say): a resumed run tries them again."""
        self._judged: set[str] = set()
        """Candidates whose outputs were compared."""
        self._near: dict[str, Closeness] = {}
        self._setups: dict[str, Setup] = {self._base.key: self._base}
        self._races: list[Race] = []
        self._proofs: dict[str, GateRow] = {}
        """The winners of races against the original model, by key."""
        self._since_s = 0.0
        """When the present races began."""
        self._again: set[str] = set()
        """Candidates for which there was no time in the races before."""
        self._is_whole = True
        self._written: list[Path] = []
        """What a result has beside it."""
        self._feeds: Feeds | None = None
        self._reference: list[dict[str, Any]] = []
        self._open = contextlib.ExitStack()

    def close(self) -> None:
        """Let the next run of the same have what was found."""
        self._open.close()
        self._journal.close()

    @functools.cached_property
    def _is_on_cpu(self) -> bool:
        memory: str = self._settings(self._base).memory
        return memory == "cpu"

    @functools.cached_property
    def _pair_server(self) -> ForkServer | None:
        """Starts the processes of pairs; None on a GPU, whose driver a fork may not inherit."""
        from dld_tui.activities.separate_process import process_server

        if not self._is_on_cpu:
            return None
        return self._open.enter_context(contextlib.closing(process_server(_PAIR_IMPORTS)))

    def left_behind(self) -> str:
        """Remove the files of a result that is not whole, and return what is kept, for people."""
        for path in self._written:
            path.unlink(missing_ok=True)
        if not self._journal.is_kept:
            return ""
        return "The measurements are kept: tune the model again, with any output, to continue"

    # --- the course -----------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        """Tune, and write what was found."""
        from dld_tui.backends.onnxruntime.limits import limit_trials, naming

        if self._settings(self._base).providers == ("CPU",):
            held = 2 * min(_HELD_BYTES, _HELD_MODELS * self._weight_bytes)
            limit_trials(self._document, shapes=self._request.shape, more=held)
        with naming(self._document):
            in_time = self._inputs_in_time()
        if not in_time:
            yield from self._finished(self._base)
            return
        usable = self._usable()
        winner, ranked = self._base, list[Setup]()
        while True:
            self._since_s, before = self._passed_s, self._unfinished()
            raced = yield from self._raced_all(usable, winner)
            ranked = self._ranked([*raced, *ranked])
            goes_on = self._would_go_on(before) and self._left(_BOTH) > self._rest_s
            if goes_on and not self._must_prove(ranked[0]):
                continue  # what is left races before anything has to prove itself
            winner = yield from self._proven(ranked, winner)
            if not self._would_go_on(before) or self._left() <= self._rest_s:
                break
        self._is_whole &= not self._unfinished()
        yield from self._finished(winner)

    def _ranked(self, raced: Sequence[Setup]) -> list[Setup]:
        """Return set-ups that won a race, the fastest first, and the original model last.

        A series of races that had no time for all of them does not undo those before it.
        """
        ratios = ratios_of(self._races)
        chosen = {one.key: one for one in raced if one.changes and one.key not in self._problems}
        faster = [one for one in chosen.values() if ratios.get(one.key, 1.0) < 1]
        return [*sorted(faster, key=lambda one: ratios[one.key]), self._base]

    def _must_prove(self, leader: Setup) -> bool:
        """Return whether later there would be no time to confirm the one that leads."""
        is_open = bool(leader.changes) and leader.key not in self._proofs
        return is_open and self._proof_s() > _MOST_PROOF * self._left()

    def _proven(self, ranked: Sequence[Setup], winner: Setup) -> Generator[Event, None, Setup]:
        """Confirm those that won their races, and return the fastest one that is confirmed.

        Args:
            ranked: The fastest first.
            winner: What was confirmed before; the original model where nothing was.
        """
        from dld_tui.core.compare.gate import LEAST_RUNS

        for one in self._made.values():
            one.close()
        for candidate in [one for one in ranked if one.key not in self._proofs][:_PROOFS]:
            if not candidate.changes or LEAST_RUNS * self._pair_took_s > self._left():
                break
            row = yield from self._confirmed(candidate)
            if row is None:
                break
            self._proofs[candidate.key] = row
            best = self._proofs.get(winner.key)
            if row.is_faster and (best is None or row.change_percent < best.change_percent):
                return candidate
        return winner

    @property
    def _rest_s(self) -> float:
        return _SPENT * self._request.budget

    @property
    def _converted_share(self) -> float:
        return _CONVERTED_LATER if self._since_s else _CONVERTED

    @property
    def _passed_s(self) -> float:
        return time.monotonic() - self._begin

    def _would_go_on(self, before: frozenset[tuple[str, int]]) -> bool:
        """Return whether there is something left that more time may finish.

        Args:
            before: What was unfinished when the present races began.
        """
        now = self._unfinished()
        # A repair that was stopped goes on from its journal, so that the same may be left.
        return bool(now) and (now != before or self._passed_s - self._since_s > _IDLE_S)

    def _unfinished(self) -> frozenset[tuple[str, int]]:
        """Return what there was no time for: candidates, and races with their numbers of rounds."""
        untried = {
            (key, 0)
            for key, excluded in self._problems.items()
            if excluded.state is CandidateState.NOT_TRIED
        }
        races = {(" ".join(race.names), race.rounds) for race in self._races if not race.is_over}
        return frozenset(untried | races)

    def _usable(self) -> list[Change]:
        """Return the changes to try, those first that the newest report of the model advises."""
        from dld_tui.core.tune.changes import usable_changes

        known = self._changes()
        self._require_known(known)
        provider = self._settings(self._base).providers[0]
        nodes = (node for scope in self._document.scopes() for node in scope.nodes)
        operators = frozenset(node.op_type for node in nodes)
        usable = usable_changes(
            known,
            provider,
            operators,
            lambda name: getattr(self._request, name),
            _listed(self._request.only),
        )
        advised = _advised(self._request.model)
        return sorted(usable, key=lambda one: (one.id not in advised, advised.get(one.id, 0)))

    def _raced_all(
        self, usable: Sequence[Change], winner: Setup
    ) -> Generator[Event, None, list[Setup]]:
        """Race models, then settings, then both; return who was faster than the original model.

        Returns:
            The fastest first, the original model last.
        """
        self._again = {
            key for key, one in self._problems.items() if one.state is CandidateState.NOT_TRIED
        }
        for key in self._again:  # now there may be time
            del self._problems[key]
            if key != self._base.key:  # it stays the first
                del self._setups[key]
        models = yield from self._converted([one for one in usable if one.makes_model])
        proven = [winner] if winner.changes else []
        raced = yield from self._raced("models", [self._base, *proven, *models], _MODELS)
        best = raced or [winner]
        settings = [
            best[0].with_change(one)
            for one in usable
            if not one.makes_model and best[0].goes_with(one) and one not in best[0].changes
        ]
        if settings:
            raced = yield from self._raced("settings", [best[0], *settings], _SETTINGS)
            second = raced or [best[0]]
            helped = [one for one in second if one.key != best[0].key]
            won = {one.key for one in best}
            lost = [one for one in models if one.key not in won and one.key not in self._problems]
            finals = combinations(best, helped, lost)
            raced = yield from self._raced("together", [best[0], *finals], _BOTH)
            best = raced or second
        return best

    def _changes(self) -> list[Change]:
        from dld_tui.backends.onnxruntime.runtime import newest_opset
        from dld_tui.core.machine.environment import physical_cores, usable_threads
        from dld_tui.core.tune.changes import batch_change, shape_change, thread_changes

        assert self._feeds is not None
        changes = [*CHANGES, *thread_changes(usable_threads(), physical_cores())]
        sizes = self._free_sizes() if self._request.fix_shapes else {}
        if sizes:
            changes.append(shape_change(sizes))
        for text in _listed(self._request.batch):
            if not text.isdecimal() or not 2 <= int(text) <= _MOST_ITEMS:
                raise UsageError(
                    f"--batch is {text!r}", hint="Write sizes from 2 to a million: 2,4,8"
                )
            changes.append(batch_change(int(text)))
        opset = next((o.version for o in self._document.model.opset_import if not o.domain), 0)
        newest = newest_opset()
        return [
            replace(change, values={"to": newest}) if change.id == "opset" else change
            for change in changes
            if change.id != "opset" or opset < newest
        ]

    def _require_known(self, known: Sequence[Change]) -> None:
        names = {one.id for one in known} | {one.id for one in CHANGES}
        for name in _listed(self._request.only):
            if name not in names:
                raise UsageError(
                    f"no change is called {visible(name)}",
                    hint=f"Choose from {', '.join(sorted(names))}",
                )

    def _left(self, share: float | None = None) -> float:
        """Return how many seconds are left to a share of the time before the winner is known.

        Without a share, to all of the time.
        """
        budget = self._request.budget
        if share is None:
            return budget - self._passed_s
        span = budget - self._since_s
        kept_s = _PROOF * (budget if 2 * span > budget else span)
        proof_s = max(kept_s, min(_LEAST_PROOF_S, span / 2), self._proof_s())
        if proof_s > _MOST_PROOF * span:
            proof_s = 0.0
        return self._since_s + share * (span - proof_s) - self._passed_s

    @property
    def _overhead_s(self) -> float:
        """The seconds of loading and checking."""
        return self._seconds["loading"] + self._seconds["checking"]

    def _proof_s(self) -> float:
        """Return how long the confirmation takes at least, as far as that is known."""
        from dld_tui.core.compare.gate import LEAST_RUNS

        is_quick = self._is_on_cpu and self._first_s + self._pass_s <= _QUICK_S
        return 0.0 if is_quick else LEAST_RUNS * self._pair_s()

    def _pair_s(self) -> float:
        """Return how long a pair of runs takes at least: a process that loads two sessions."""
        return _PROCESS_S + 2 * (self._first_s + _LEAST_PASSES * self._pass_s)

    def _limited(
        self, share: float | None = None, over_s: float = 0.0
    ) -> contextlib.AbstractContextManager[None]:
        """Return the context in which ONNX Runtime stops at a share of the time."""
        from dld_tui.backends.onnxruntime.limits import time_limit

        return time_limit(time.monotonic() + self._left(share) + over_s)

    @contextlib.contextmanager
    def _doing(self, what: str) -> Generator[None]:
        """Add the seconds, but for those that turns wait for threads of others to sleep."""
        from dld_tui.core.report.latency import settled_s

        begin, settled = time.monotonic(), settled_s()
        try:
            yield
        finally:
            waited = settled_s() - settled
            self._seconds["waiting"] += waited
            self._seconds[what] += time.monotonic() - begin - waited

    # --- what is run, and on what ---------------------------------------------------------------

    def _profile_request(self, setup: Setup, **more: JSON) -> Any:
        asked = self._request
        values: dict[str, JSON] = {
            "model": str(setup.model), "provider": asked.provider, "device_id": asked.device_id,
            "shape": self._shapes(setup), "seed": asked.seed,
            "inputs": None if asked.inputs is None else str(asked.inputs),
            **setup.session, **more,
        }  # fmt: skip
        values.pop("batch", None)
        return from_json(Profile, values)

    def _shapes(self, setup: Setup) -> list[JSON]:
        if setup.batch > 1:
            grown = self._grown(setup.batch)
            return [f"{name}:{'x'.join(map(str, shape))}" for name, shape in grown.items()]
        return [*self._request.shape]

    def _settings(self, setup: Setup) -> Any:
        return replace(self._profile_request(setup).session_settings(), quiet=True)

    def _inputs_in_time(self) -> bool:
        """Load and run the original model; return whether there was time for it."""
        try:
            with self._limited():
                self._make_inputs()
        except TimeLimitError:
            self._is_whole = False
            took = "run" if self._first is not None else "loaded"
            self._problems[self._base.key] = no_time(f"before the original model was {took}")
            return False
        return True

    def _make_inputs(self) -> None:
        from dld_tui.backends.onnxruntime.session import Session
        from dld_tui.core.inputs.feeds import input_feeds
        from dld_tui.core.inputs.guess import specs_for

        asked = self._request
        with self._doing("loading"):
            self._feeds = None
            begin = time.monotonic()
            session = Session(self._base.model, self._first_settings())
            self._first_s = time.monotonic() - begin
            self._first = session
            self._feeds = input_feeds(
                specs_for(session.inputs, self._document),
                asked.inputs,
                asked.shape,
                range(asked.seed, asked.seed + _SETS),
                self._document,
                lambda values: session.try_once(session.feed(dict(values))),
            )
            self._specs = specs_for(session.inputs, self._document)
        with self._doing("checking"):
            if not session.is_readable:
                return
            for values in self._feeds.sets:
                begin = time.monotonic()
                outputs = session.run(session.feed(values))
                self._pass_s = max(self._pass_s, time.monotonic() - begin)
                self._reference.append(dict(zip(session.outputs, outputs, strict=True)))

    def _first_settings(self) -> Any:
        asked = self._request
        first = Profile(model=asked.model, provider=asked.provider, device_id=asked.device_id)
        return replace(first.session_settings(), quiet=True)

    def _grown(self, times: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of inputs of so many items."""
        from dld_tui.core.inputs.guess import guess_inputs

        guess = guess_inputs(self._specs, self._document, None, batch=times)
        return {name: tuple(shape) for name, shape in guess.shapes.items()}

    def _free_sizes(self) -> dict[str, int]:
        """Return the sizes that free dimensions have in the inputs, by name."""
        assert self._feeds is not None
        free_sizes: dict[str, int] = {}
        for spec in self._specs:
            value = self._feeds.sets[0].get(spec.name)
            for dim, size in zip(spec.dims or (), getattr(value, "shape", ()), strict=False):
                if isinstance(dim, str):
                    free_sizes[dim] = int(size)
        return free_sizes

    def _contestant(self, setup: Setup) -> Contestant:
        from dld_tui.backends.onnxruntime.contest import Contestant, repeated

        assert self._feeds is not None
        sets = self._feeds.sets
        if setup.batch > 1:
            grown = self._grown(setup.batch)
            sets = [repeated(values, grown, setup.batch) for values in sets]
        binds = bool(setup.session.get("io_binding"))
        contestant = Contestant(
            setup.model, self._settings(setup), sets, items=setup.batch, io_binding=binds
        )
        if not setup.changes and self._first is not None:  # it need not be loaded twice
            contestant.use(self._first, self._first_s)
            self._first = None
        return contestant

    # --- models ---------------------------------------------------------------------------------

    def _converted(self, changes: Sequence[Change]) -> Generator[Event, None, list[Setup]]:
        """Convert the model in each way, as long as there is time for it."""
        found = []
        for at, change in enumerate(changes):
            yield Progress(at, len(changes), "conversions", change.title)
            setup = self._base.with_change(change)
            self._setups[setup.key] = setup
            is_made = self._journal.is_made(change.id)
            if not is_made and self._left(_CONVERTING) <= 0:
                self._problems[setup.key] = _NO_TIME
                continue
            if is_made:
                excluded = self._journal.exclusion(change.id)
            else:
                with self._doing("converting"):
                    excluded = yield from self._convert(change)
                is_untried = excluded is not None and excluded.state is CandidateState.NOT_TRIED
                if not is_untried and change.id not in self._failed:
                    self._journal.add_made(change.id, excluded)
            if excluded is not None:
                self._problems[setup.key] = excluded
                yield Log(f"{change.title}: {excluded.text}")
            else:
                found.append(replace(setup, model=self._journal.model(change.id)))
                self._setups[setup.key] = found[-1]
        return found

    def _convert(self, change: Change) -> Generator[Event, None, Exclusion | None]:
        """Make a model; return why it does not count, None where it does."""
        steps = self._rewritten(change) if change.rules else self._verified(change)
        try:
            with contextlib.closing(steps):
                excluded = yield from steps
        except TimeLimitError:
            return no_time("during the conversion")
        except CancelledError:
            raise
        except DldError as error:
            excluded = _failed(error.message)
            self._failed.add(change.id)
        # Where the time is up, a conversion can blame the outputs that it could not compare.
        is_late = excluded is not None and self._left(self._converted_share) <= 0
        return no_time("during the conversion") if is_late else excluded

    def _rewritten(self, change: Change) -> Generator[Event, None, Exclusion | None]:
        """Apply rewrite rules; return why the result does not count, None where it does.

        Its outputs are compared when it races.
        """
        from dld_tui.backends.conversion import rewriter
        from dld_tui.backends.conversion.library_file import by_library
        from dld_tui.core.conversion.copies import write_copy

        limit_s = max(0.0, self._left(self._converted_share))
        with contextlib.ExitStack() as stack:
            result = yield from by_library(
                self._document, rewriter.__name__, [*change.rules], change.title, stack,
                limit_s=limit_s,
            )  # fmt: skip
            if _operators(result) == _operators(self._document):
                return NOTHING
            write_copy(result, self._journal.model(change.id))
        return None

    def _verified(self, change: Change) -> Generator[Event, None, Exclusion | None]:
        """Run a conversion, which compares outputs; return why the result does not count."""
        values: dict[str, JSON] = {
            "model": str(self._base.model), "output": str(self._journal.model(change.id)),
            "values": "always", "measure": False,
            "tolerance": [*(self._request.tolerance or change.tolerance)],
            "shape": [*self._request.shape],
            "inputs": None if self._request.inputs is None else str(self._request.inputs),
            **change.values,
        }  # fmt: skip
        if change.needs:
            values[change.needs] = str(getattr(self._request, change.needs))
        if change.repairs:
            values["repair"] = True
        is_quick = self._first_s + self._pass_s < _QUICK_S and self._weight_bytes <= _QUICK_BYTES
        conversion = self._converted_here if is_quick else self._converted_apart
        with contextlib.closing(conversion(change, values)) as events:
            return _value_problem((yield from events))

    def _converted_here(
        self, change: Change, values: Mapping[str, JSON]
    ) -> Generator[Event, None, object]:
        from dld_tui.activities import registry

        activity = registry.load(change.convert)
        with (
            self._limited(self._converted_share),
            contextlib.closing(activity.run(from_json(activity.request, values))) as events,
        ):
            for event in events:
                if isinstance(event, Finished):
                    return event.result
                if isinstance(event, Progress):
                    yield replace(event, stage=f"{change.title}: {event.stage}")
                if self._left(self._converted_share) < 0:
                    raise TimeLimitError("stopped at the time limit")
        raise ActivityError("the conversion wrote no model")

    def _converted_apart(
        self, change: Change, values: Mapping[str, JSON]
    ) -> Generator[Event, None, object]:
        """Convert in a process that can be stopped at any time."""
        from dld_tui.activities.separate_process import run_in_process

        with temporary_folder("tune") as folder:
            limit_s = max(0.0, self._left(self._converted_share))
            process = run_in_process(change.convert, values, folder, limit_s)
            with contextlib.closing(process):
                while True:
                    try:
                        event = next(process)
                    except StopIteration as end:
                        return end.value
                    yield replace(event, stage=change.title)

    # --- races ----------------------------------------------------------------------------------

    def _raced(
        self, stage: str, setups: Sequence[Setup], share: float
    ) -> Generator[Event, None, list[Setup]]:
        """Let set-ups race; return those that are faster than the first one, which comes last.

        Nothing where no round was run.
        """
        from dld_tui.core.tune.race import Race

        setups = list({setup.key: setup for setup in setups}.values())
        lost = {key for key, row in self._proofs.items() if not row.is_faster}
        for race in self._races:
            lost |= {*race.names} - {*race.running} - self._again
        setups = [one for at, one in enumerate(setups) if at == 0 or one.key not in lost]
        self._setups.update({setup.key: setup for setup in setups})
        yield from self._admitted(stage, setups, share)
        keys = [setup.key for setup in setups if setup.key not in self._problems]
        if len(keys) < 2 or keys[0] != setups[0].key:
            return []
        begun = [one for one in self._races if one.names == tuple(keys)]
        race = begun[0] if begun else Race(keys, _ROUNDS)
        known: Iterator[dict[str, float]] = iter(())
        if not begun:
            self._races.append(race)
            known = iter(self._journal.rounds(stage, keys))
        while not race.is_over:
            end = share if race.rounds else _BOTH  # a race without a round was in vain
            figures = next(known, None)
            if figures is None or set(figures) != set(race.running):
                known = iter(())
                if self._left(end) <= 0:
                    break
                try:
                    figures = yield from self._round(race, end)
                except TimeLimitError:
                    break
                self._journal.add_round(stage, keys, figures)
            before = set(self._problems)
            out = race.add_round(figures, self._may_win)
            for name in set(self._problems) - before:
                self._made[name].close()
                yield Log(f"{self._setups[name].title}: {self._problems[name].text}")
            yield Progress(race.rounds, _ROUNDS, "runs", f"Comparing {stage}")
            best = race.best
            yield Metric("best", race.figures[best][-1], "ms")
            for name in out:
                self._made[name].close() if name in self._made else None
                # Times of different rounds do not compare, ratios within rounds do.
                ratio = race.ratio(name, best) or 1.0
                yield Log(f"{self._setups[name].title}: slower, {ratio:.2f}× the best latency")
        if not race.rounds:
            self._races.remove(race)
            raced = {key for one in self._races for key in one.figures if one.figures[key]}
            self._problems |= {key: _NO_TIME for key in keys[1:] if key not in raced}
            return []
        reference = setups[0]
        ratios = {key: race.ratio(key, keys[0]) or 9e9 for key in race.running}
        # What only seems to be faster goes on, too: the winner has to prove it.
        faster = [
            key
            for key in sorted(race.running, key=ratios.__getitem__)
            if key != keys[0]
            and (ratios[key] < _SEEMS or race.is_slower(keys[0], key))
            and self._may_win(key)
        ]
        return [*(self._setups[key] for key in faster), reference]

    def _admitted(self, stage: str, setups: Sequence[Setup], share: float) -> Iterator[Event]:
        """Load what has not been loaded, and leave out what computes something else."""
        turn_s = self._turn_s(len(setups))
        for at, setup in enumerate(setups):
            key = setup.key
            if self._problems.get(key) is _NO_TIME:  # in an earlier stage
                del self._problems[key]
            if key in self._made or key in self._problems:
                continue
            yield Progress(at, len(setups), "candidates", f"Checking {stage}")
            try:
                is_loaded = setup is self._base and self._first is not None
                admitted = sum(one.key in self._made for one in setups)
                needed_s = self._first_s + turn_s * _LEAST_ROUNDS * (admitted + 1)
                if self._left(share) < (0.0 if is_loaded else needed_s):
                    raise TimeLimitError("there is no time to load and measure it")
                with self._limited(share):
                    with self._doing("loading"):
                        contestant = self._contestant(setup)
                        contestant.open()
                    self._made[key] = contestant
                    if self._settings(setup).cuda_graph:  # its first run decides what it reads
                        self._may_win(key)
                if not self._holds(len(setups)):
                    contestant.close()
            except TimeLimitError:
                self._problems[key] = _NO_TIME
            except DldError as error:
                if not setup.changes:
                    raise
                self._problems[key] = _failed(error.message)
            if key in self._problems:
                yield Log(f"{setup.title}: {self._problems[key].text}")

    def _turn_s(self, count: int) -> float:
        """Return how long a turn of so many candidates takes at least, by the original model."""
        from dld_tui.backends.onnxruntime.contest import least_turn_s

        loading_s = 0.0 if self._holds(count) else self._first_s
        return max(_SHORTEST_S, least_turn_s(self._pass_s)) + loading_s

    def _may_win(self, key: str) -> bool:
        """Compare the outputs of a candidate once, when it is the fastest or goes on.

        What is slower than another candidate need not be compared.
        """
        if key not in self._judged and key not in self._problems:
            self._judged.add(key)
            setup, contestant = self._setups[key], self._made[key]
            was_open = contestant.is_open
            try:
                with self._limited(_BOTH):
                    with self._doing("loading"):
                        contestant.open()
                    with self._doing("checking"):
                        self._problems |= self._compared(setup, contestant)
            except TimeLimitError:
                self._judged.discard(key)
                self._problems[key] = no_time("before its outputs were compared")
            except DldError as error:
                self._problems[key] = _failed(error.message)
            if not was_open:
                contestant.close()
        return key not in self._problems

    def _compared(self, setup: Setup, contestant: Contestant) -> dict[str, Exclusion]:
        from dld_tui.backends.onnxruntime.contest import accuracy, first_item
        from dld_tui.core.accuracy.statistics import Tolerances

        if not setup.changes:
            return {}
        if not self._reference:
            return {setup.key: _failed("an output has a type that cannot be compared")}
        outputs = contestant.outputs()
        if setup.batch > 1:
            pairs = zip(outputs, self._reference, strict=True)
            outputs = [first_item(mine, single) for mine, single in pairs]
        criteria = setup.criteria if self._strict is None else None
        near = self._strict or Tolerances(setup.criteria.tolerance)
        problem, figure = accuracy(self._reference, outputs, near, criteria)
        self._near[setup.key] = figure
        return {setup.key: _failed(problem)} if problem else {}

    def _holds(self, count: int) -> bool:
        return self._weight_bytes * count <= _HELD_BYTES

    @functools.cached_property
    def _weight_bytes(self) -> int:
        from dld_tui.core.document.summary import summarise

        return summarise(self._document).weight_bytes

    def _round(self, race: Race, share: float) -> Generator[Event, None, dict[str, float]]:
        holds, figures = self._holds(len(race.names)), dict[str, float]()
        renews = race.rounds > 0 and self._settings(self._base).memory == "cpu"
        rounds = max(1, _ROUNDS // 2 - race.rounds)
        turn = self._left(share) / (rounds * len(race.running))
        for name in race.order:
            one = self._made[name]
            cost = self._renewing_s + one.opening_s
            is_cheap = cost <= _RENEWING * self._seconds["measuring"]
            is_cheap &= self._overhead_s + one.opening_s <= _OVERHEAD * self._seconds["measuring"]
            if renews and one.is_open and is_cheap:
                self._renewing_s = cost
                one.close()
            with self._limited(share):
                with self._doing("loading"):
                    one.open()
                with self._doing("measuring"):
                    longest_s = max(_LONGEST_S, one.opening_s / (_OVERHEAD * _LEAST_ROUNDS))
                    figures[name] = one.time(min(longest_s, max(_SHORTEST_S, turn)))
            if not holds:
                one.close()
            yield Progress(race.rounds, _ROUNDS, "rounds", f"Racing: {self._setups[name].title}")
        return figures

    def _confirmed(self, winner: Setup) -> Generator[Event, None, GateRow | None]:
        """Compare the winner with the original model as ``dld gate`` does.

        None where there is no time for the pairs of runs that an interval needs.

        Each pair of runs has a process of its own: sessions of one process share its memory layout
        and its threads, so that the interval would leave out what differs between processes.
        """
        from dld_tui.core.compare.gate import (
            LEAST_RUNS,
            TOLERANCE_PERCENT,
            compared_times,
            judge,
        )

        pairs: list[Pair] = []
        overhead_s = self._pair_s()
        """What a pair takes beside its runs."""
        profile_s = min(_PROFILE_S, _PROFILE_SHARE * self._request.budget)

        def judged() -> GateRow:
            times = compared_times(pairs)
            row = judge("end to end", times.base_ms, times.new_ms, TOLERANCE_PERCENT, times.ratios)
            # One base for all figures: medians of both sides do not make the median of the ratios.
            return replace(row, new_ms=row.base_ms * (1 + row.change_percent / 100))

        def is_undecided() -> bool:
            """Return whether more pairs would help; profiles are of what is faster only."""
            rest_s = profile_s if judged().is_faster else self._pair_took_s
            return len(pairs) < _CONFIRM_PAIRS and self._left() > rest_s

        def progress(_: Event | None = None) -> Progress:
            return Progress(len(pairs), _CONFIRM_PAIRS, "pairs", "Confirming the fastest")

        with temporary_folder("tune") as folder:
            while len(pairs) < LEAST_RUNS or is_undecided():
                least_pairs = max(1, LEAST_RUNS - len(pairs))
                if least_pairs * (self._pair_s() - _PROCESS_S) > self._left():
                    break
                # A short budget has shorter runs, rather than fewer processes.
                most_s = ((self._left() - profile_s) / least_pairs - overhead_s) / 2
                wanted_s = self._run_s(_CONFIRM_PAIRS - len(pairs), overhead_s)
                duration_s = max(_CONFIRM_LEAST_S, min(wanted_s, most_s))
                yield progress()
                begin = time.monotonic()
                new_first = len(pairs) % 2 == 1
                try:
                    running = self._timed_pair(winner, folder, duration_s, new_first=new_first)
                    pair = yield from events_of(running, progress)
                except TimeLimitError:
                    break
                pairs.append(pair)
                pair_s = self._pair_took_s = time.monotonic() - begin
                overhead_s = max(0.0, pair_s - 2 * duration_s)
                self._seconds["measuring"] += pair_s - overhead_s
                self._seconds["loading"] += overhead_s
        if len(pairs) < LEAST_RUNS:
            self._is_whole = False
            took = fmt.duration(LEAST_RUNS * self._pair_s())
            yield Log(f"{winner.title}: not confirmed, which takes about {took}", NoteKind.WARNING)
            return None
        return judged()

    def _run_s(self, pairs: int, overhead_s: float) -> float:
        """Return how long a run lasts for the overhead to be a small share after so many pairs.

        Args:
            pairs: How many are to come.
            overhead_s: What each takes beside its two runs.
        """
        overhead_s = self._overhead_s + pairs * overhead_s
        needed_s = overhead_s / _OVERHEAD - self._seconds["measuring"]
        return max(_CONFIRM_S, needed_s / (2 * pairs))

    def _timed_pair(
        self, winner: Setup, folder: Path, duration_s: float, *, new_first: bool
    ) -> Generator[Event, None, Pair]:
        """Time the original model and the winner in turns in a new process; times are of an item.

        Args:
            winner: The setup that is compared with the original model.
            folder: For the result of the process.
            duration_s: How long to time each of both.
            new_first: Whether the winner has the first turn.
        """
        from dld_tui.activities.separate_process import run_in_process
        from dld_tui.core.compare.gate import per_item
        from dld_tui.core.machine.environment import waited_percent

        timing: dict[str, JSON] = {"duration": duration_s, "layer_passes": 0, "warm_up": 3}
        share_s = self._pair_s() + 2 * duration_s + _SLACK_S
        base, new = (
            to_json(self._profile_request(setup, **timing)) for setup in (self._base, winner)
        )
        request: dict[str, JSON] = {
            **base, "new": new["model"], "new_first": new_first, "share": share_s,
            "waited": waited_percent(),  # the process, a fork, has hardly run when it asks
            "new_settings": {
                name: value for name, value in new.items()
                if name != "model" and value != base[name]
            },
        }  # fmt: skip
        left_s = max(0.0, self._left())
        process = run_in_process("time_pair", request, folder, left_s, self._pair_server)
        with contextlib.closing(process):
            pair: Pair = yield from process
        return per_item(pair, self._base.batch, winner.batch)

    # --- what is written ------------------------------------------------------------------------

    def _finished(self, winner: Setup) -> Iterator[Event]:
        from dld_tui.core.codec import encode
        from dld_tui.core.files.writer import write_text
        from dld_tui.core.tune.gain import Gain, gain_line

        asked = self._request
        path = output_path(asked, "output")
        assert path is not None  # it has a default
        path = path.absolute()
        lost = [*self._proofs]  # where nothing is faster, the last one says so
        named = winner if winner.changes or not lost else self._setups[lost[-1]]
        confirmed = self._proofs.get(named.key)
        is_faster = confirmed is not None and confirmed.is_faster
        chosen = winner
        model, reports = None, list[str]()
        why: list[str] = []
        gain: Gain | str = ""
        share = None
        if confirmed is not None and is_faster:
            if chosen.model != self._base.model:
                copied = path.with_name(f"{path.stem}.onnx")
                self._written += [copied, copied.with_name(f"{copied.name}.data")]
                model = str(self._copy_model(chosen.model, copied))
            used = replace(chosen, model=Path(model or self._base.model))
            targets = [path.with_name(f"{path.stem}.{name}.dldprof") for name in _PROFILES]
            self._written += targets
            try:
                with self._limited(over_s=_OVER * asked.budget):
                    gain = yield from self._profiled_pair([self._base, used], targets, confirmed)
            except TimeLimitError:
                gain, self._is_whole = _NOT_PROFILED, False
            reports = [str(target) for target in targets if target.exists()]
            if isinstance(gain, Gain):
                share = gain.percent_of(confirmed.change_percent)
                why = [gain_line(gain, confirmed.change_percent)]
            else:
                why = [gain]
        code = self._code(replace(chosen, model=Path(model or self._base.model)))
        seconds = {**self._seconds, "all": self._passed_s}
        others = self._watch.facts().get("other_busy_threads")
        remarks = self._feeds.remarks if self._feeds is not None else []
        result = TuneResult(
            report=str(path), source=str(self._base.model), best=chosen.key,
            title=named.title, confirmed=confirmed,
            model=model, why=tuple(why), code=code,
            candidates=candidates(
                self._setups, self._races, self._problems, self._near, chosen.key, self._proofs
            ),
            reports=tuple(reports), seconds=seconds, is_whole=self._is_whole,
            budget=asked.budget,
            tolerance=" ".join(asked.tolerance) or f"{DEFAULT_LIMIT} (default)",
            inputs="; ".join(remarks) or ("random values" if asked.inputs is None else "files"),
            asked=tuple(asked.only),
            explained_percent=share,
            nodes=gain.rows[:_MOST_NODES] if isinstance(gain, Gain) else (),
            settings={"provider": asked.provider, **chosen.session},
            other_busy_threads=others if isinstance(others, float) else None,
        )  # fmt: skip
        if is_faster:
            self._written.append(path.with_name(f"{path.stem}.py"))
            write_text(self._written[-1], code.python)
        write_text(path, json.dumps(encode(result), indent=1) + "\n")
        self._written.clear()
        self._journal.forget()
        yield Finished(result)

    def _code(self, setup: Setup) -> Any:
        from dld_tui.core.params import command_line
        from dld_tui.core.tune.result import Code, cpp_code, python_code

        asked = self._request
        session = {"provider": asked.provider, "device_id": asked.device_id, **setup.session}
        session.pop("batch", None)
        values = to_json(self._profile_request(setup))
        return Code(
            python_code(str(setup.model), session),
            cpp_code(str(setup.model), session),
            command_line(("dld", "profile", "onnxruntime"), Profile, values),
        )

    @staticmethod
    def _copy_model(source: Path, target: Path) -> Path:
        from dld_tui.core.conversion.copies import write_copy
        from dld_tui.core.llm.folder import open_document

        with contextlib.closing(open_document(source)) as document:
            write_copy(document, target)
        return target

    def _profiled_pair(
        self, setups: Sequence[Setup], targets: Sequence[Path], confirmed: GateRow
    ) -> Generator[Event, None, Gain | str]:
        """Profile both, in turns where that can be, a few times in new sessions.

        Sessions differ: kept are the profiles of those that are most like the confirmation, which
        is of many.

        Returns:
            Where the gain is, by the profiles that were kept, or why that is not known.
        """
        on_cpu = all(self._settings(one).memory == "cpu" for one in setups)
        if not on_cpu or not self._holds(2 * len(setups)):
            for setup, target in zip(setups, targets, strict=True):
                yield from self._profiled(setup, target)
            return _gain_of(targets)
        needed_s = 2 * len(setups) * (self._first_s + _LEAST_PROFILED * self._pass_s)
        if self._first_s + self._pass_s > _QUICK_S and needed_s > self._left():
            raise TimeLimitError("there is no time to profile")
        tried: list[tuple[float, Gain | str, Sequence[Path]]] = []
        begin, most_s = time.monotonic(), min(_PROFILE_S, self._left())
        with temporary_folder("tune", targets[0].parent) as home:
            while len(tried) < _PROFILE_PAIRS:
                folder = home / str(len(tried))
                folder.mkdir()
                paths = [folder / target.name for target in targets]
                try:
                    with self._doing("measuring"):
                        yield from self._turned(setups, paths)
                except TimeLimitError:
                    if not tried:
                        raise
                    break
                gain = _gain_of(paths)
                tried.append((_difference(gain, confirmed), gain, paths))
                if tried[-1][0] < _AS_CONFIRMED or time.monotonic() - begin > most_s:
                    break
            _, gain, kept = min(tried, key=lambda one: one[0])
            for path, target in zip(kept, targets, strict=True):
                put_in_place(path, target)
        return gain

    def _turned(self, setups: Sequence[Setup], paths: Sequence[Path]) -> Iterator[Event]:
        """Profile both in turns."""
        from dld_tui.activities.profile_onnxruntime import plan_of
        from dld_tui.backends.onnxruntime.profiling import ProfilingRun, profile_in_turns
        from dld_tui.core.llm.folder import open_document
        from dld_tui.core.machine.environment import environment

        facts = environment(())
        with contextlib.ExitStack() as stack:
            runs = []
            for setup, path in zip(setups, paths, strict=True):
                plan = plan_of(self._profile_request(setup, output=str(path), warm_up=3))
                document = stack.enter_context(contextlib.closing(open_document(setup.model)))
                runs.append(ProfilingRun(plan, document, dict(facts)))
                stack.enter_context(runs[-1].kept_report(stays=False))
            for event in profile_in_turns(runs, _TURNS_S):
                if isinstance(event, Progress):
                    yield replace(event, stage=f"Profiling both: {event.stage}")

    def _profiled(self, setup: Setup, target: Path) -> Iterator[Event]:
        from dld_tui.activities import registry

        profile = registry.load("profile_onnxruntime")
        request = self._profile_request(
            setup, output=str(target), duration=1.0, layer_passes=20, warm_up=3
        )
        with self._doing("measuring"):
            for event in profile.run(request):
                if isinstance(event, Progress):
                    yield replace(event, stage=f"Profiling {setup.title}: {event.stage}")


def _advised(model: Path) -> dict[str, int]:
    """Return the changes that the newest report of a model advises, by id with their places."""
    from dld_tui.core.reading.story import next_steps
    from dld_tui.core.report.report import newest_report

    here = map(str, Path.cwd().glob("*.dldprof"))  # where profiles are written by default
    with contextlib.suppress(DldError, OSError), newest_report(model, here) as report:
        steps = [] if report is None else next_steps(report)
        ids = dict.fromkeys(id for step in steps for id in step.changes)
        return {id: at for at, id in enumerate(ids)}
    return {}


def _operators(document: Document) -> Counter[str]:
    return Counter(node.op_type for scope in document.scopes() for node in scope.nodes)


def _listed(texts: Sequence[str]) -> list[str]:
    """Return what is separated by commas."""
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def _failed(why: str) -> Exclusion:
    return Exclusion(CandidateState.FAILED, visible(why))


def _value_problem(result: object) -> Exclusion | None:
    """Return why the result of a conversion does not count, None where it does."""
    from dld_tui.core.conversion.result import VerifiedResult, value_problem

    if isinstance(result, VerifiedResult) and result.unchanged:
        return NOTHING
    problem = value_problem(result)
    return _failed(problem) if problem else None


def _difference(gain: Gain | str, confirmed: GateRow) -> float:
    """Return how little profiles show what was confirmed; infinite where they do not tell."""
    return math.inf if isinstance(gain, str) else gain.difference(confirmed)


def _gain_of(reports: Sequence[Path]) -> Gain | str:
    """Return where the gain is, or why profiles do not tell."""
    from dld_tui.core.report.report import open_report
    from dld_tui.core.tune.gain import NOT_MEASURED, gain_of

    try:
        with open_report(reports[0]) as before, open_report(reports[1]) as after:
            gain = gain_of(before, after)
    except DldError as error:
        return f"The profiles cannot be compared: {visible(error.message)}"
    return gain if gain is not None and gain.before_ms > 0 else NOT_MEASURED
