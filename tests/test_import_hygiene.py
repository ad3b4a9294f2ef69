"""What a process has really loaded: no user interface and no runtime where none is wanted.

The import contracts in pyproject.toml look at the source; deferred imports show only here.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import models
from tests.support.transcript_files import three_layers

SRC = Path(__file__).resolve().parents[1] / "src"
RUNTIMES = {"cupti", "onnxruntime", "polygraphy", "pynvml", "tensorrt", "tensorrt_rtx"}
LOADED_BY_HELP = {
    "dld_tui", "dld_tui.__main__", "dld_tui.cli", "dld_tui.cli.main", "dld_tui.core.command_line",
    "dld_tui.core", "dld_tui.core.errors", "dld_tui.core.process",
    "dld_tui.core.process.confinement", "dld_tui.core.process.plugins", "dld_tui.extras",
    "dld_tui.extras.path", "dld_tui.extras.routes", "dld_tui.extras.triton",
}  # fmt: skip
PROBE = """
import atexit, json, os, sys
atexit.register(lambda: os.write(int(sys.argv.pop()), json.dumps(sorted(sys.modules)).encode()))
"""
RUN = PROBE + "from dld_tui.__main__ import main; last = sys.argv.pop(); status = main(); "
RUN += "sys.argv.append(last); sys.exit(status)"


BARE = (
    "accuracy", "build", "doctor", "profile_onnxruntime", "profile_tensorrt", "providers", "refit",
    "selftest", "startup", "tactics", "tensorrt_libraries",
)  # fmt: skip
"""Activities whose requests a target takes before it has any package."""
LOAD = """
import sys
sys.path.insert(0, sys.argv[1])
import dld_tui.activities.worker
from dld_tui.activities import registry
for activity in sys.argv[2:]:
    registry.load(activity)
"""


def loaded(code: str, *arguments: str, cwd: Path | None = None) -> set[str]:
    """Run Python in a process of its own and return the modules that it had loaded at the end."""
    read, write = os.pipe()
    with os.fdopen(read) as result:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments, str(write)],
            pass_fds=[write],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        os.close(write)
        assert done.returncode == 0, done.stderr
        return set(json.loads(result.read()))


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "dld_tui"}


def packages(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


HEAVY = {"textual", "rich", "onnx", "numpy", "google", *RUNTIMES}


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_loads_nothing_but_its_table(option: str) -> None:
    modules = loaded(RUN, option)
    assert ours(modules) == LOADED_BY_HELP
    assert not packages(modules) & {"click", *HEAVY}


@pytest.mark.parametrize("line", ["--version", "profile --help", "target list"])
def test_what_needs_no_model_loads_no_library_for_them(line: str) -> None:
    assert not packages(loaded(RUN, *line.split())) & {"asyncssh", *HEAVY}


@pytest.mark.broad
def test_commands_load_no_user_interface_and_no_runtime(tmp_path: Path) -> None:
    modules = loaded(RUN, "inspect", str(models.write(tmp_path, models.BRANCHES)))
    assert "onnx.onnx_ml_pb2" in modules
    assert "onnx" not in modules
    assert not packages(modules) & {"numpy", "textual", *RUNTIMES}
    assert not any(name.startswith("dld_tui.core.model.operators") for name in modules)
    reports = [str(three_layers(tmp_path / f"{name}.dldprof")) for name in "ab"]
    assert not loaded(RUN, "compare", *reports) & {"onnx", "textual", *RUNTIMES}


OPEN = """
import asyncio, json, os, sys
import dld_tui.app
from dld_tui.app import DldApp

if len(sys.argv) == 2:
    # A thread imports ahead what a model will need: no part of the start page.
    dld_tui.app._new_models_left = list

async def main():
    app = DldApp(sys.argv[1:-1])
    async with app.run_test(size=(80, 24)) as pilot:
        while not app.pages if len(sys.argv) > 2 else not app.screen_stack:
            await pilot.pause(0.01)
        os.write(int(sys.argv[-1]), json.dumps(sorted(sys.modules)).encode())
        os._exit(0)

asyncio.run(main())
"""


@pytest.mark.broad
def test_the_start_page_needs_no_tls_and_others_get_it() -> None:
    code = "from dld_tui.cli.tui import import_asyncio_without_tls as first; first()\n"
    code += "import asyncio; from dld_tui.app import DldApp; asyncio.run(asyncio.sleep(0))\n"
    modules = loaded(PROBE + code)
    assert "textual.app" in modules
    assert not modules & {"_ssl", "hashlib", "ssl", "textual.widgets._text_area"}
    assert {"_ssl", "ssl"} <= loaded(f"{PROBE}{code}import urllib.request, ssl; ssl.SSLContext")


@pytest.mark.broad
def test_the_start_page_loads_no_library_for_models(tmp_path: Path) -> None:
    modules = loaded(OPEN, cwd=tmp_path)  # what a folder has is read by a thread
    assert not packages(modules) & {"asyncssh", "click", "google", "numpy", "onnx", *RUNTIMES}
    assert not {"dld_tui.core.process.child", "dld_tui.core.process.installation"} & modules
    assert len(ours(modules)) <= MOST_FOR_START


@pytest.mark.broad
def test_a_page_of_a_model_loads_neither_numpy_nor_schemas_nor_checks(tmp_path: Path) -> None:
    modules = loaded(OPEN, str(models.write(tmp_path, models.CHAIN)))
    assert "dld_tui.screens.workspace.page" in modules
    assert not packages(modules) & {"asyncssh", "numpy", "onnx.helper", *RUNTIMES}
    assert (
        not {"onnx", "dld_tui.core.checks.checker", "dld_tui.core.model.operators.registry"}
        & modules
    )


FIRST_ROWS = """
import re, sys
from dld_tui.cli.tui import import_asyncio_without_tls as first; first()
import dld_tui.app, dld_tui.widgets.shell.driver
from dld_tui.screens.home.tabs import prepare
prepare("ONNX")
own = [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "dld_tui"]
patterns = {id(value) for module in own for value in vars(module).values()
            if isinstance(value, re.Pattern)}
assert len(patterns) <= 20, len(patterns)
"""
MOST_FOR_START, MOST_FOR_ROWS = 70, 156
"""Modules of ours; each takes half a millisecond or more, those that declare extras a tenth."""


@pytest.mark.broad
def test_the_first_rows_of_a_model_need_few_modules_and_patterns() -> None:
    assert len(ours(loaded(PROBE + FIRST_ROWS))) <= MOST_FOR_ROWS


CHECKED = OPEN.replace(
    "        os.write(",
    "        page = app.pages[0]\n"
    "        while not page.checks.is_checked:\n"
    "            await pilot.pause(0.01)\n"
    "        while page.parameters.subject is not page.document.main.nodes[0]:\n"
    "            await pilot.press('1', 'down')\n"
    "        os.write(",
)
SMALL_WEIGHT = """<ir_version: 9, opset_import: ["" : 18]>
g (float[2,6] x) => (float[4,3] y) <int64[2] shape = {4, 3}> {
    y = Reshape <allowzero = 0> (x, shape)
}"""


@pytest.mark.broad
def test_a_model_is_opened_checked_and_looked_at_without_numpy(tmp_path: Path) -> None:
    modules = loaded(CHECKED, str(models.write(tmp_path, SMALL_WEIGHT)))
    assert {"onnx.onnx_cpp2py_export", "dld_tui.core.checks.checker"} <= modules
    assert "dld_tui.widgets.parameters.edit_bar" in modules
    assert not packages(modules) & {"asyncssh", "csv", "html", "numpy", *RUNTIMES}
    assert "onnx" not in modules


@pytest.mark.broad
@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="no onnxruntime here")
def test_profiling_loads_the_runtime_in_the_worker_only(tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    report = tmp_path / "out.dldprof"
    arguments = ["profile", "onnxruntime", str(model), "--iterations=3", "-o", str(report)]
    modules = loaded(RUN, *arguments)
    assert report.exists()
    assert not packages(modules) & {"textual", *RUNTIMES}


def modules_of(*folders: str) -> list[str]:
    found = []
    for folder in folders:
        for path in sorted((SRC / "dld_tui" / folder).rglob("*.py")):
            name = ".".join(path.relative_to(SRC).with_suffix("").parts)
            found.append(name.removesuffix(".__init__"))
    return found


@pytest.mark.broad
def test_importing_everything_headless_loads_no_user_interface_and_no_runtime() -> None:
    names = modules_of("core", "activities", "targets", "backends", "cli")
    assert len(names) > 50
    code = "import importlib\n" + "".join(f"importlib.import_module({name!r})\n" for name in names)
    modules = loaded(PROBE + code)
    assert not packages(modules) & {"textual", *RUNTIMES}


def test_a_python_without_packages_takes_these_requests() -> None:
    command = [sys.executable, "-I", "-S", "-c", LOAD, str(SRC), *BARE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert not done.returncode, done.stderr
