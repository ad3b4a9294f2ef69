from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.commands import all_commands
from dld_tui.commands.command import Command
from dld_tui.screens.home.palette import Palette, entries_for, is_meant, rank, ranked
from tests.support import models
from tests.support.recorded import Recorded
from tests.support.workspace import NARROW, opened

QUERIES = {
    "convert.convert_fp16": "fp16, half, float16",
    "convert.convert_bf16": "bf16",
    "convert.convert_quantize": "quantize, quantise, int8, calibrate",
    "convert.convert_sanitize": "simplify, fold constants, optimize",
    "convert.convert_shape": "dynamic batch, batch size",
    "convert.convert_external": "external data",
    "convert.convert_strip": "strip",
    "model.convert_opset": "opset, upgrade",
    "model.modify": "convert",
    "accuracy.search": "mixed precision",
    "tensor.initializers": "biggest weights, weights, parameters",
    "graph.picture": "export, image, screenshot, svg",
    "edit.undo": "undo",
    "edit.redo": "redo",
    "view.grow": "larger pane, bigger pane",
    "view.maximise": "full screen, maximize, maximse",
    "model.save": "save",
    "model.save_as": "save as, save a copy",
    "edit.rename": "rename",
    "edit.delete": "remove, cut off",
    "edit.copy": "copy",
    "edit.paste": "paste",
    "edit.change": "stride",
    "model.profile": "profile, benchmark, latency, slowest node",
    "model.build": "tensorrt, trtexec",
    "app.compare": "compare, diff",
    "app.compare_reports": "compare profiles",
    "accuracy.compare": "accuracy, is it still right",
    "app.quit": "quit, exit",
    "app.close": "close",
    "app.theme": "theme, dark",
    "app.settings": "preferences",
    "app.help": "keys, shortcuts",
    "app.targets": "ssh, add a machine, jetson",
    "app.start": "home, recent files",
    "file.open": "open",
    "list.search": "search, find",
    "graph.overlay": "heat, heatmap",
    "graph.zoom_in": "zoom",
    "graph.view": "overview",
    "go.around": "around this node",
    "edit.extract": "subgraph, extract",
    "function.list": "functions",
    "model.metadata": "metadata",
    "check.full": "validate",
    "view.documentation": "docs",
    "node.add": "add node",
    "link.insert": "insert",
    "pane.2": "graph",
    "pane.4": "errors",
    "convert.convert_merge": "merge models, concatenate models",
    "convert.convert_prepend": "normalize",
    "convert.convert_append": "softmax, topk",
    "convert.convert_io": "int64 to int32, nhwc",
    "edit.rename_many": "rename by pattern",
    "convert.convert_clean": "constants to initializers, weights off inputs",
    "function.plugin": "plugin, tensorrt plugin",
    "convert.convert_fold": "fold nodes",
}
FIRST = {query: id for id, queries in QUERIES.items() for query in queries.split(", ")}


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
        await session.shows("No such command")
        await session.press("ctrl+u")
        await session.type("triton")
        await session.shows("in a shell: dld triton model.onnx -o models")
        for word in ("gate", "reduce"):  # it is here under another name
            await session.press("ctrl+u")
            await session.type(word)
            await session.until(lambda: "triton" not in session.text)
            assert "in a shell" not in session.text
        await session.press("ctrl+u")
        await session.type("half")
        await session.shows("Convert to float16")
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
        await session.type("zoom out", "enter")
        await session.until(lambda: session.screen.panes.graph.display)
        assert session.screen.panes.focused() == "graph"


KNOWN = (
    Command("x.save", "save", "Save the model.", synonyms=("write", "store it")),
    Command("x.as", "save as", "Save under another name."),
    Command("x.search", "search precision", "Find the nodes that must stay in fp32."),
    Command("x.half", "Convert to float16", "Halve the weights.", synonyms=("half", "fp16 model")),
    Command("x.zoom", "zoom in", "Show more.", synonyms=("enlarge", "magnify")),
    Command("x.out", "zoom out", "Show less."),
)


def test_how_well_commands_fit(recorded: Recorded) -> None:
    asked = (
        "", " ", "save", "Save  AS", "sa", "sav", "write", "writ", "sto", "it store", "precision",
        "fp32", "name", "srch", "prcision", "half", "e", "s p", "zom", "zoom", "zo", "float", "to",
        "fp16", "m", "in fp32", "magn larg", "cnvert flot", "flt cnv", "weights", "sve", "zz",
    )  # fmt: skip
    texts = {}
    for query in asked:
        found = [(match, one.title) for one in KNOWN if (match := rank(query, one)) is not None]
        told = (f"{match} {is_meant(match)} {title}" for match, title in sorted(found))
        texts[repr(query)] = "\n".join(told)
    recorded("ranks_of_commands", texts)
