"""The extras are found by entry points alone: on a target too, and the rest works without them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dld_tui
from dld_tui.activities import registry
from dld_tui.app import DldApp
from dld_tui.core.command_line import commands
from dld_tui.core.process import plugins
from dld_tui.targets.ssh import bootstrap
from tests.support import models
from tests.support.cli import Dld
from tests.support.tui import screen_text

CODE = """
import sys
from collections.abc import Iterator
sys.path.insert(0, sys.argv[1])
from dld_tui.activities import registry
print(registry.__file__, *(one.run for one in registry.activities() if one.package))
"""


def test_a_target_gets_them(tmp_path: Path) -> None:
    for name, content in bootstrap.package_files().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    command = [sys.executable, "-I", "-S", "-c", CODE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    where, *runs = done.stdout.split()
    assert where.startswith(str(tmp_path))
    assert runs == ["dld_tui.extras.path.job:run", "dld_tui.extras.routes.job:run"]


def test_a_target_gets_all_but_what_draws_and_reads_command_lines() -> None:
    top = Path(dld_tui.__file__).parent
    modules = [path.relative_to(top) for path in top.rglob("*.py")]
    sent = bootstrap.package_files()
    left_out = {path.parts[0] for path in modules if f"dld_tui/{path.as_posix()}" not in sent}
    assert left_out == {"__main__.py", "app.py", "cli", "screens", "styles", "widgets"}


@pytest.fixture
def _without(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(plugins, "entry_points", lambda group: ())
    plugins._plugins.cache_clear()
    yield
    plugins._plugins.cache_clear()


@pytest.mark.broad
@pytest.mark.usefixtures("_without")
async def test_without_them_everything_else_works(tmp_path: Path, dld: Dld) -> None:
    model = models.write(tmp_path, models.CHAIN)
    assert registry.activities() == registry.ACTIVITIES
    assert not {row.name for row in commands()} & {"path", "routes", "triton"}
    assert dld.fails(2, "triton", model) == "dld: no such command: 'triton'. See 'dld --help'"
    assert dld("inspect", model).status == 0
    app = DldApp([model])
    async with app.run_test(size=(100, 40)) as pilot:
        while "Relu" not in screen_text(app):
            await pilot.pause(0.05)
        await pilot.press("ctrl+p")
        await pilot.pause()
        assert "critical path" not in screen_text(app)
