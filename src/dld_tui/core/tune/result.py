"""What tuning found: the fastest set-up, how sure that is, why, and how to use it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.codec import decode, encode
from dld_tui.core.compare.gate import GateRow
from dld_tui.core.errors import InputError
from dld_tui.core.report.measured_facts import BUSY_THREADS
from dld_tui.core.settings.paths import near
from dld_tui.core.tables.table import COUNT, MS, Column, Table
from dld_tui.core.text import visible
from dld_tui.core.tune.changes import Setup, reasons_of
from dld_tui.core.tune.gain import GainRow
from dld_tui.core.tune.race import Race
from dld_tui.core.types import JSON

TIME_UP = "the time was up"
NOTHING = "there is nothing to change"
_SAME = "the same"


@dataclass(frozen=True)
class Candidate:
    """One set-up that was tried."""

    key: str
    """Ids of what was changed, with ``+`` between them."""
    title: str
    """The same in words."""
    ms: float | None = None
    """Median of its rounds, of one item; None where it did not run."""
    ratio: float | None = None
    """How many times as long as the model as it is it takes, in the same rounds."""
    rounds: int = 0
    state: str = ""
    """``in the race`` to its end, ``slower`` and stopped, ``best``, ``failed``, ``not tried``, or
    ``no change`` where it has nothing to do."""
    problem: str = ""
    """Why it does not count. Fit for a terminal."""
    accuracy: str = ""
    """How near its outputs are to those of the model as it is."""


def candidates(
    setups: Mapping[str, Setup],
    races: Sequence[Race],
    problems: Mapping[str, str],
    near: Mapping[str, str],
    best: str,
) -> tuple[Candidate, ...]:
    """Return all set-ups; ratios of later races are carried back to the model as it is.

    Args:
        setups: By key, the model as it is first.
        races: In order; the reference of each but the first ran in one before.
        problems: Why set-ups do not count, by key.
        near: How near outputs are, by key.
        best: The key of the winner.
    """
    ratios: dict[str, float] = {}
    for race in races:
        reference = race.names[0]
        to_base = ratios.setdefault(reference, 1.0)
        leader = race.best
        leading = race.ratio(leader, reference) or 1.0
        for name in race.names[1:]:
            # Who is out is as much slower than the leader as in the rounds that both ran: the
            # reference may have been slower in those than it was in the later ones.
            out = name not in race.running
            ratio = race.ratio(name, leader if out else reference)
            if ratio is not None:
                ratios[name] = ratio * (leading if out else 1.0) * to_base
    found = []
    for key, setup in setups.items():
        own = [race for race in races if race.figures.get(key)]
        figures = own[-1].figures[key] if own else []
        state = "in the race" if own and key in own[-1].running else "slower" if own else ""
        if key in problems:
            untried = {TIME_UP: "not tried", NOTHING: "no change"}
            state = next((text for why, text in untried.items() if problems[key].startswith(why)),
                         "failed")  # fmt: skip
        elif key == best:
            state = "best"
        ms = statistics.median(figures) if figures else None
        rounds = sum(len(race.figures[key]) for race in own)
        problem, figure = problems.get(key, ""), near.get(key, "")
        found.append(
            Candidate(key, setup.title, ms, ratios.get(key), rounds, state, problem, figure)
        )
    return tuple(found)


@dataclass(frozen=True)
class Code:
    """The settings as code."""

    python: str
    cpp: str
    command: str


@dataclass(frozen=True)
class TuneResult:
    """The result of the activity ``tune``."""

    report: str
    """The file that holds this."""
    source: str
    """The model that was tuned: foreign text, as all paths."""
    best: str
    """Key of the fastest candidate; ``as it is`` where nothing is faster for sure."""
    title: str
    confirmed: GateRow | None
    """The model as it is against the best one, in new sessions that took turns; None where
    nothing was faster."""
    model: str | None
    """The model to run; None where that as it is is best."""
    candidates: tuple[Candidate, ...]
    why: tuple[str, ...]
    """Where the gain comes from, by node. Fit for a terminal."""
    code: Code
    reports: tuple[str, ...]
    """Profiles of the model as it is and of the best one."""
    tolerance: str
    inputs: str
    """What the model was fed. Fit for a terminal."""
    seconds: Mapping[str, float]
    """Where the time of tuning went: ``measuring``, ``waiting`` until threads of another session
    sleep, ``converting``, ``loading``, ``checking``, ``all``."""
    is_whole: bool
    """False where the time was up before all was tried."""
    asked: tuple[str, ...] = ()
    """The changes that were asked for by name; empty for all that there are."""
    explained_percent: float | None = None
    """How much of the gain is that of named nodes, while they ran and before they could start, and
    of handing over inputs and outputs."""
    nodes: tuple[GainRow, ...] = ()
    """Where it is, those that gained most first."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the best one, in the words of ``dld profile onnxruntime``."""
    other_busy_threads: float | None = None
    """Hardware threads that other programs kept busy meanwhile; None where that is not known."""

    @property
    def is_faster(self) -> bool:
        """Whether something is faster for sure."""
        return self.confirmed is not None and self.confirmed.verdict == "faster"

    @property
    def winner(self) -> Candidate | None:
        """The best candidate."""
        return next((one for one in self.candidates if one.key == self.best), None)

    @property
    def factor(self) -> float:
        """How many times as fast the best one is at least: the cautious end of the interval.

        The best of many set-ups is in part the luckiest, so the middle would promise too much.
        """
        row = self.confirmed
        return 1.0 if row is None else 100 / (100 + row.high_percent)

    @property
    def verdict(self) -> str:
        """What came out, in a sentence."""
        tried = sum(1 for one in self.candidates if one.rounds) - 1
        count = fmt.plural(max(0, tried), "set-up")
        row = self.confirmed
        if row is None or not self.is_faster:
            said = f"{self.title} taken back: " if self.asked and row is not None else ""
            return f"{said}nothing is faster for sure; {count} tried"
        ms = fmt.milliseconds
        return (
            f"at least {self.factor:.2f} times as fast with {self.title}: {ms(row.base_ms)} ms →"
            f" {ms(row.new_ms)} ms, {row.text}; {count} tried"
        )


COLUMNS: tuple[Column[Candidate], ...] = (
    Column("key", "set-up", lambda one: one.title, least=29, keep="middle"),
    Column("ms", "ms", lambda one: one.ms, MS, 9),
    Column(
        "speed", "speed", lambda one: None if one.ratio is None else f"{1 / one.ratio:.2f} x",
        width=7, align="right",
    ),
    Column("state", "", lambda one: one.state, width=11),
    Column("accuracy", "accuracy", lambda one: one.problem or one.accuracy, least=14),
    Column("rounds", "rounds", lambda one: one.rounds, COUNT, 6, priority=1),
)  # fmt: skip


def tune_table(result: TuneResult) -> Table[Candidate]:
    """Return what was tried: the best one, the others by speed, and what failed.

    Rounds of different races are as fast as the machine was at the time, so milliseconds are those
    of the model as it is, times how many times as long a candidate takes.
    """
    base = next((one.ms for one in result.candidates if one.ratio == 1.0), None)
    if result.confirmed is not None:
        base = result.confirmed.base_ms
    rows = sorted(
        (one if None in (base, one.ratio) else replace(one, ms=(base or 0.0) * (one.ratio or 0.0))
         for one in result.candidates),
        key=lambda one: (bool(one.problem), one.key != result.best, one.ratio or 9e9, one.key),
    )  # fmt: skip
    return Table(COLUMNS, rows, name="tune", title="What was tried")


def _nearest(result: TuneResult) -> Candidate | None:
    """Return the fastest one beside the model as it is; None where none seemed faster."""
    others = [one for one in result.candidates if one.ratio and not one.problem]
    nearest = min(others, key=lambda one: one.ratio or 1.0, default=None)
    return None if nearest is None or (nearest.ratio or 1.0) >= 1.0 else nearest


def result_parts(result: TuneResult) -> list[tuple[str, str]]:
    """Return what came out, why, and where it is, each with what it is. Fit for a terminal."""
    parts = [("", result.verdict)]
    if result.is_faster:
        reasons = "; ".join(reasons_of(result.best.split("+")))
        because = [f"{reasons[0].upper()}{reasons[1:]}."] if reasons else []
        parts.append(("Why", " ".join([*because, *result.why])))
        if result.winner is not None and (near_by := result.winner.accuracy):
            told = "the same as" if near_by == _SAME else f"near enough, {visible(near_by)} against"
            parts.append(("Results", f"{told} those of the model as it is"))
        if result.model is not None:
            parts.append(("Model", visible(near(result.model))))
        else:
            parts.append(
                ("Model", "the file stays as it is: the gain is in settings of the session")
            )
        parts.append(("Run it", visible(result.code.command)))
    elif result.confirmed is not None:
        parts.append(("Nearest", f"{result.title}, {result.confirmed.text}, which may be chance"))
    elif (nearest := _nearest(result)) is not None:
        speed = f"{1 / (nearest.ratio or 1.0):.2f} times as fast in its race"
        parts.append(("Nearest", f"{nearest.title}, {speed}, which may be chance"))
    if (result.other_busy_threads or 0.0) > BUSY_THREADS:
        busy = (
            f"other programs kept {result.other_busy_threads:.1f} hardware threads busy meanwhile:"
            " an idle machine may gain otherwise, by settings of threads above all"
        )
        parts.append(("But", busy))
    if not result.is_whole:
        parts.append(
            ("But", "the time was up before all was tried: a longer --budget may find more")
        )
    parts.append(("Fed with", f"{result.inputs}; near enough: {visible(result.tolerance)}"))
    waiting = {"waiting": "waiting until threads sleep"}
    seconds = [
        f"{waiting.get(name, name)} {took:.0f} s"
        for name, took in result.seconds.items()
        if took >= 0.5
    ]
    parts.append(("Time", ", ".join(seconds)))
    return [*parts, ("Result", visible(near(result.report)))]


def result_lines(result: TuneResult) -> list[str]:
    """Return the same as lines."""
    return [f"{name}: {text}" if name else text for name, text in result_parts(result)]


def tune_document(result: TuneResult) -> dict[str, JSON]:
    """Return what ``dld tune --json`` prints: the result, with the best one in full."""
    data = encode(result)
    assert isinstance(data, dict)
    row = result.confirmed
    best = result.winner
    found: dict[str, JSON] = {
        "key": result.best,
        "title": result.title,
        "settings": dict(result.settings),
        "latency_ms": None if row is None else row.new_ms if result.is_faster else row.base_ms,
        "speedup": result.factor if result.is_faster else 1.0,
        "accuracy": "" if best is None else best.accuracy,
    }
    return {**data, "best": found, "trials": data["candidates"]}


def load_result(path: Path) -> TuneResult:
    """Read the file of a result; what is not where it was is looked for beside it.

    Raises:
        InputError: It cannot be read, or is something else.
    """
    try:
        found: TuneResult = decode(TuneResult, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"is no result of tuning: {error}", where=str(path)) from error
    return replace(
        found, report=str(path.absolute()), source=_found(found.source, path),
        model=None if found.model is None else _found(found.model, path),
        reports=tuple(_found(report, path) for report in found.reports),
    )  # fmt: skip


def _found(name: str, result: Path) -> str:
    beside = result.absolute().with_name(Path(name).name)
    return str(beside) if beside.is_file() and not Path(name).is_file() else name


_PYTHON_LEVELS = {
    "disabled": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED", "layout": "ORT_ENABLE_LAYOUT", "all": "ORT_ENABLE_ALL",
}  # fmt: skip


def _pairs(session: Mapping[str, JSON], name: str) -> list[tuple[str, str]]:
    listed = session.get(name, [])
    texts = [str(one) for one in listed] if isinstance(listed, list) else []
    found = (text.partition("=") for text in texts)
    return [(key, value) for key, _, value in found]


def _providers(session: Mapping[str, JSON]) -> list[str]:
    names = str(session.get("provider", "CPU")).split(",")
    known = [name.strip() for name in names if name.strip()] or ["CPU"]
    full = [f"{name}ExecutionProvider" for name in known]
    return [name.replace("TensorRTExec", "TensorrtExec") for name in full]


def python_code(model: str, session: Mapping[str, JSON]) -> str:
    """Return a script that makes the session with ONNX Runtime's Python API."""
    lines = ["import onnxruntime as ort", "", "options = ort.SessionOptions()"]
    if threads := session.get("threads"):
        lines.append(f"options.intra_op_num_threads = {threads}")
    if inter := session.get("inter_threads"):
        lines.append(f"options.inter_op_num_threads = {inter}")
        lines.append("options.execution_mode = ort.ExecutionMode.ORT_PARALLEL")
    if level := session.get("optimization_level"):
        name = f"ort.GraphOptimizationLevel.{_PYTHON_LEVELS[str(level)]}"
        lines.append(f"options.graph_optimization_level = {name}")
    for key, value in _pairs(session, "dim"):
        lines.append(f"options.add_free_dimension_override_by_name({_text(key)}, {int(value)})")
    for key, value in _pairs(session, "session_config"):
        lines.append(f"options.add_session_config_entry({_text(key)}, {_text(value)})")
    first, *others = _providers(session)
    own = ", ".join(f"{_text(k)}: {_text(v)}" for k, v in _pairs(session, "provider_option"))
    listed = [f"({_text(first)}, {{{own}}})" if own else _text(first), *map(_text, others)]
    lines.append(
        f"session = ort.InferenceSession({_text(model)}, options, providers=[{', '.join(listed)}])"
    )
    if session.get("io_binding"):
        lines.append("# Keep inputs and outputs on the device: session.io_binding()")
    return "\n".join(lines) + "\n"


def cpp_code(model: str, session: Mapping[str, JSON]) -> str:
    """Return lines that make the session with ONNX Runtime's C++ API."""
    lines = [
        "#include <onnxruntime_cxx_api.h>",
        "",
        "Ort::Env env;",
        "Ort::SessionOptions options;",
    ]
    if threads := session.get("threads"):
        lines.append(f"options.SetIntraOpNumThreads({threads});")
    if inter := session.get("inter_threads"):
        lines.append(f"options.SetInterOpNumThreads({inter});")
        lines.append("options.SetExecutionMode(ORT_PARALLEL);")
    if level := session.get("optimization_level"):
        lines.append(f"options.SetGraphOptimizationLevel({_PYTHON_LEVELS[str(level)]});")
    for key, value in _pairs(session, "dim"):
        lines.append(
            "Ort::ThrowOnError(Ort::GetApi().AddFreeDimensionOverrideByName("
            f"options, {_text(key)}, {int(value)}));"
        )
    for key, value in _pairs(session, "session_config"):
        lines.append(f"options.AddConfigEntry({_text(key)}, {_text(value)});")
    for at, name in enumerate(_providers(session)):
        if kind := _CPP_KINDS.get(name.removesuffix("ExecutionProvider")):
            lines += _cpp_provider(kind, _pairs(session, "provider_option") if at == 0 else [])
    lines.append(f"Ort::Session session(env, {_text(model)}, options);")
    return "\n".join(lines) + "\n"


_CPP_KINDS = {"CUDA": "CUDA", "Tensorrt": "TensorRT"}


def _cpp_provider(kind: str, options: Sequence[tuple[str, str]]) -> list[str]:
    made = kind.lower()
    lines = [
        f"Ort{kind}ProviderOptionsV2* {made} = nullptr;",
        f"Ort::ThrowOnError(Ort::GetApi().Create{kind}ProviderOptions(&{made}));",
    ]
    if options:
        keys, values = (", ".join(_text(pair[side]) for pair in options) for side in (0, 1))
        lines += [
            f"const char* {made}_keys[] = {{{keys}}};",
            f"const char* {made}_values[] = {{{values}}};",
            f"Ort::ThrowOnError(Ort::GetApi().Update{kind}ProviderOptions(",
            f"    {made}, {made}_keys, {made}_values, {len(options)}));",
        ]
    return [*lines, f"options.AppendExecutionProvider_{kind}_V2(*{made});"]


def _text(value: str) -> str:
    """Return a text as a literal of Python and C++ both."""
    return json.dumps(visible(value), ensure_ascii=False)
