from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import textual
from textual.widgets import Input

from dld_tui.core.text import cell_width
from dld_tui.widgets.forms.path_input import PathInput, complete, find_matches
from dld_tui.widgets.forms.text_field import TextField, drawn
from tests.support.recorded import Recorded
from tests.support.tui import ESCAPE, HOSTILE, HostApp, rows_of
from tests.support.walks import Steps, walked


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "resnet50.onnx",
        "resnet18.onnx",
        "Readme.md",
        ".hidden",
        f"a{ESCAPE.replace('/', '')}",
    ):
        (tmp_path / name).write_bytes(b"x" * 1500)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "run.dldprof").write_bytes(b"")
    return tmp_path


def test_matches_are_folders_first_and_complete_as_far_as_all_agree(folder: Path) -> None:
    # Matches are folders first and ignore case.
    names = [match.name for match in find_matches(f"{folder}/re")]
    assert names == ["results", "Readme.md", "resnet18.onnx", "resnet50.onnx"]
    assert [match.name for match in find_matches(f"{folder}/.")] == [".hidden"]
    assert find_matches(f"{folder}/nowhere/x") == []
    assert find_matches("\0") == []
    # Only files that fit are offered.
    names = [match.name for match in find_matches(f"{folder}/re", (".onnx",))]
    assert names == ["results", "resnet18.onnx", "resnet50.onnx"]
    # Completion goes as far as all agree.
    text = f"{folder}/resn"
    assert complete(text, find_matches(text)) == f"{folder}/resnet"
    assert complete(f"{folder}/resu", find_matches(f"{folder}/resu")) == f"{folder}/results/"
    assert complete("x", []) == "x"


@pytest.mark.parametrize("text", ["plain", "漢字 é", "\x1b]0;x\x07", "a\tb\nc", "\udcff\u202e\x9b"])
def test_what_is_drawn_has_the_same_length_and_no_control(text: str) -> None:
    assert len(drawn(text)) == len(text)
    assert not set(drawn(text)) & set("\x1b\x07\t\n\udcff\u202e\x9b")
    assert cell_width(drawn(text)) >= 1


async def test_the_value_stays_and_the_cursor_does_not_blink() -> None:
    app = HostApp(lambda: TextField("\x1b[31mred"))
    async with app.run_test(size=(30, 4)) as pilot:
        field = app.query_one(TextField)
        assert rows_of(app)[0].startswith("␛[31mred")
        await pilot.press("end", "x")
        assert field.value == "\x1b[31mredx"
        assert not field.cursor_blink


_TYPED: Steps = {
    "r e s ~": None, "n": None, "enter": None, "down enter": None, "tab": None, "backspace x": None,
    "enter ": None, "tab ": None, "ctrl+u r e s u": None, "tab  ": None, "tab   ": None, "up": None,
    "enter  ": None, "ctrl+u ~": None, "ctrl+u full_stop": None, "down enter ": None,
    "ctrl+u slash n o / x": None, "ctrl+u r": None, "pagedown": None, "pageup": None,
    "click:9,4": None, "double:9,4": None, "double:9,2": None, "ctrl+u": None, "tab    ": None,
    "enter   ": None,
}  # fmt: skip
_FIELDS = {
    "plain": partial(PathInput, rows=5),
    "new": partial(PathInput, "results/run.dldprof", rows=5, is_new=True),
    "listed": partial(PathInput, rows=9, always_lists=True),
    "of_models": partial(PathInput, rows=5, endings=(".onnx",), always_lists=True),
}


@pytest.mark.broad
@pytest.mark.skipif(textual.__version__ != "8.2.8", reason="as Textual 8.2.8 draws")
@pytest.mark.parametrize("kind", _FIELDS)
async def test_a_walk_through_the_field(
    kind: str, folder: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    (folder / HOSTILE.replace("/", "_")).write_bytes(b"")
    app = HostApp(field := _FIELDS[kind]())
    async with app.run_test(size=(44, 12), message_hook=app.note) as pilot:
        field.query_one(Input).focus()
        recorded(f"walk_of_path_{kind}", await walked(app, pilot, _TYPED))
