"""Patterns in the workspace: from marked nodes, listed as they are typed, replaced, taken back."""

from __future__ import annotations

from pathlib import Path

from textual.widgets import Input

from dld_tui.screens.workspace.rewriting import RewriteDialog
from tests.support import models
from tests.support.workspace import opened


async def test_pattern_of_the_marked_nodes_is_found_replaced_and_taken_back(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.layered(3))
    async with opened(path, (120, 40)) as session:
        document = session.screen.document
        count = len(document.main.nodes)
        for name in ("/layers.1/scale", "/layers.1/join"):
            await session.go(name)
            await session.press("space")
        await session.press("Q")
        assert isinstance(session.app.screen, RewriteDialog)
        await session.until(lambda: "3 hits" in session.text)
        assert "/layers.2/scale /layers.2/join" in session.text
        await session.press("enter")
        await session.until(lambda: len(session.screen.explorer.marked) == 6)

        await session.press("w", "c", "Q")
        await session.type("Add(Mul(x, w), g) => my.Fused(x, w, g)")
        await session.until(lambda: "3 places to replace" in session.text)
        assert "- s0 = Mul(n0, w0)" in session.text
        assert "+ j0 = my.Fused(n0, w0, g0)" in session.text
        assert len(document.main.nodes) == count
        await session.press("enter")
        await session.until(lambda: len(document.main.nodes) == count - 3)
        await session.press("u")
        assert len(document.main.nodes) == count

        await session.press("Q")
        await session.type("_(x) => x")
        await session.until(lambda: "matches everything" in session.text)
        field = session.app.screen.query_one(Input)
        field.value = ""
        await session.type("gelu-on")
        await session.until(lambda: "gelu-onnxruntime" in session.text)
        await session.press("right")
        assert field.value == "gelu-onnxruntime"
        await session.press("escape")
        assert not document.history.done
