"""A closed tab gives back its memory: nothing refers to its page, nor to what it has read."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dld_tui.app import DldApp
from dld_tui.core.process.interpreter import collect
from dld_tui.screens.home import tabs
from dld_tui.screens.home.tabs import make_page
from dld_tui.screens.results.compare import CompareScreen
from dld_tui.screens.results.diff import DiffScreen
from dld_tui.widgets.shell.page import Page
from tests.support import models
from tests.support.pages import running
from tests.support.plans import write_layers
from tests.support.report_files import make_report
from tests.support.tui import until

_LOG = "&&&& RUNNING TensorRT.trtexec [TensorRT v101600] [b1] # trtexec --onnx=tiny.onnx\n"


def _model(folder: Path) -> Page:
    return make_page("ONNX", models.write(folder, models.layered()))


def _diff(folder: Path) -> Page:
    old = models.write(folder, models.CHAIN, "old.onnx")
    return DiffScreen(old, models.write(folder, models.CHAIN.replace("Relu", "Neg"), "new.onnx"))


def _report(folder: Path) -> Page:
    return make_page("REPORT", make_report(folder / f"{len(list(folder.iterdir()))}.dldprof"))


def _compare(folder: Path) -> Page:
    return CompareScreen(
        [
            make_report(folder / f"{len(list(folder.iterdir()))}.dldprof"),
            make_report(folder / f"{len(list(folder.iterdir()))}.dldprof"),
        ]
    )


def _plan(folder: Path) -> Page:
    fields = {"name": "conv", "type": "Convolution"}
    return make_page("ENGINE_LAYERS", write_layers(folder / "plan.json", [fields]))


def _log(folder: Path) -> Page:
    (folder / "build.log").write_text(_LOG)
    return make_page("TRTEXEC_LOG", folder / "build.log")


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [_model, _diff, _report, _compare, _plan, _log], ids=lambda make: make.__name__[1:]
)
async def test_nothing_holds_a_closed_tab(make: Callable[[Path], Page], tmp_path: Path) -> None:
    async with running(size=(120, 40)) as run:
        gone = await _open_and_close(run.app, run.pilot, make(tmp_path))
        for _ in range(200):
            collect()
            if not any(ref() for ref in gone):
                break
            await asyncio.sleep(0.02)
        assert not [ref() for ref in gone if ref() is not None]


@pytest.mark.broad
async def test_a_tab_that_dies_late_is_collected_too(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [Page()]
    page = weakref.ref(held[0])

    def collected() -> None:
        collect()  # nothing looks at what is left then until this is called again
        held.clear()

    monkeypatch.setattr(tabs, "collect", collected)
    monkeypatch.setattr(tabs, "_COLLECT_S", 0.05)
    async with running() as run:
        run.app.add_page(held[0])
        await run.until(lambda: run.app.keys.at_rest)
        run.app.close_page(held[0])
        await run.until(lambda: page() is None)
        again: list[float] = []
        monkeypatch.setattr(run.app, "set_timer", lambda after_s, look: again.append(after_s))
        for after_s in (1.0, 8.0, 16.0, 32.0):
            run.app._give_back(weakref.ref(run.app.page), after_s)
        assert again == [2.0, 16.0]  # less and less often, and not without end


async def _open_and_close(app: DldApp, pilot: Pilot[int], page: Page) -> list[weakref.ref[Any]]:
    app.add_page(page)
    await until(pilot, lambda: app.keys.at_rest)
    for keys in ("j enter escape", "ctrl+p escape", "tab j 1 question_mark escape"):
        await pilot.press(*keys.split())
        await until(pilot, lambda: app.keys.at_rest)
    await until(pilot, lambda: not app.workers)
    held = [getattr(page, name, None) for name in ("document", "report", "explorer")]
    app.close_page(page)
    return [weakref.ref(thing) for thing in (page, *held) if thing is not None]
