"""Every test has its own folders, no user settings, and a fixed locale, time zone and terminal."""

from __future__ import annotations

import gc
import itertools
import os
import sys
import tarfile
import time
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

from dld_tui.backends.conversion import verification
from dld_tui.backends.onnxruntime import processor_peaks
from dld_tui.core.files import permission
from dld_tui.core.process import interpreter, plugins
from dld_tui.core.report import latency
from tests.support import fork_server, quick_forks, quick_textual
from tests.support.recorded import answered as answered
from tests.support.recorded import recorded as recorded

# Else each process that a test starts would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Files of tests are in memory where there is room: a disk that confirms each takes half the time.
_MEMORY, _ROOM = "/dev/shm", 4 << 30
if os.path.isdir(_MEMORY) and os.access(_MEMORY, os.W_OK):
    _free = os.statvfs(_MEMORY)
    if _free.f_bavail * _free.f_frsize > _ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)

# On a busy machine every example may take long: that is no failure.
settings.register_profile("thorough", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("patient", settings.get_profile("thorough"), max_examples=40)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=20)
settings.load_profile("patient")

# For programs that tests start; here a plugin of pytest has imported Textual already.
os.environ["TEXTUAL_ANIMATIONS"] = "none"

DATA = Path(__file__).parent / "data"
REAL_MODELS = os.environ.get("DLD_TEST_DATA")

_FOREIGN = (
    "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR",
    "NV_DLD_CACHE_DIR", "PYTHONWARNINGS", "SSH_CONNECTION", "TEXTUAL_THEME", "TMUX",
)  # fmt: skip

_MANY_DESCRIPTORS = 256
_YOUNG = 50_000
"""New objects between two collections; usual are 700."""

_MEASURED_PEAKS = cache(partial(processor_peaks.measure_peaks, "", 1))

_SERVERS = {"sshd", "own_sshd", "jump"}
"""The fixtures that start an SSH server."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let transcripts be written anew."""
    parser.addoption("--write-transcripts", action="store_true", help="Write transcripts.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts processes over SSH, and what runs real models, so that none is forgotten.

    Slow tests come first: what takes minutes and mostly waits is not left for the end.
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if _SERVERS & fixtures and item.get_closest_marker("real_workers"):
            item.add_marker(pytest.mark.ssh)
        if "real_models" in fixtures:
            item.add_marker(pytest.mark.models)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """Leave what was imported and collected, which stays, out of all later collections.

    These are rarer than usual: most of what tests make lives shortly and in no cycle, and syntax
    trees of all modules take five times as long with the usual ones.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, 10)


@pytest.fixture
def replaces_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests that are about something else write over files."""
    monkeypatch.setattr(permission, "may_replace", lambda path: True)


@pytest.fixture(autouse=True)
def nothing_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin as a process that may replace nothing."""
    monkeypatch.setattr(permission, "_agreed", set())


@pytest.fixture(autouse=True)
def nothing_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin as a process that has skipped no extension."""
    monkeypatch.setattr(plugins, "_skipped", {})


@pytest.fixture(autouse=True)
def peaks_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the processor once: each report would do so, as the cache of each test is empty."""
    monkeypatch.setattr(processor_peaks, "measure_peaks", lambda cpu, threads: _MEASURED_PEAKS())


@pytest.fixture(autouse=True)
def frozen_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program freeze and unfreeze nothing: 10,000 tests would be walked over each time."""
    others = {name: getattr(gc, name) for name in ("collect", "disable", "enable", "isenabled")}
    quiet = SimpleNamespace(freeze=lambda: None, unfreeze=lambda: None, **others)
    monkeypatch.setattr(interpreter, "gc", quiet)
    # Before passes are timed, nothing is collected: their times are not what tests are about.
    monkeypatch.setattr(latency, "gc", SimpleNamespace(**others | {"collect": lambda: 0}))
    monkeypatch.setattr(verification, "_MOST", fork_server.PASSES)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return new paths; pytest looks at all folders there are to find the number of the next."""
    base = tmp_path_factory.mktemp("tests")
    return (base / f"{number:05}" for number in itertools.count())


@pytest.fixture
def tmp_path(folders: Iterator[Path]) -> Path:
    """Return an empty folder."""
    folder = next(folders)
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def isolation(folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Point the home and XDG folders to an empty place, so no setting, journal or state leaks."""
    home = next(folders)
    home.mkdir()
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


@pytest.fixture(autouse=True)
def few_descriptors() -> Iterator[None]:
    """Close what tests left open before a process has too many: documents are in cycles.

    The usual limit is 1,024, and ``select`` takes none above.
    """
    yield
    if len(os.listdir("/proc/self/fd")) > _MANY_DESCRIPTORS:
        interpreter.collect()


@pytest.fixture(autouse=True)
def quick_screens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an app under test draw only what a test reads, and wait only while it works."""
    quick_textual.apply(monkeypatch)


@pytest.fixture(autouse=True)
def quick_workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the workers of jobs from a process that has imported what they need."""
    if request.node.get_closest_marker("real_workers") is None:
        fork_server.apply(monkeypatch)


@pytest.fixture(autouse=True)
def quick_forks_of_onnx(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Call onnx in this process: a fork of one that holds all tests takes 40 ms."""
    if request.node.get_closest_marker("real_forks") is None:
        quick_forks.apply(monkeypatch)


@pytest.fixture(scope="session")
def real_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of engine plans, profiles and bad files (tests/data/README.md)."""
    folder = tmp_path_factory.mktemp("real_files")
    for archive in sorted(DATA.glob("*.tar.xz")):
        with tarfile.open(archive) as packed:
            # Python 3.11.2, which Debian has, knows no filter; the archives are our own.
            packed.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            packed.extractall(folder)
    return folder


@pytest.fixture
def real_models() -> Path:
    """Return the folder of real models that ``DLD_TEST_DATA`` names."""
    if REAL_MODELS is None:
        pytest.skip("DLD_TEST_DATA names no folder of real models")
    return Path(REAL_MODELS)
