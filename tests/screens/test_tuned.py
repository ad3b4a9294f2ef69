"""The page of what tuning found: why it is faster, and how to take it."""

from __future__ import annotations

import importlib
import json
import math
import pkgutil
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui import screens
from dld_tui.core import fmt
from dld_tui.core.codec import encode
from dld_tui.core.compare.gate import GateRow, Verdict
from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.reading.preview import preview
from dld_tui.core.tables.table import Table
from dld_tui.core.text import fit, visible
from dld_tui.core.tune.changes import CHANGES, Setup, TuneChange, reasons_of, thread_changes
from dld_tui.core.tune.race import Race
from dld_tui.core.tune.result import (
    Candidate,
    Code,
    TuneResult,
    candidates,
    cpp_code,
    load_result,
    python_code,
    result_lines,
    result_parts,
    tune_bars,
    tune_table,
)
from dld_tui.screens.base_pages import ListPage
from dld_tui.screens.results.accuracy import AccuracyScreen, PrecisionScreen, TacticsScreen
from dld_tui.screens.results.table import TableResult
from dld_tui.screens.results.tuning import RUNS, TuneScreen
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog
from dld_tui.widgets.lists.table_view import ListTable, TableView
from dld_tui.widgets.results.passes import PassTimeline
from dld_tui.widgets.timeline.lanes import timeline_of
from tests.support.report_files import make_report
from tests.support.tuned_results import CANDIDATES, found
from tests.support.workspace import NARROW, WIDE, opened


def test_two_sentences_say_why_and_a_third_that_it_is_right(tmp_path: Path) -> None:
    parts = dict(result_parts(found(tmp_path)))
    assert parts["Why"] == (
        "Weights take a quarter of the bytes, and int8 products need fewer instructions. "
        "92 % of it is at 4 nodes, first conv (-4.600 ms)."
    )
    assert parts["Results"] == ("SNR 36 dB against the outputs of the original model")
    assert parts["Model"].endswith("m.tune.onnx")
    settings = dict(result_parts(found(tmp_path, model=False)))
    assert settings["Model"] == "the original file: only session options change"


def tuned(*drawn: tuple[str, float, GateRow | None], best: str = "") -> Table[Candidate]:
    """Return the table of set-ups with their ratio in one race, and their confirmations."""
    keys = ["as it is", *(key for key, _, _ in drawn)]
    race = Race(keys)
    race.add_round({"as it is": 10.0} | {key: 10 * ratio for key, ratio, _ in drawn})
    setups = {key: Setup(Path("m.onnx"), (TuneChange(key, key),)) for key in keys}
    rows = {key: row for key, _, row in drawn if row is not None}
    found = candidates(setups, [race], {}, {}, best or keys[0], rows)
    result = TuneResult(
        report="", source="", best=best or keys[0], title=best, confirmed=rows.get(best),
        model=None, candidates=found, why=(), code=Code("", "", ""), reports=(), tolerance="",
        inputs="", seconds={}, is_whole=True,
    )  # fmt: skip
    return tune_table(result)


def proof(speedup: float, low: float, high: float) -> GateRow:
    """Return a confirmation of a speedup with its interval."""
    change, least, most = (100 / one - 100 for one in (speedup, high, low))
    verdict = Verdict.FASTER if most < -0.5 else Verdict.NO_DIFFERENCE
    return GateRow("end to end", 8.0, 8.0 / speedup, change, least, most, verdict)


def test_what_is_claimed_has_one_base_and_no_race_stands_above_it() -> None:
    """A race put five others at 2.2x above a winner that was confirmed at 1.13x."""
    table = tuned(
        ("seemed fastest", 1 / 2.2, None),
        ("lost", 1 / 2.4, proof(1.3, 0.9, 2.0)),
        ("faster, too", 1 / 1.5, proof(1.05, 1.02, 1.08)),
        ("winner", 1 / 2.0, proof(1.13, 1.12, 1.14)),
        ("slow", 2.0, None),
        best="winner",
    )
    shown = [[column.shown_text(row) for column in table.columns[:6]] for row in table.rows]
    assert shown == [
        ["winner", "7.080", "1.13×", "1.12 to 1.14", "best", "2.00×"],
        ["faster, too", "7.619", "1.05×", "1.02 to 1.08", "faster", "1.50×"],
        ["as it is", "8.000", "1.00×", "–", "compared", "1.00×"],
        ["lost", "–", "–", "0.90 to 2.00", "unconfirmed", "2.40×"],
        ["seemed fastest", "–", "–", "–", "unconfirmed", "2.20×"],
        ["slow", "–", "–", "–", "compared", "0.50×"],
    ]


def test_a_vague_speedup_is_its_least_in_every_place() -> None:
    table = tuned(("winner", 0.5, proof(1.28, 1.06, 8.38)), best="winner")
    row = table.rows[0]
    assert [table.column(key).shown_text(row) for key in ("ms", "speed")] == ["–", "at least 1.06×"]


def test_the_ratios_of_races_in_older_files_are_no_claims(tmp_path: Path) -> None:
    path = Path(found(tmp_path).report)
    data = json.loads(path.read_text())
    for one in data["candidates"]:
        del one["first_ratio"]
    data["candidates"][2] |= {"ms": 7.5, "ratio": 0.625}
    path.write_text(json.dumps(data))
    first, best, other, _ = load_result(path).candidates
    assert (first.claim, best.claim, other.claim) == ("1.00×", "2.00×", None)
    assert (other.ms, other.first_ratio) == (None, 0.625)


def test_set_ups_of_the_same_beginning_are_told_apart_at_80_columns(tmp_path: Path) -> None:
    begin = "dynamic int8"
    ends = ("1 thread", "2 threads", "work in small blocks", "denormal numbers are zero")
    many = tuple(
        Candidate(f"int8-dynamic+{at}", f"{begin}, {end}", first_ratio=0.5, rounds=12)
        for at, end in enumerate(ends)
    )
    view = TableView(tune_bars(replace(found(tmp_path), candidates=(CANDIDATES[0], *many))))
    sizes = dict(view.layout_columns(NARROW[0] - 5))
    [key] = [column for column in sizes if column.key == "key"]
    shown = {fit(one.title, sizes[key], keep=key.keep) for one in many}
    assert len(shown) == len(many)
    assert [*sizes] == [view.table.column(name) for name in ("key", "speed", "state")]
    assert sizes[key] >= max(len(change.title) for change in CHANGES if change.id != "weights-int8")


def test_every_change_says_why_it_can_be_faster() -> None:
    known = [*CHANGES, *thread_changes(8, 4)]
    assert [change.id for change in known if not reasons_of([change.id])] == []
    assert len(reasons_of(["threads-1", "threads-8", "batch-4", "fixed-shapes"])) == 3
    assert reasons_of(["of another version"]) == []


def test_a_result_is_a_file_that_opens_and_may_be_moved(tmp_path: Path) -> None:
    before = tmp_path / "before"
    before.mkdir()
    found(before)
    after = before.rename(tmp_path / "after")
    assert recognise(after / "m.tune.json") is FileKind.TUNING
    result = load_result(after / "m.tune.json")
    assert result.model == str(after / "m.tune.onnx")
    lines = dict(preview(str(after / "m.tune.json"), "TUNING", lambda: False).lines)
    assert lines["tuned"].startswith("speedup 2.00× (1.96 to 2.04) with dynamic int8")


def _set(data: Any, *path: Any) -> None:
    *parents, name, value = path
    for parent in parents:
        data = data[parent]
    data[name] = value


def test_the_code_of_a_result_that_was_moved_names_the_model_where_it_is(tmp_path: Path) -> None:
    before, after = tmp_path / 'be "fore"', tmp_path / "af ter"
    before.mkdir()
    result = found(before)
    model = result.model or ""
    code = Code(
        python_code(model, {}), cpp_code(model, {}), f"dld profile {shlex.quote(model)} --threads 1"
    )
    Path(result.report).write_text(json.dumps(encode(replace(result, code=code))))
    assert load_result(Path(result.report)).code == code
    before.rename(after)
    moved = str(after / "m.tune.onnx")
    assert load_result(after / "m.tune.json").code == Code(
        python_code(moved, {}), cpp_code(moved, {}), f"dld profile {shlex.quote(moved)} --threads 1"
    )


@pytest.mark.parametrize(
    "change",
    [
        ("confirmed", "high_percent", -100.0), ("confirmed", "low_percent", -math.inf),
        ("confirmed", "base_ms", -1.0), ("confirmed", "new_ms", math.nan),
        ("candidates", 0, "ratio", 0.0), ("candidates", 0, "ratio", -1.0),
        ("candidates", 0, "ms", 1e300), ("candidates", 0, "ms", 10**400),
        ("seconds", {"measuring": 1e308}), ("seconds", None), ("candidates", 0, "ratio", "x"),
        ("code", {}),
    ],
    ids=str,
)  # fmt: skip
def test_a_result_with_absurd_figures_is_refused(change: tuple[Any, ...], tmp_path: Path) -> None:
    path = Path(found(tmp_path).report)
    data = json.loads(path.read_text())
    _set(data, *change)
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="not a result of dld tune") as caught:
        load_result(path)
    assert caught.value.where == str(path)


def test_what_a_result_file_holds_is_safe_text(tmp_path: Path) -> None:
    path = Path(found(tmp_path).report)
    data = json.loads(path.read_text())
    wild = "[red]\x1b]0;t\x07\x1b[2J"
    for name in ("title", "source", "model", "tolerance", "inputs"):
        data[name] = wild
    data["why"], data["seconds"] = [wild], {wild: 5.0}
    data["code"] = {"python": wild, "cpp": wild, "command": wild}
    path.write_text(json.dumps(data))
    for line in result_lines(load_result(path)):
        assert visible(line) == line


async def test_enter_copies_settings_where_there_is_no_new_model(tmp_path: Path) -> None:
    result = found(tmp_path, model=False)
    async with opened(Path(result.source), NARROW) as session:
        session.app.open_path(result.report)
        page = await session.front(TuneScreen)
        await session.until(lambda: page.row is not None)
        await session.press("enter")
        await session.front(ChoiceDialog)
        await session.press("p")
        assert session.app.clipboard == "python"


@pytest.mark.parametrize(("size", "key"), [(WIDE, ""), (NARROW, "2")])
async def test_the_passes_before_and_after_have_one_axis(
    tmp_path: Path, size: tuple[int, int], key: str
) -> None:
    paths = [make_report(tmp_path / f"{run}.dldprof", 10 * (at + 1)) for at, run in enumerate(RUNS)]
    page = TuneScreen(replace(found(tmp_path), reports=tuple(map(str, paths))))
    async with opened(tmp_path / "model.onnx", size) as session:
        session.app.add_page(page)
        await session.until(lambda: page.query("#after") and len(runs_of(page)) == len(RUNS))
        await session.press(*key)
        await session.until(lambda: page.query_one("#passes").display)
        assert page.query_one("#candidates").display is (size == WIDE)
        before, after = runs_of(page)
        assert before.timeline.total_us == after.timeline.total_us
        for run in (before, after):
            assert run.report is not None
            assert run.shown_pass is not None
            length = timeline_of(run.report, run.shown_pass).total_us / 1000
            assert f"{fmt.milliseconds(length)} ms" in str(run.border_title)
        session.app.close_page(page)
        await session.until(lambda: not page.is_attached)
        for report in (before.report, after.report):
            assert report is not None
            with pytest.raises(CorruptFileError, match="closed"):
                report.pass_events(0)


def runs_of(page: TuneScreen) -> list[PassTimeline]:
    """Return the timelines whose report was read."""
    return [run for run in page.query(PassTimeline) if run.report is not None]


RESULTS: tuple[type[Any], ...] = (
    AccuracyScreen,
    PrecisionScreen,
    TacticsScreen,
    TableResult,
    TuneScreen,
)
"""Pages of results that are lists."""


def test_no_list_takes_a_key_from_its_page() -> None:
    """A key of a page that its list has too would do what the list does, and be told otherwise."""
    for module in pkgutil.walk_packages(screens.__path__, "dld_tui.screens."):
        importlib.import_module(module.name)
    taken = {
        f"{page.__name__} {key}"
        for page in (*below(ListPage), *RESULTS)
        for key in keys_of(page) & keys_of(ListTable)
    }
    # Enter activates the row under the cursor, which these pages answer as their command does.
    assert {one for one in taken if not one.endswith(" enter")} == set()


def below(owner: type[Any]) -> list[type[Any]]:
    return [one for direct in owner.__subclasses__() for one in (direct, *below(direct))]


def keys_of(owner: type) -> set[str]:
    found = [one for base in owner.__mro__ for one in base.__dict__.get("BINDINGS", ())]
    return {key for one in found for key in one.key.split(",")}
