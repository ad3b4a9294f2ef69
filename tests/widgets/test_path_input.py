from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from dld_tui.core.text import cell_width
from dld_tui.widgets.forms.path_input import PathInput, complete, find_matches
from dld_tui.widgets.forms.text_field import TextField, drawn
from dld_tui.widgets.lists.table_view import TableView
from tests.support.tui import ESCAPE, HOSTILE, HostApp, rows_of, screen_text, until


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


async def test_a_new_file_is_what_is_typed_until_another_is_chosen(folder: Path) -> None:
    field = PathInput(is_new=True)
    app = HostApp(field)
    async with app.run_test(size=(80, 24), message_hook=app.note) as pilot:
        field.query_one(Input).insert_text_at_cursor(f"{folder}/resn")
        await until(pilot, lambda: len(field.query_one(TableView).lines) == 2)
        assert "▌" not in screen_text(app)
        await pilot.press("enter")
        await pilot.press("down")
        assert "▌" in screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        paths = [message.path for message in app.of(PathInput.Chosen)]
        assert paths == [folder / "resn", folder / "resnet18.onnx"]
        field.value = f"{folder}/other"
        await until(pilot, lambda: "new file" in screen_text(app))


async def test_keys_complete_and_choose_a_match(folder: Path) -> None:
    field = PathInput()
    app = HostApp(field)

    async def typed(text: str, matches: int) -> None:
        field.value = ""
        field.query_one(Input).insert_text_at_cursor(f"{folder}/{text}")
        await until(pilot, lambda: len(field.query_one(TableView).lines) == matches)

    async with app.run_test(size=(80, 24), message_hook=app.note) as pilot:
        for keys, chosen in (("enter", "resnet18.onnx"), ("down enter", "resnet50.onnx")):
            await typed("resn", 2)
            await pilot.press(*keys.split())
            await pilot.pause()
            assert app.of(PathInput.Chosen)[-1].path == folder / chosen
        await typed("resu", 1)
        await pilot.press("tab")
        assert field.value == f"{folder}/results/"
        await until(pilot, lambda: "run.dldprof" in screen_text(app))
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert app.of(PathInput.Chosen)[-1].path == folder / "results" / "run.dldprof"


async def test_a_dialog_lists_the_working_folder_before_anything_is_typed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    field = PathInput(always_lists=True)
    app = HostApp(field)
    async with app.run_test(size=(80, 24), message_hook=app.note) as pilot:
        await until(pilot, lambda: "resnet50.onnx" in screen_text(app))
        lines = field.query_one(TableView).lines
        at = next(at for at in range(len(lines)) if "resnet50.onnx" in lines.text(at))
        await pilot.press(*["down"] * at, "enter")
        await pilot.pause()
        assert app.of(PathInput.Chosen)[-1].path == Path("resnet50.onnx")


async def test_names_from_the_disk_are_text(folder: Path) -> None:
    (folder / HOSTILE.replace("/", "_")).write_bytes(b"")
    field = PathInput()
    app = HostApp(field)
    async with app.run_test(size=(80, 24)) as pilot:
        field.query_one(Input).insert_text_at_cursor(f"{folder}/")
        await until(pilot, lambda: "_blk[0]" in screen_text(app))
        assert HOSTILE.replace("/", "_") in screen_text(app)
        assert "a\\x1b]0;x\\x07" in screen_text(app)


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
