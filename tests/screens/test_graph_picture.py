"""Saving what the graph pane shows as a picture."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from textual.widgets import Input

from dld_tui.core.model.graph.pictures import style
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog, FieldsDialog, OpenPathDialog
from dld_tui.widgets.graph.state import GraphView
from tests.support.workspace import NARROW, Session, opened


async def save_as(session: Session, path: Path | None = None) -> None:
    session.screen.graphs.save_picture()
    await session.until(lambda: isinstance(session.app.screen, OpenPathDialog))
    if path is not None:
        session.app.screen.query_one(Input).value = str(path)
    await session.press("enter")


async def drawn(session: Session, *keys: str) -> None:
    await session.until(lambda: isinstance(session.app.screen, FieldsDialog))
    await session.press(*keys, "enter")


def written(path: Path) -> bool:
    return path.exists() and bool(path.stat().st_size)


async def test_svg_beside_the_model(chain: Path) -> None:
    async with opened(chain, NARROW) as session:
        await save_as(session)
        await drawn(session, *"none", "tab", "right", "tab", "right", "shift+tab", "shift+tab")
        target = chain.with_suffix(".svg")
        await session.until(lambda: written(target))
        text = target.read_text(encoding="utf-8")
        assert "url(#grid)" in text
        assert f'fill="{style.SCHEMES["light"].background}"' not in text
        assert ">Sigmoid</text>" in text
        assert "f32[N,4]" in text


async def test_each_view_as_text(chain: Path) -> None:
    async with opened(chain) as session:
        model = session.screen.graph.model
        assert model is not None
        found = {}
        for view in GraphView:
            model.set_view(view)
            session.screen.graph.show_view(model.overview.rails.order[2])
            target = chain.with_name(f"{view.value}.txt")
            await save_as(session, target)
            await session.until(partial(written, target))
            found[view] = target.read_text(encoding="utf-8")
        assert "│ Add │" in found[GraphView.CANVAS]
        assert "⋯" in found[GraphView.FOCUS] or "Add" in found[GraphView.FOCUS]
        assert "│" not in found[GraphView.RAIL]
        assert "second" in found[GraphView.RAIL]
        assert "second" in found[GraphView.FOLDED]


@pytest.mark.broad
async def test_what_is_there_is_kept_unless_told_otherwise(chain: Path) -> None:
    target = chain.with_suffix(".png")
    target.write_bytes(b"mine")
    async with opened(chain) as session:
        await save_as(session, target)
        await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
        await session.press("a")
        await session.until(lambda: isinstance(session.app.screen, OpenPathDialog))
        assert target.read_bytes() == b"mine"
        await session.press("enter")
        await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
        await session.press("o")
        await drawn(session)
        await session.until(lambda: target.read_bytes().startswith(b"\x89PNG"))


@pytest.mark.broad
async def test_a_format_that_there_is_not(chain: Path) -> None:
    async with opened(chain) as session:
        await save_as(session, chain.with_suffix(".bmp"))
        await session.until(lambda: isinstance(session.app.screen, OpenPathDialog))
        assert not chain.with_suffix(".bmp").exists()


@pytest.mark.broad
async def test_a_place_that_cannot_be_written(chain: Path) -> None:
    async with opened(chain) as session:
        await save_as(session, chain.parent / "nowhere" / "a.svg")
        await drawn(session)
        await session.until(lambda: isinstance(session.app.screen, ErrorDialog))
