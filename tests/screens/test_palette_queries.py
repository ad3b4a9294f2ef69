"""What people type in the palette of a model, and what has to be the first row then."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.commands import all_commands
from dld_tui.screens.home.palette import Palette, entries_for, ranked
from dld_tui.screens.workspace.inference import Inference
from tests.support import models
from tests.support.workspace import NARROW, opened

FIRST = {
    "fp16": "convert.convert_fp16",
    "half": "convert.convert_fp16",
    "float16": "convert.convert_fp16",
    "bf16": "convert.convert_bf16",
    "quantize": "convert.convert_quantize",
    "quantise": "convert.convert_quantize",
    "int8": "convert.convert_quantize",
    "calibrate": "convert.convert_quantize",
    "simplify": "convert.convert_sanitize",
    "fold constants": "convert.convert_sanitize",
    "optimize": "convert.convert_sanitize",
    "dynamic batch": "convert.convert_shape",
    "batch size": "convert.convert_shape",
    "external data": "convert.convert_external",
    "strip": "convert.convert_strip",
    "opset": "model.convert_opset",
    "upgrade": "model.convert_opset",
    "convert": "model.modify",
    "mixed precision": "accuracy.search",
    "biggest weights": "tensor.initializers",
    "weights": "tensor.initializers",
    "parameters": "tensor.initializers",
    "export": "graph.picture",
    "image": "graph.picture",
    "screenshot": "graph.picture",
    "svg": "graph.picture",
    "undo": "edit.undo",
    "redo": "edit.redo",
    "larger pane": "view.grow",
    "bigger pane": "view.grow",
    "full screen": "view.maximise",
    "maximize": "view.maximise",
    "save": "model.save",
    "save as": "model.save_as",
    "save a copy": "model.save_as",
    "rename": "edit.rename",
    "remove": "edit.delete",
    "copy": "edit.copy",
    "paste": "edit.paste",
    "stride": "edit.change",
    "profile": "model.profile",
    "benchmark": "model.profile",
    "latency": "model.profile",
    "slowest node": "model.profile",
    "tensorrt": "model.build",
    "trtexec": "model.build",
    "compare": "app.compare",
    "diff": "app.compare",
    "compare profiles": "app.compare_reports",
    "accuracy": "accuracy.compare",
    "is it still right": "accuracy.compare",
    "quit": "app.quit",
    "exit": "app.quit",
    "close": "app.close",
    "theme": "app.theme",
    "dark": "app.theme",
    "preferences": "app.settings",
    "keys": "app.help",
    "shortcuts": "app.help",
    "ssh": "app.targets",
    "add a machine": "app.targets",
    "jetson": "app.targets",
    "home": "app.start",
    "recent files": "app.start",
    "open": "file.open",
    "search": "list.search",
    "find": "list.search",
    "heat": "graph.overlay",
    "heatmap": "graph.overlay",
    "zoom": "graph.zoom_in",
    "overview": "graph.view",
    "around this node": "go.around",
    "subgraph": "edit.extract",
    "functions": "function.list",
    "metadata": "model.metadata",
    "validate": "check.full",
    "docs": "view.documentation",
    "add node": "node.add",
    "insert": "link.insert",
    "graph": "pane.2",
    "errors": "pane.4",
    "maximse": "view.maximise",
    "merge models": "convert.convert_merge",
    "concatenate models": "convert.convert_merge",
    "normalize": "convert.convert_prepend",
    "softmax": "convert.convert_append",
    "topk": "convert.convert_append",
    "int64 to int32": "convert.convert_io",
    "nhwc": "convert.convert_io",
    "cut off": "edit.delete",
    "rename by pattern": "edit.rename_many",
    "constants to initializers": "convert.convert_clean",
    "weights off inputs": "convert.convert_clean",
    "plugin": "function.plugin",
    "tensorrt plugin": "function.plugin",
    "fold nodes": "convert.convert_fold",
    "extract": "edit.extract",
}


@pytest.fixture(autouse=True)
def no_child_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Inference, "INFER", False)


@pytest.mark.broad
async def test_what_was_meant_comes_first(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        entries = entries_for(session.app.screen)
        assert len({entry.command.id for entry in entries}) == len(entries)
        titles = [entry.command.title.lower() for entry in entries]
        assert sorted({title for title in titles if titles.count(title) > 1}) == []
        first = {}
        for query in FIRST:
            found = ranked(entries, query)
            first[query] = found[0].command.id if found else ""
            can = [entry.why_not is None for entry in found[1:]]
            assert can == sorted(can, reverse=True), query  # what cannot run comes last
        assert first == FIRST
        undo = ranked(entries, "undo")[0]
        assert undo.why_not == "nothing to undo"
        assert ranked(entries, "qqqq") == []


@pytest.mark.broad
async def test_a_conversion_opens_its_form_and_nothing_is_said_to_fit(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        await session.press("ctrl+p")
        await session.type("zzzz")
        await session.until(lambda: "No such command" in session.text)
        await session.press("ctrl+u")
        await session.type("triton")
        await session.until(lambda: "in a shell: dld triton model.onnx -o models" in session.text)
        for word in ("gate", "sweep", "prepend", "reduce"):  # it is here under another name
            await session.press("ctrl+u")
            await session.type(word)
            await session.until(lambda: "triton" not in session.text)
            assert "in a shell" not in session.text
        await session.press("ctrl+u")
        await session.type("half")
        await session.until(lambda: "Convert to float16" in session.text)
        await session.press("enter")
        await session.until(lambda: not isinstance(session.app.screen, Palette))
        await session.until(lambda: "float16" in session.text and "Result" in session.text)


def test_other_words_are_in_lower_case_and_once() -> None:
    words_of_commands = [command.synonyms for command in all_commands()]
    assert sum(map(bool, words_of_commands)) > 50
    for words in words_of_commands:
        assert all(word and word == word.lower() for word in words)
        assert len(set(words)) == len(words)


@pytest.mark.broad
async def test_a_command_of_a_pane_that_is_not_seen_shows_it(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN), NARROW) as session:
        await session.press("1")
        assert not session.screen.panes.graph.display
        await session.press("ctrl+p")
        await session.type("zoom out")
        await session.press("enter")
        await session.until(lambda: session.screen.panes.graph.display)
        assert session.screen.panes.focused() == "graph"
