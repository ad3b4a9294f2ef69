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
from typing import Any

import pytest

from dld_tui.activities.registry import ACTIVITIES, activities
from dld_tui.core.errors import UnavailableError
from dld_tui.core.machine.health import BROKEN, GOOD, MISSING
from dld_tui.core.settings.saved_targets import DEFAULT_DIRECTORY, Connection
from dld_tui.targets.ssh import bootstrap, deploy, loop
from dld_tui.targets.ssh.bootstrap import Machine, machine_from
from dld_tui.targets.ssh.channel import Agent
from dld_tui.targets.ssh.deploy import NEEDS, Need, Needs, needs_of
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


def machine(**changes: object) -> Machine:
    values = {
        "python": (3, 10, 12), "executable": "/usr/bin/python3", "root": "/x",
        "machine": "aarch64", "system": "Linux", "libc": ("glibc", "2.35"), "host": "orin",
        "here": "/", "writable": True, "package": False, "gpu": True, "free": None, "ready": None,
        "environments": (),
    }  # fmt: skip
    return Machine(**{**values, **changes})  # type: ignore[arg-type]


def test_wheels_are_those_of_the_target() -> None:
    command = deploy.download_command(machine(), ["onnx>=1.19"], Path("/w"))
    assert command[command.index("--python-version") + 1] == "3.10"
    assert "cp310" in command
    assert command[-1] == "onnx>=1.19"
    with pytest.raises(UnavailableError, match="Darwin"):
        deploy.platform_tags(machine(system="Darwin"))
    with pytest.raises(UnavailableError, match="cannot be downloaded"):
        deploy.platform_tags(machine(machine="x;rm -rf"))


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


@pytest.mark.parametrize(
    ("there", "state", "found"),
    [
        ({}, MISSING, "not there"),
        ({"onnx": "1.14.9"}, MISSING, "1.14.9, older than 1.15"),
        ({"onnx": "1.15"}, GOOD, "1.15"),
        ({"onnx": "1.100.1"}, GOOD, "1.100.1"),  # by number
        ({"onnx": ""}, GOOD, "there"),
    ],
)
def test_what_is_said_of_a_package(there: dict[str, str], state: str, found: str) -> None:
    check = deploy._check(Need("onnx", ("onnx",), "1.15"), there)
    assert (check.name, check.state, check.found) == ("onnx", state, found)
    assert bool(check.fix) is (state == MISSING)
    assert deploy._check(Need("onnx", ("onnx",), fix="ask"), {}).fix == "ask"


@pytest.fixture
def bare(agent: Agents) -> Agent:
    return agent(ready=False, python=BARE)


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


def test_the_pip_of_the_target_is_used_where_it_has_one(bare: Agent, wheel_folder: Path) -> None:
    has_pip = subprocess.run([BARE, "-m", "pip", "--version"], capture_output=True, check=False)
    if has_pip.returncode:
        pytest.skip("the Python that stands in for a bare one has no pip")
    options = ("--no-index", "--find-links", str(wheel_folder))
    assert imported(prepare(bare, TINY, "target", options).python) == "1 2"


ABSENT = Need("no_such", ("no-such-package",), "3")
OPTIONAL = replace(ABSENT, optional=True)


@pytest.mark.parametrize(
    ("needs", "route", "options", "noted"),
    [
        (TINY, "auto", ("--no-index", "--find-links", "/nowhere"), "cannot download packages"),
        (
            Needs((*TINY.modules, replace(ABSENT, optional=True)), "cpu"),
            "here",
            (),
            "it is skipped",
        ),
    ],
    ids=["the target cannot fetch", "an optional one is missing"],
)
def test_what_is_brought_otherwise_is_noted(
    bare: Agent, wheel_folder: Path, needs: Needs, route: str, options: tuple[str, ...], noted: str
) -> None:
    amount = Amount()
    assert imported(prepare(bare, needs, route, options, amount).python) == "1 2"
    assert any(noted in note for note in amount.notes)


RTX = Needs(TINY.modules, "rtx")
BY_HAND = Need("no_such", ("tensorrt",), fix="Do this")
ANY = Needs((BY_HAND,), "gpu", otherwise=RTX)


def test_any_library_is_the_one_that_can_be_installed(bare: Agent, wheel_folder: Path) -> None:
    prepared = prepare(bare, ANY, "here")
    assert imported(prepared.python) == "1 2"
    assert prepared.installed == ("tinymod>=1.0",)


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        (Needs((ABSENT,), "cpu"), r"no-such-package>=3: neither .* by hand"),
        (Needs((BY_HAND,), "gpu"), r"tensorrt is missing\. Do this"),
        (ANY, r"tensorrt is missing, .* tinymod.*Do this"),
    ],
    ids=["nowhere to fetch", "people install it", "none of any library"],
)
def test_what_cannot_be_brought_is_named(
    bare: Agent, wheel_folder: Path, needs: Needs, said: str
) -> None:
    (wheel_folder / "tinymod-1.5-py3-none-any.whl").unlink()
    with pytest.raises(UnavailableError, match=said):
        prepare(bare, needs, "here")


def test_checks_say_what_is_there_and_what_will_be_installed(connection: Connection) -> None:
    def states(**changes: Any) -> dict[str, str]:
        checks = target_of(connection, **changes).checks("profile_onnxruntime")
        return {check.name: check.state for check in checks}

    own = states()
    assert own["numpy"] == own["onnxruntime"] == own["folder"] == GOOD
    assert not Path(connection.directory, "venv").exists()
    bare = states(python=BARE)
    assert bare["Python"] == GOOD
    assert MISSING in bare.values()


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


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"python": [3, 6, 9], "tegra": "# R32 (release), REVISION: 7.1, GCID: 1"},
         r"JetPack 4: too old: its Python is 3\.6"),
        ({}, "invalid answer"),
        ({"python": "new"}, "invalid answer"),
        ({"python": [3, 12, 1], "root": "relative"}, "invalid answer"),
        ({"python": [3, 12, 1], "root": "/x\0y"}, "invalid answer"),
    ],
)  # fmt: skip
def test_what_a_probe_tells_is_not_believed_blindly(answer: dict[str, object], said: str) -> None:
    with pytest.raises(UnavailableError, match=said):
        machine_from(answer, "box")


def test_what_a_probe_tells_is_the_machine() -> None:
    told = {
        "python": [3, 10, 12], "executable": "/usr/bin/python3", "root": "/x",
        "machine": "aarch64", "system": "Linux", "libc": ["glibc", "2.35"], "host": "orin",
        "here": "/", "writable": True, "package": False, "gpu": True, "free": None, "ready": None,
        "environments": ["py3.10-cpu", "../x"], "virtual": None,
    }  # fmt: skip
    bare = machine(environments=("py3.10-cpu",))
    assert machine_from(told, "box") == bare
    more: dict[str, Any] = {"free": 7, "ready": "/x/venv/bin/python", "virtual": "/home/me/venv"}
    assert machine_from(told | more, "box") == replace(bare, **more)


@pytest.mark.parametrize(
    ("changes", "bad"),
    [
        ({"package": True}, {}),
        ({"package": True, "free": 1 << 40}, {}),
        ({}, {"worker": MISSING}),
        ({"free": 1}, {"worker": MISSING, "disk": BROKEN}),
        ({"package": True, "writable": False}, {"folder": BROKEN}),
    ],
)
def test_what_a_machine_lacks(changes: dict[str, Any], bad: dict[str, str]) -> None:
    checks = {check.name: check for check in deploy.machine_checks(machine(**changes))}
    assert {name: one.state for name, one in checks.items() if one.state not in (GOOD, "")} == bad
    assert all(checks[name].fix for name in bad if name != "worker")


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


def test_a_package_that_arrives_broken_is_refused(
    bare: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = bootstrap.package_archive()
    monkeypatch.setattr(bootstrap, "package_archive", lambda: archive[:-1000])
    with pytest.raises(Exception, match="the dld package cannot be copied there"):
        prepare(bare, Needs((), ""))


RUNTIMES = {"onnxruntime", "onnxruntime-gpu", "tensorrt", "tensorrt-rtx-cu13"}


@pytest.mark.parametrize(
    ("activity", "request_", "needed"),
    [
        ("doctor", {}, set()),
        ("profile_onnxruntime", {"provider": "CPU"}, {"onnxruntime"}),
        ("profile_onnxruntime", {"provider": "CUDA,CPU"}, {"onnxruntime-gpu"}),
        ("build", {"library": "tensorrt_rtx"}, {"tensorrt-rtx-cu13"}),
        ("build", {"library": "auto"}, {"tensorrt"}),
        ("build", {"library": "/opt/tensorrt"}, set()),
        ("accuracy", {"round": "fp16"}, {"onnxruntime"}),
        ("accuracy", {"backend": "tensorrt"}, {"onnxruntime", "tensorrt"}),
        ("accuracy", {"against": "m.engine"}, {"onnxruntime", "tensorrt"}),
        ("accuracy", {"against_provider": "CUDA"}, {"onnxruntime-gpu"}),
        ("load", {"model": "m.onnx"}, {"onnxruntime"}),
        ("load", {"model": "m.engine"}, {"tensorrt"}),
        ("placement", {"runtime": "onnxruntime"}, {"onnxruntime"}),
        ("placement", {"runtime": "tensorrt"}, {"onnxruntime", "tensorrt"}),
        ("search_precision", {}, {"onnxruntime"}),
        ("search_precision", {"backend": "tensorrt"}, {"onnxruntime", "tensorrt"}),
        ("selftest", {"backend": "cpu"}, {"onnxruntime"}),
        ("selftest", {"backend": "cuda"}, {"onnxruntime-gpu"}),
        ("selftest", {"backend": "tensorrt"}, {"onnxruntime", "tensorrt"}),
        ("tactics", {}, {"onnxruntime", "tensorrt"}),
        *((f"convert_{name}", {}, {"onnxruntime"}) for name in (
            "fp16", "sanitize", "precisions", "tensors", "quantize", "external", "inline",
            "restore")),
    ],
)  # fmt: skip
def test_runtimes_follow_the_request(
    activity: str, request_: dict[str, str], needed: set[str]
) -> None:
    needs = needs_of(activity, {"model": "m.onnx", **request_})
    assert {need.packages[0] for need in needs.modules} & RUNTIMES == needed


def test_needs_of_activities() -> None:
    assert set(NEEDS) == {info.id for info in ACTIVITIES}
    for activity, request_, package in (
        ("convert_sanitize", {}, "polygraphy"),
        ("convert_fp16", {"library": "polygraphy"}, "onnxconverter-common"),
    ):
        assert package in {need.packages[0] for need in needs_of(activity, {**request_}).modules}
    pairs: list[tuple[dict[str, Any], str]] = [
        ({"provider": "CPU"}, "CPU"),
        ({"provider": "CPU", "base_settings": {"provider": "CUDA"}}, "CUDA"),
        ({"provider": "CPU", "new_settings": {"provider": "CUDA"}}, "CUDA"),
    ]
    for pair, same in pairs:
        assert needs_of("time_pair", pair) == needs_of("profile_onnxruntime", {"provider": same})


@pytest.fixture
def user_environment(tmp_path: Path, wheel_folder: Path) -> Path:
    """The Python of a virtual environment that a user made, which has one package."""
    folder = tmp_path / "user's env"
    subprocess.run([BARE, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    (site / "theirs.py").write_text("value = 'theirs'\n")
    return folder / "bin" / "python"


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
