"""A large model while it is opened: what is read and arranged, and how often."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.document import Scope
from dld_tui.core.document.texts import NodeTexts
from dld_tui.screens import workspace_graph
from dld_tui.screens.workspace import WorkspaceScreen
from dld_tui.screens.workspace_opening import AT_ONCE
from dld_tui.widgets.graph_model import GraphModel
from tests.support.workspace import WIDE, opened

COUNT = AT_ONCE + 100


@pytest.fixture
def large(tmp_path: Path) -> Path:
    proto = onnx.ModelProto(ir_version=10)
    proto.opset_import.add(version=18)
    for at in range(COUNT):
        name = f"/layer_{at // 10}/Relu_{at}"
        proto.graph.node.add(op_type="Relu", name=name, input=[f"v{at}"], output=[f"v{at + 1}"])
    proto.graph.input.add(name="v0")
    proto.graph.output.add(name=f"v{COUNT}")
    path = tmp_path / "large.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


async def test_the_graph_is_arranged_once_from_what_was_read(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[NodeTexts | None] = []

    class Counted(GraphModel):
        def __init__(
            self, scope: Scope, *, constants: bool = False, texts: NodeTexts | None = None
        ) -> None:
            made.append(texts)
            super().__init__(scope, constants=constants, texts=texts)

    monkeypatch.setattr(WorkspaceScreen, "INFER", False)
    monkeypatch.setattr(workspace_graph, "GraphModel", Counted)
    async with opened(large, WIDE) as session:
        screen = session.screen
        await session.until(lambda: screen.graph.model is not None and not screen.is_arranging)
        model = screen.graph.model
        assert model is not None
        assert model.count == COUNT
        assert model.weights is not None  # what is not in the first picture came, too
        assert len(made) == 1
        assert made[0] is not None
        assert len(made[0]) == COUNT
        # After an edit the model itself is read.
        screen.edit("rename_node", scope=[], node="/layer_0/Relu_0", name="/layer_0/stem")
        await session.until(lambda: len(made) == 2 and not screen.is_arranging)
        assert made[1] is None
        shown = screen.graph.model
        assert shown is not None
        assert "/layer_0/stem" in shown.graph.names
