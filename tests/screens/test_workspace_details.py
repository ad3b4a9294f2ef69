"""What the panes of a model tell: findings, documentation, statistics."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import models
from tests.support.workspace import NARROW, Session, opened


@pytest.mark.broad
async def test_findings_are_seen_at_once_and_jump(tmp_path: Path) -> None:
    text = models.CHAIN.replace("Sigmoid", "Sigmoidd")
    async with opened(models.write(tmp_path, text), NARROW) as session:
        await session.until(lambda: session.screen.findings.findings)
        await session.until(lambda: "Sigmoidd" in session.text)
        assert "✖ 1 error" in session.text
        await session.press("4", "enter")
        assert session.screen.explorer.node is not None
        assert session.screen.explorer.node.name == "last"


async def documentation_unfolds(session: Session) -> None:
    await session.go("last")
    await session.press("D")
    assert any("Sigmoid takes one input data" in row for row in session.details)
    await session.press("D")
    assert not any("Sigmoid takes one input data" in row for row in session.details)


@pytest.mark.broad
async def test_a_search_finds_folded_defaults(tmp_path: Path) -> None:
    text = models.CHAIN.replace("Sigmoid", "LeakyRelu")
    async with opened(models.write(tmp_path, text)) as session:
        await session.go("last")
        await session.press("3")
        assert not any("alpha" in row for row in session.details)
        await session.press("slash", *"nothing", "enter")
        assert not any("alpha" in row for row in session.details)
        await session.press("slash", *"alpha", "enter")
        row = session.screen.parameters.row
        assert row is not None
        assert row.attribute == "alpha"


async def tensor_statistics_are_read(session: Session) -> None:
    await session.go("second")
    await session.press("enter")
    await session.row("B w")
    await session.press("right")
    await session.until(lambda: any("min 1" in row for row in session.details))
    assert any("mean 2.5" in row for row in session.details)
    await session.press("left")
    assert not any("min 1" in row for row in session.details)


async def large_tensors_are_read_only_when_asked(session: Session) -> None:
    session.screen.parameters._preview_bytes = 1
    await session.go("second")
    await session.press("enter")
    await session.row("B w")
    await session.press("right")
    assert any("Enter reads 16 B" in row for row in session.details)
    await session.row("statistics")
    await session.press("enter")
    await session.until(lambda: any("mean 2.5" in row for row in session.details))


@pytest.mark.broad
async def test_documentation_and_statistics(chain: Path) -> None:
    async with opened(chain) as session:
        for check in (
            documentation_unfolds,
            tensor_statistics_are_read,
            large_tensors_are_read_only_when_asked,
        ):
            await check(session)
            await session.reset()
