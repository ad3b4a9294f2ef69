from __future__ import annotations

import ast
import asyncio
import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from dld_tui.activities.registry import activities
from dld_tui.core.errors import UnavailableError
from dld_tui.core.machine.health import BROKEN
from dld_tui.core.settings.saved_targets import DEFAULT_DIRECTORY, Connection
from dld_tui.targets.ssh import bootstrap, deploy, loop
from dld_tui.targets.ssh.channel import Agent
from dld_tui.targets.ssh.deploy import Need, Needs, needs_of
from dld_tui.targets.ssh.transfer import Amount
from tests.support.jobs import is_running, wait_until
from tests.support.ssh_jobs import (
    BARE,
    TINY,
    Agents,
    imported,
    prepare,
    script,
    target_of,
)
from tests.targets.test_ssh_deployments import machine


@pytest.mark.broad
def test_every_activity_that_runs_onnxruntime_brings_it() -> None:
    for info in activities():
        needs = needs_of(info.id, {"polygraphy": True})
        if needs.modules and "onnxruntime" in imported_by(info.run.partition(":")[0]):
            assert "onnxruntime" in {need.module for need in needs.modules}, info.id


@cache
def imports_of(module: str) -> frozenset[str]:
    """Return what a module of ours imports, at any place."""
    spec, found = importlib.util.find_spec(module), set[str]()
    if spec is None or spec.origin is None:
        return frozenset()
    for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "dld_tui.backends":
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return frozenset(found)


def imported_by(module: str) -> set[str]:
    """Return what a module imports from outside, itself or by our backends, at any depth."""
    seen, todo = set[str](), {module}
    while todo - seen:
        name = (todo - seen).pop()
        seen.add(name)
        if name.startswith(("dld_tui.activities", "dld_tui.backends")):
            todo |= imports_of(name)
    return {name.partition(".")[0] for name in seen if not name.startswith("dld_tui.")}


def test_a_cancelled_download_ends_its_process(
    wheel_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "pid"
    program = (
        "import os, pathlib, sys, time; at = pathlib.Path(sys.argv[1]);"
        " at.with_name('new').write_text(str(os.getpid())); at.with_name('new').rename(at);"
        " time.sleep(36_000)"
    )
    monkeypatch.setattr(
        deploy, "download_command", lambda *_: [sys.executable, "-c", program, str(note)]
    )

    async def cancelled() -> None:
        task = asyncio.ensure_future(deploy.fetch(machine(), ["x"], "t"))
        while not note.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    loop.call(cancelled(), 60)
    wait_until(lambda: not is_running(int(note.read_text())), "the end of the download")


@pytest.fixture
def bare(agent: Agents) -> Agent:
    return agent(ready=False, python=BARE)


@pytest.mark.real_workers
def test_packages_are_sent_once_where_the_target_has_no_network(
    bare: Agent, connection: Connection, wheel_folder: Path
) -> None:
    amount = Amount()
    prepared = prepare(bare, TINY, "here", amount=amount)
    assert prepared.installed == ("tinymod>=1.0",)
    assert prepared.python.startswith(f"{connection.directory}/venv/")
    assert imported(prepared.python) == "1 2"
    sent = amount.sent
    (wheel_folder / "tinymod-1.5-py3-none-any.whl").unlink()
    again = prepare(bare, TINY, "here", amount=amount)
    assert (again.python, again.installed, amount.sent) == (prepared.python, (), sent)


def test_a_python_that_is_missing_or_old_says_so(connection: Connection, tmp_path: Path) -> None:
    python = tmp_path / "python3.8"
    code = "import sys; sys.version_info = (3, 8, 10); sys.argv = sys.argv[1:]; exec(sys.argv[0])"
    python.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} -c "{code}" "$@"\n')
    python.chmod(0o755)
    for named, said in (
        ("python3.99", r"it has no python3\.99\. Install one there"),
        (str(python), r"its Python is 3\.8\.10; 3\.10 or newer"),
    ):
        with pytest.raises(UnavailableError, match=said):
            target_of(connection, python=named).jobs()


def test_the_probe_runs_on_every_old_python() -> None:
    assert "f'" not in bootstrap.PROBE
    assert 'f"' not in bootstrap.PROBE
    compile(bootstrap.PROBE, "probe", "exec", dont_inherit=True)


def test_a_folder_that_cannot_be_written(connection: Connection, tmp_path: Path) -> None:
    job = target_of(connection, directory="/dev/null/x").start("fake", script(["finish"]))
    with pytest.raises(UnavailableError, match="no permission to write to /dev/null"), job:
        job.result()
    if os.geteuid() != 0:  # root may write everywhere
        (tmp_path / "closed").mkdir(mode=0o500)
        checks = target_of(connection, directory=str(tmp_path / "closed" / "x")).checks("doctor")
        assert {check.name: check.state for check in checks}["folder"] == BROKEN


def test_the_cache_variable_of_the_target_is_honoured(
    connection: Connection, tmp_path: Path
) -> None:
    cache = tmp_path / "cache of target"
    environment = {"NV_DLD_CACHE_DIR": str(cache)}
    target = target_of(connection, directory=DEFAULT_DIRECTORY, environment=environment)
    assert target.jobs() == []
    assert (cache / "target" / "package").is_dir()


@pytest.mark.real_workers
def test_a_package_that_arrives_broken_is_refused(
    bare: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = bootstrap.package_archive()
    monkeypatch.setattr(bootstrap, "package_archive", lambda: archive[:-1000])
    with pytest.raises(Exception, match="the dld package cannot be copied there"):
        prepare(bare, Needs((), ""))


@pytest.fixture
def user_environment(tmp_path: Path, wheel_folder: Path) -> Path:
    """The Python of a virtual environment that a user made, which has one package."""
    folder = tmp_path / "user's env"
    subprocess.run([BARE, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    (site / "theirs.py").write_text("value = 'theirs'\n")
    return folder / "bin" / "python"


@pytest.mark.real_workers
def test_a_virtual_environment_runs_the_job_and_what_it_lacks_is_added_beside_it(
    agent: Agents, connection: Connection, user_environment: Path
) -> None:
    def files() -> list[Path]:
        found = user_environment.parents[1].rglob("*")
        return sorted(path for path in found if "__pycache__" not in path.parts)

    own, before, amount = agent(ready=False, python=str(user_environment)), files(), Amount()
    theirs, [tiny] = Need("theirs", ("theirs",)), TINY.modules
    optional = Needs((theirs, replace(tiny, optional=True)), "cpu")
    assert prepare(own, optional, "here", amount=amount).python == str(user_environment)
    assert [note for note in amount.notes if "pip install tinymod>=1.0" in note]
    assert prepare(own, optional, "here").python == str(user_environment)  # by the note there

    python = prepare(own, Needs((theirs, tiny), "cpu"), "here").python
    assert python.startswith(f"{connection.directory}/venv/")
    code = "import theirs, tinymod; print(theirs.value, tinymod.value)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "theirs 1\n"
    assert files() == before
    # Another Python of the same version does not get that environment.
    assert prepare(agent(ready=False, python=BARE), TINY, "here").python != python
