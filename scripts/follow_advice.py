"""Follow the advice of reports to its end, and look whether tunings use their budgets.

Usage: ``python -m scripts.follow_advice MODEL... [--provider CPU] [--budget S] [--folder FOLDER]``
or: ``python -m scripts.follow_advice MODEL... --budgets 60,120,300``

Profiles each model; each advice that changes something is then followed by ``dld tune --only``, and
what that measures has to be within what the report said. With ``--budgets`` each model is tuned
for so long instead: at least nine tenths of it are used, unless no candidate is left. Prints one
row each, and writes them to ``NAME.rows.json`` in the folder.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dld_tui.activities import registry
from dld_tui.core.errors import DldError
from dld_tui.core.events import Finished
from dld_tui.core.params import from_json
from dld_tui.core.reading.story import advice_json
from dld_tui.core.report.report import Report
from dld_tui.core.report.roofline import is_above_roof, roof_percent
from dld_tui.core.tune.result import CandidateState, TuneResult

BUDGET_S = 40.0
"""Of each tuning: processes on a GPU start in about three seconds, and a confirmation has six."""
_NOISE_PERCENT = 3.0
"""How far a measured gain may be outside of what was said."""
_USED, _OVER = 0.9, 1.1
"""Shares of the budget that a tuning takes at least where candidates are left, and at most."""
Row = dict[str, Any]


def fresh(output: Path) -> None:
    """Remove what an earlier run has left, with the files beside it, but for models."""
    for path in output.parent.glob(f"{output.stem}.*"):
        if path.name != f"{output.stem}.onnx" or output.suffix == ".json":
            path.unlink()


def result_of(activity: str, settings: dict[str, Any]) -> Any:
    """Run an activity and return its result."""
    found = registry.load(activity)
    for event in found.run(from_json(found.request, settings)):
        if isinstance(event, Finished):
            return event.result
    raise RuntimeError(f"{activity} ended without a result")


def advice_of(
    model: Path, folder: Path, provider: str = "CUDA", iterations: int = 200
) -> list[Row]:
    """Profile a model; return the advice that changes something, and what it said."""
    report = folder / f"{model.stem}.dldprof"
    fresh(report)
    result_of("profile_onnxruntime", {
        "model": str(model), "output": str(report), "provider": provider,
        "iterations": iterations, "layer_passes": 30,
    })  # fmt: skip
    with Report.open(str(report)) as opened:
        said: list[Any] = advice_json(opened)
    return [one for one in said if one["changes"]]


def roof_row(report: Path) -> Row:
    """Look whether a layer of a report is above its roof, and how near the others come."""
    with Report.open(str(report)) as opened:
        above = [layer for layer in opened.layers if is_above_roof(layer)]
        known = [percent for layer in opened.layers if (percent := roof_percent(layer)) is not None]
    names = ", ".join(layer.name[:40] for layer in above[:3])
    return {
        "what": f"{report.stem}: roofs",
        "said": f"{len(above)} above, {len(known)} up to {max(known, default=0):.0f} % {names}",
        "good": not above,
    }  # fmt: skip


def bound_row(
    model: Path, folder: Path, advice: Row, provider: str = "CUDA", budget: float = BUDGET_S
) -> Row:
    """Follow an advice to its end."""
    changes = ",".join(advice["changes"])
    output = folder / f"{model.stem}.{changes}.tune.json"
    fresh(output)
    result = result_of("tune", {
        "model": str(model), "output": str(output), "only": [changes], "provider": provider,
        "budget": budget, "again": True,
    })  # fmt: skip
    tried = [one for one in result.candidates if one.key != "as it is" and one.ratio]
    # A part of what was advised says nothing about the whole.
    wanted = {*advice["changes"]}
    together = [one for one in tried if {*one.key.split("+")} == wanted]
    if any({*one.key.split("+")} == wanted for one in result.candidates):
        tried = together
    best = min(tried, key=lambda one: one.ratio or 1.0, default=None)
    bounds = advice["gain_percent"]
    row: Row = {"what": f"{model.stem}: {changes}", "advice": advice["what"], "bounds": bounds}
    row["said"] = f"{bounds[0]:.1f} to {bounds[1]:.1f} % less time" if bounds else "no bound"
    if best is None:
        problems = [one.problem for one in result.candidates if one.problem]
        return row | {"own": f"not measured: {'; '.join(problems)[:80]}", "good": True}
    gain = 100 * (1 - (best.ratio or 1.0))
    ends = [gain, gain]
    if best.interval is not None:
        ends = [100 * (1 - 1 / end) for end in best.interval]
    row["own"] = f"{gain:.1f} % ({ends[0]:.1f} to {ends[1]:.1f}), {best.state.value}"
    if best.problem:
        row["own"] += f": {best.problem[:80]}"
    row["figures"] = {"gain_percent": gain, "interval": ends, "confirmed": bool(best.interval)}
    if bounds:
        low, high = bounds[0] - _NOISE_PERCENT, bounds[1] + _NOISE_PERCENT
        return row | {"good": ends[1] >= low and ends[0] <= high}
    return row | {"good": True}


def budget_row(model: Path, folder: Path, budget: float, provider: str) -> Row:
    """Tune a model, and look whether that took its budget, or left no candidate."""
    output = folder / f"{model.stem}.{budget:g}.tune.json"
    fresh(output)
    begin = time.monotonic()
    result: TuneResult = result_of("tune", {
        "model": str(model), "output": str(output), "provider": provider, "budget": budget,
        "again": True,
    })  # fmt: skip
    took_s = time.monotonic() - begin
    left = [one.key for one in result.candidates if one.state is CandidateState.NOT_TRIED]
    spent = " ".join(f"{name} {seconds:.0f}" for name, seconds in result.seconds.items())
    return {
        "what": f"{model.stem}: {budget:g} s",
        "own": f"{took_s:.1f} s ({100 * took_s / budget:.0f} %): {result.verdict}",
        "said": f"{'whole' if result.is_whole else 'not whole'}, {len(left)} left"
        f" {' '.join(left)[:60]} ({spent})",
        "good": took_s <= _OVER * budget
        and (took_s >= _USED * budget or (result.is_whole and not left)),
    }  # fmt: skip


def rows_of(model: Path, folder: Path, options: argparse.Namespace) -> Iterator[Row]:
    """Yield what was asked for of a model."""
    if options.budgets:
        for budget in map(float, options.budgets.split(",")):
            yield budget_row(model, folder, budget, options.provider)
        return
    advice = advice_of(model, folder, options.provider, options.iterations)
    yield roof_row(folder / f"{model.stem}.dldprof")
    if not advice:
        yield {"what": model.stem, "said": "no advice", "good": True}
    for one in advice:
        yield bound_row(model, folder, one, options.provider, options.budget)


def text_of(row: Row) -> str:
    """Return a row as a line of text."""
    cells = [row["what"], row.get("own", ""), "|", row.get("said", ""), row.get("ratios", "")]
    return " ".join(["ok  " if row["good"] else "FAIL", *filter(None, cells)])


def main() -> int:
    """Run what the arguments say. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    parser.add_argument("--provider", default="CPU")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for each advice")
    parser.add_argument("--budgets", default="", help="tune for these seconds instead")
    parser.add_argument("--iterations", type=int, default=100, help="of each profile")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        for model in map(Path.absolute, options.models):
            rows = []
            try:
                for row in rows_of(model, folder, options):
                    rows.append(row)
                    print(text_of(row), flush=True)
            except DldError as error:
                rows.append({"what": model.stem, "own": error.message[:200], "good": False})
                print(text_of(rows[-1]), flush=True)
            (folder / f"{model.stem}.rows.json").write_text(json.dumps(rows, indent=1))
            bad += sum(not row["good"] for row in rows)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
