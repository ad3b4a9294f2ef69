"""Pages show what ``tests/screens/transcripts`` says (:mod:`tests.support.screen_transcripts`)."""

from __future__ import annotations

import asyncio
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import textual
from textual.notifications import Notification

from dld_tui.core.machine import environment
from dld_tui.core.reading import preview
from dld_tui.core.report import store
from dld_tui.screens.home import welcome
from dld_tui.screens.workspace import navigation
from dld_tui.screens.workspace import page as workspace
from dld_tui.targets.ssh.link import Link
from dld_tui.targets.ssh.route import Hop
from tests.support import screen_transcripts
from tests.support.recorded import hold

pytestmark = [
    pytest.mark.broad,
    pytest.mark.skipif(
        textual.__version__ != "8.2.8", reason="the transcripts were taken with Textual 8.2.8"
    ),
]
_CREATED = datetime(2026, 1, 2, tzinfo=timezone.utc)


_connect = Link._connect


async def _in_the_order_of_ports(link: Link, hop: Hop, *rest: Any) -> Any:
    """Connect so that of targets that refuse connections each fails at its place."""
    await asyncio.sleep(hop.port / 20)
    return await _connect(link, hop, *rest)


@pytest.mark.parametrize(
    "path", sorted(screen_transcripts.FOLDER.glob("*.txt")), ids=lambda path: path.stem
)
async def test_pages_show_what_their_transcript_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".state"))
    monkeypatch.setattr(welcome, "__version__", "0")
    monkeypatch.setattr(environment, "_usable_processors", lambda: set(range(2)))
    for module in (welcome, navigation):
        monkeypatch.setattr(module, "_REST_S", 0.001)
    monkeypatch.setattr(workspace, "_PAINTED_S", 0.001)
    monkeypatch.setattr(preview, "_NOW_S", 1e9)
    monkeypatch.setattr(store, "datetime", Mock(now=lambda zone: _CREATED))
    monkeypatch.setattr(Notification, "has_expired", False)
    monkeypatch.setattr(Link, "_connect", _in_the_order_of_ports)
    shown = await screen_transcripts.written(path)
    hold(path, shown, pytestconfig)
