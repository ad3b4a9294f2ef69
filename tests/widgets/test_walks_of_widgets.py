"""What forms, lists and tables show and tell after each key and click."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import pytest
import textual
from textual.widget import Widget

from dld_tui.core.params import OneOf, param, when
from dld_tui.core.tables.table import BAR, MS, Column, Table
from dld_tui.widgets.forms.command_rows import CommandRows
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, LogSource, WrappedRows, matches, wrap
from dld_tui.widgets.lists.table_view import TableView, windows
from tests.support.recorded import Recorded
from tests.support.tui import ESCAPE, HOSTILE, STYLES, HostApp, Numbered
from tests.support.walks import Steps, walked

pytestmark = pytest.mark.skipif(textual.__version__ != "8.2.8", reason="as Textual 8.2.8 draws")
_QUESTION = OneOf("Where", "Where it is kept.", first="nowhere", otherwise="elsewhere")


@dataclass(frozen=True)
class Request:
    model: Path = param(label="Model", help="The model.", kind="file", positional=True)
    fp16: bool = param(False, label="FP16", help="Half precision, " + "and more words " * 12)
    mode: str = param("fast", label="Mode", help="How.", choices=("fast", "slow"))
    kind: str = param("k3", label="Kind", help="Which.", choices=tuple(f"k{n}" for n in range(9)))
    disk: bool = param(False, label="on a disk", help="", one_of=_QUESTION)
    tape: bool = param(False, label="on a tape", help="", one_of=_QUESTION)
    reel: str = param("", label="Reel", help="Of the tape.", applies=when("mode", "slow"))
    count: int = param(10, label="Count", help="How many.", minimum=1, unit="passes", page="More")
    shapes: tuple[str, ...] = param((), label="Shapes", help="S.", page="More", empty="as it is")
    core: int | None = param(None, label="DLA core", help="Which.", page="More")
    last: str = param("", label="A label that is too long", help="L.", page="Last of all pages")


class FormApp(HostApp):
    CSS_PATH: ClassVar[Any] = [STYLES / "base.tcss", STYLES / "form.tcss"]


def form_steps(form: ParamForm) -> Steps:
    return {
        "go ~": form.focus_first, "a": None, "backspace": None, "m . o enter": None,
        "space down ~": None, "right": None, "down right": None, "left left": None,
        "down space": None, "down x": None, "tab tab": None, "shift+tab": None,
        "click:26,5": None, "click:40,6": None, "click:25,4": None, "click:25,4 ": None,
        "click:12,1": None, "down down": None, "up": None, "ctrl+u 0": None,
        "shift+tab shift+tab shift+tab": None, "tab": None, "backspace enter": None,
        "suggest": lambda: form.suggest("shapes", ["x:1", "y z:2"]), "enter": None,
        "reasons": lambda: form.set_reasons({"core": "not here", "last": "", "fp16": "no"}),
        "remarks ~": lambda: form.set_remarks({"count": "few"}),
        "enter tab": None, "up up up up": None, "down down down down": None,
        "values": lambda: form.set_values(
            {"tape": True, "count": 3, "shapes": ["a"], "kind": "k8", "unknown": 1}
        ),
        "page": lambda: form.step_page(-1), "again": lambda: form.step_page(-1),
        "free": lambda: form.set_reasons({}), "not here": lambda: form.set_here(False),
        "44x20 ~": None, "34x9": None, "click:30,1": None, "130x30 ~": None,
        "back": lambda: form.set_back(["kind", "count", "model"]), "reset": form.reset,
    }  # fmt: skip


class Wide(Numbered):
    content_width = 60


def list_steps(view: LineView) -> Steps:
    rows = [[(name, "")] for name in ("a", HOSTILE, ESCAPE + "b", "漢字" * 30, "x" * 70, "a\nb")]
    return {
        "down down j ~": None, "k": None, "end": None, "up up": None, "home": None,
        "pagedown": None, "pagedown ": None, "pageup": None, "j j j j j j j j": None,
        "space space ~": None, "down M": None, "g space": None, "k enter": None, "Y": None,
        "click:5,4": None, "double:5,5": None, "menu:5,6": None, "ctrl:5,7": None,
        "click:39,9": None, "wheel:5,5": None, "wheel:5,5 ": None, "up:5,5": None,
        "side:5,5": None, "back:5,5": None, "right": None, "left left": None,
        "slash": None, "r o w": None, "space 3 3": None, "enter ~": None, "n": None, "N": None,
        "slash z z": None, "escape": None, "slash enter": None,
        "back to a place": lambda: view.return_to(view.place),
        "unmark": lambda: view.set_marks(set()),
        "18x4": None, "G": None, "40x10": None,
        "other lines": lambda: view.set_lines(ListSource(rows)), "down ": None,
        "same key": lambda: view.set_lines(ListSource(rows[::-1], [5, 4, 3, 2, 1, 0])),
        "shorter": lambda: view.set_lines(ListSource(rows[:1]), keep=False),
        "nothing": lambda: view.set_lines(ListSource()), "j enter Y space M n": None,
        "a log": lambda: view.set_lines(LogSource(rows, 3)),
        "go": lambda: view.go_to_key(8), "go no more": lambda: view.go_to_key(2),
        "the rest": lambda: view.set_lines(LogSource(rows[2:], 5)),
    }  # fmt: skip


Layer = tuple[str, "float | None", str]
COLUMNS: tuple[Column[Layer], ...] = (
    Column("name", "Name", itemgetter(0), least=10, keep="end"),
    Column("ms", "ms", itemgetter(1), MS, 8, style="heat-5", heat=True),
    Column("bar", "", itemgetter(1), BAR, 8, align="left", heat=True, sortable=False),
    Column("type", "Type", itemgetter(2), width=10, priority=1),
    Column("extra", "Extra", lambda row: "x", width=20, priority=2),
    Column("more", "More", lambda row: row[2] * 9, least=12, priority=2),
)
LAYERS: list[Layer] = [
    ("/model/encoder/conv1/MatMul", 2.0, "Conv"), ("/model/encoder/relu1/MatMul", None, "Relu"),
    ("/model/encoder" + HOSTILE + "/MatMul", 30.5, "Conv"),
    ("/model/encoder/漢字/MatMul", 2.0, "Add"), *((f"n{n}", float(n), "Op") for n in range(12)),
]  # fmt: skip


def layers(rows: Sequence[Layer], columns: Sequence[Column[Layer]] = COLUMNS) -> Table[Layer]:
    return Table(columns, rows, row_key=itemgetter(0))


class Fitted(TableView):
    FITTED = True


def table_steps(view: TableView) -> Steps:
    return {
        "j j ~": None, "o": None, "o ~": None, "tilde": None, "o ": None, "o o o": None,
        "right ~": None, "right ": None, "right right": None, "left": None, "left left left": None,
        "click:2,1": None, "click:2,1 ": None, "click:16,1": None, "click:39,1": None,
        "click:1,1": None, "side:9,4": None, "back:9,4": None, "wheel:9,4": None, "up:9,4": None,
        "G": None, "space g space M": None,
        "some": lambda: view.set_table(layers(LAYERS), [0, 1, 3]), "end": None,
        "gone": lambda: view.set_table(layers(LAYERS[:3])),
        "fewer columns": lambda: view.set_table(layers(LAYERS[:4], COLUMNS[:3])),
        "turned": lambda: view.set_table(layers(LAYERS[:4], COLUMNS[::-1])),
        "names": lambda: view.set_table(layers(LAYERS[:4], COLUMNS[:2]), keep=False),
        "none": lambda: view.set_table(layers([])), "j o enter": None,
        "all": lambda: view.set_table(layers(LAYERS)), "64x12 ~": None, "100x12 ~": None,
        "22x12": None, "12x6": None,
    }  # fmt: skip


_LONG = "dld profile onnxruntime a-model.onnx --iterations 7 --shape x:1x4 " * 3
_WALKS: dict[str, tuple[Callable[[], Widget], Callable[[Any], Steps]]] = {
    "form": (partial(ParamForm, Request, {"model": "m.onnx"}, {"core": "too old"}), form_steps),
    "form_of_nothing": (partial(ParamForm, Request, {}), lambda form: {"go": form.focus_first}),
    "list": (partial(LineView, Numbered(1000), empty="no rows"), list_steps),
    "list_that_is_wide": (
        partial(LineView, Wide(40, {0: "0123456789" * 6}), gutter=False),
        lambda view: {
            "l": None, "l l l l": None, "h": None, "side:5,5": None, "back:5,5 back:5,5": None,
            "end ~": None,
        },
    ),
    "list_with_a_tail": (
        partial(LineView, ListSource([[("one", "")]]), tail=True),
        lambda view: {
            "more": lambda: view.set_lines(ListSource([[(f"{n}", "dim")] for n in range(30)])),
            "up ~": None,
            "even more": lambda: view.set_lines(ListSource([[(f"{n}", "")] for n in range(40)])),
            "end": None,
            "still more": lambda: view.set_lines(ListSource([[(f"{n}", "")] for n in range(50)])),
        },
    ),
    "table": (partial(TableView, layers(LAYERS)), table_steps),
    "table_of_fitted_columns": (partial(Fitted, layers(LAYERS)), table_steps),
    "rows": (
        partial(WrappedRows, ("one and two and " * 6, "warn"), ("", ""), (ESCAPE, "bad")),
        lambda rows: {
            "the same": lambda: rows.set_texts(("one", "dim")),
            "others": lambda: rows.set_texts(("two\nthree", "dim")), "9x9 ~": None,
        },
    ),
    "rows_of_commands": (
        partial(CommandRows, "{activity.copy} copies", "{activity.copy_trtexec} copies"),
        lambda rows: {
            "two": lambda: rows.set_commands([(_LONG, "code"), (_LONG, "dim")]),
            "one": lambda: rows.set_commands([("dld", "code")]),
            "none": lambda: rows.set_commands([("", "")]),
            "again": lambda: rows.set_commands([(_LONG, "code"), ("short", "dim")]),
            "30x40": None, "30x9": None,
        },
    ),
}  # fmt: skip


@pytest.mark.broad
@pytest.mark.parametrize("name", _WALKS)
async def test_walks(
    name: str, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").touch()
    make, steps = _WALKS[name]
    app = (FormApp if name.startswith("form") else HostApp)(make)
    size = (80, 24) if name.startswith("form") else (40, 10)
    async with app.run_test(size=size, message_hook=app.note) as pilot:
        widget = app.screen.children[0]
        texts = await walked(app, pilot, steps(widget))
        if isinstance(widget, ParamForm):
            texts["values"] = f"{widget.values()}".replace(", '", ",\n'")
    recorded(f"walk_of_{name}", texts)


def test_columns_that_are_seen_at_each_width(recorded: Recorded) -> None:
    texts = {}
    for width in (6, 12, 20, 22, 33, 34, 40, 61, 62, 79, 120):
        for title, columns in (("all", COLUMNS), ("one", COLUMNS[:1]), ("pinned", COLUMNS[1:])):
            steps = windows(columns, width)
            texts[f"{title} in {width}"] = "\n".join(
                f"{step.before:d} {step.after:d} {step.last:5} "
                + " ".join(f"{column.key} {cells}" for column, cells in step.sizes)
                for step in steps
            )
    recorded("columns_that_are_seen", texts)


def test_texts_are_broken(recorded: Recorded) -> None:
    text = "  one two  three\n\n\ta-word-that-is-too-long for a row 漢字漢字 漢字\x1b end\n x"
    texts = {str(cells): "\n".join(f"{row}|" for row in wrap(text, cells)) for cells in
             (0, 1, 2, 3, 4, 7, 8, 9, 12, 17, 18, 80)}  # fmt: skip
    found = [*matches("Conv conv CONV", "conv"), *matches("Conv conv", "Conv"), *matches("", "x")]
    texts["matches"] = f"{found}\n{[*matches('ab', '')]} {[*matches('aab', 'a')]}"
    recorded("texts_that_are_broken", texts)
