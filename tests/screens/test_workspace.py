"""Looking at a model: parameters, jumps, filters; what keys show is in the transcripts."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from rich.cells import cell_len

from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.dialogs.dialogs import ErrorDialog
from dld_tui.widgets.explorer.branches import View
from dld_tui.widgets.explorer.state import matching_nodes
from tests.support import models
from tests.support.pages import running
from tests.support.workspace import WIDE, opened


@pytest.mark.slow
async def test_shapes_and_values_are_searched_in_a_large_model(tmp_path: Path) -> None:
    count = 20_000
    nodes = [
        onnx.helper.make_node("Add", [f"v{at}", "c"], [f"v{at + 1}"], name=f"n{at}")
        for at in range(count)
    ]
    nodes[15_000] = onnx.helper.make_node(
        "LeakyRelu", ["v15000"], ["v15001"], name="n15000", alpha=0.25
    )
    x, y, shaped = (
        onnx.helper.make_tensor_value_info(name, 1, [side, 3, 4])
        for name, side in (("v0", 1), (f"v{count}", 1), ("v12000", 7))
    )
    half = onnx.helper.make_tensor("c", 1, [], [0.5])
    graph = onnx.helper.make_graph(nodes, "g", [x], [y], [half], value_info=[shaped])
    path = tmp_path / "large.onnx"
    onnx.save(onnx.helper.make_model(graph), path)
    async with opened(path, WIDE) as session:
        explorer = session.screen.panes.explorer
        session.screen.panes.focus("explorer")

        def found() -> list[str]:
            return [node.name for node in matching_nodes(explorer.model)]

        await session.press("/")
        await session.type("7x3x4")
        await session.until(lambda: explorer.model.text == "7x3x4")
        assert found() == ["n11999", "n12000"]
        await session.press("escape", "/")
        await session.type("=0.2")  # what is typed meanwhile stops the search
        await session.type("5", "enter")
        await session.until(lambda: explorer.model.text == "=0.25")
        assert found() == ["n15000"]
        assert set(explorer.model.found) == {"=0.25"}
        assert explorer.node is not None
        assert explorer.node.name == "n15000"
        await session.press("escape")
        assert len(found()) == count
        await session.press("g", "n")
        await session.until(lambda: explorer.node is not None and explorer.node.name == "n15000")


async def test_narrowing_a_filter_goes_to_the_first_node_that_is_left(tmp_path: Path) -> None:
    text = models.CHAIN.replace("[first]", "[n]").replace("[second]", "[n1]")
    text = text.replace("[third]", "[n2]").replace("[last]", "[n20]")
    async with opened(models.write(tmp_path, text)) as session:
        await session.press("/")
        for key, name in (("n", "n"), ("2", "n2"), ("0", "n20"), ("backspace", "n20")):
            await session.press(key)
            assert session.at == name


async def test_reveal_before_the_model_is_open_waits(branches: Path) -> None:
    async with running(size=WIDE) as run:
        screen = WorkspaceScreen(branches)
        screen.reveal(("choose:then_branch",), "inner")
        run.app.add_page(screen)
        await run.until(lambda: screen.is_open and screen.explorer.node is not None)
        assert screen.explorer.node is not None
        assert screen.explorer.node.name == "inner"
        screen.reveal((), "absent")
        screen.reveal(("absent:graph",), "x")


async def test_a_broken_file_closes_its_tab_and_says_why(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(models.parse(models.CHAIN).SerializeToString()[:-9])
    async with running(size=WIDE) as run:
        run.app.add_page(WorkspaceScreen(path))
        await run.until(lambda: not run.app.pages)
        await run.front(ErrorDialog)


HOSTILE = (
    "/blk[0]/Conv [/weight]",
    "\x1b]0;owned\x07\x1b[2J",
    "name " + "long" * 25_000,
    "层/注意力/卷积",
    "[bold]x[/bold] [@click=app.quit]y[/]",
    "a\u202eb\nc",
)


@pytest.mark.broad
async def test_hostile_names_are_text_everywhere(tmp_path: Path) -> None:
    model = onnx.ModelProto(ir_version=10, producer_name="[/x]")
    model.opset_import.add(version=18)
    model.graph.name = HOSTILE[0]
    value = model.graph.input.add(name=HOSTILE[1])
    value.type.tensor_type.elem_type = 1
    before = HOSTILE[1]
    for at, name in enumerate(HOSTILE):
        node = model.graph.node.add(op_type="Relu", name=name, input=[before])
        node.output.append(f"{name}{at}")
        node.attribute.add(name=name, type=onnx.AttributeProto.STRING, s=name.encode())
        node.metadata_props.add(key=name, value=name)
        node.doc_string = name
        before = f"{name}{at}"
    for name in HOSTILE:
        model.graph.node.add(op_type=name, domain=name, input=[f"no {name}"], output=[f"o {name}"])
    model.graph.output.add(name=before).type.tensor_type.elem_type = 1
    path = tmp_path / "hostile [b].onnx"
    path.write_bytes(model.SerializeToString())
    async with opened(path) as session:
        for view in View:
            session.screen.explorer.list_by(view, session.screen.explorer.model.sort)
            await session.press("down", "down", "G")
            assert "\x1b" not in session.text
        await session.go(HOSTILE[0])
        assert "/blk[0]/Conv [/weight]" in session.text
        await session.press("enter", "G", "r", "escape", "y")
        await session.until(lambda: session.screen.findings.findings)
        await session.press("4", "1", "f", "escape")
        assert "\x1b" not in session.text
        assert {cell_len(row) for row in session.text.split("\n")} == {WIDE[0]}
        session.screen.explorer.reveal(session.screen.document.main.nodes[3])
        await session.settle()
        assert "层/注意力/卷积" in session.text
