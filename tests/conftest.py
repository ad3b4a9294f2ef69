"""Every test has its own folders, no user settings, and a fixed locale, time zone and terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

# Textual reads this while it is imported, which is before any fixture runs.
os.environ["TEXTUAL_ANIMATIONS"] = "none"

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

_FOREIGN = (
    "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR",
    "NV_DLD_CACHE_DIR", "PYTHONWARNINGS", "SSH_CONNECTION", "TEXTUAL_THEME", "TMUX",
)  # fmt: skip

_SERVERS = {"sshd", "own_sshd", "jump"}
"""The fixtures that start an SSH server."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts an SSH server, so that no test of a target is forgotten."""
    for item in items:
        if _SERVERS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.ssh)


@pytest.fixture(autouse=True)
def isolation(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Point the home and XDG folders to an empty place, so no setting, journal or state leaks."""
    home = tmp_path_factory.mktemp("home")
    for variable, folder in (
        ("HOME", home),
        ("XDG_CONFIG_HOME", home / "config"),
        ("XDG_STATE_HOME", home / "state"),
        ("XDG_CACHE_HOME", home / "cache"),
        ("XDG_DATA_HOME", home / "data"),
        ("XDG_RUNTIME_DIR", home / "run"),
    ):
        monkeypatch.setenv(variable, str(folder))
    for variable in _FOREIGN + tuple(name for name in os.environ if name.startswith("DLD_")):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def shared_data() -> Path:
    """Return the folder of real models and reports, which is not part of the repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the folder of real models is not beside this checkout")
    return SHARED_DATA
