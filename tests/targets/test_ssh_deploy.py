from __future__ import annotations

import ast
import asyncio
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.activities.registry import ACTIVITIES, activities
from dld_tui.core.errors import UnavailableError
from dld_tui.core.machine.health import BROKEN, GOOD, MISSING
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.targets.ssh import bootstrap, deploy, loop
from dld_tui.targets.ssh.bootstrap import Machine, machine_from
from dld_tui.targets.ssh.channel import Agent
from dld_tui.targets.ssh.deploy import NEEDS, Deployment, Need, Needs, Prepared, needs_of
from dld_tui.targets.ssh.link import Link
from dld_tui.targets.ssh.transfer import Amount
from tests.support.asker import Answers
from tests.support.jobs import wait_until
from tests.support.ssh_jobs import QUICK, is_running, script, target_of
from tests.support.tiny_wheel import write_wheel

TINY = Needs((Need("tinymod", ("tinymod",), "1.0"),), "cpu")
BARE = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
"""A Python without the packages of the tests."""


@pytest.mark.parametrize(
    ("there", "state", "found"),
    [
        ({}, MISSING, "not there"),
        ({"onnx": "1.14.9"}, MISSING, "1.14.9, older than 1.15"),
        ({"onnx": "1.15"}, GOOD, "1.15"),
        ({"onnx": ""}, GOOD, "there"),
    ],
)
def test_what_is_said_of_a_package(there: dict[str, str], state: str, found: str) -> None:
    check = deploy._check(Need("onnx", ("onnx",), "1.15"), there)
    assert (check.name, check.state, check.found) == ("onnx", state, found)
    assert bool(check.fix) is (state == MISSING)
    assert deploy._check(Need("onnx", ("onnx",), fix="ask"), {}).fix == "ask"


@pytest.fixture
def wheel_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, the only place where the pip here looks."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    write_wheel(folder)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def amount() -> Amount:
    return Amount()


@pytest.fixture
def agent(connection: Connection) -> Iterator[Agent]:
    one = Agent(Link(changed(connection, python=BARE), Answers()))
    yield one
    loop.call(one.link.close(), 60)


def prepare(
    agent: Agent, needs: Needs, route: str = "auto", options: tuple[str, ...] = (),
    amount: Amount | None = None,
) -> Prepared:  # fmt: skip
    deployment = Deployment(agent, amount or Amount(), QUICK, route, options)
    return loop.call(deployment.prepare(needs), 120)


def imported(python: str) -> str:
    code = "import tinymod, tinymod.more; print(tinymod.value, tinymod.more.value)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr


def test_packages_are_sent_where_the_target_has_no_network(
    agent: Agent, connection: Connection, wheel_folder: Path, amount: Amount
) -> None:
    prepared = prepare(agent, TINY, "here", amount=amount)
    assert prepared.installed == ("tinymod>=1.0",)
    assert prepared.python.startswith(f"{connection.directory}/venv/")
    assert imported(prepared.python) == "1 2"
    sent = amount.sent

    # The second time nothing is looked for, installed or sent.
    (wheel_folder / "tinymod-1.5-py3-none-any.whl").unlink()
    again = prepare(agent, TINY, "here", amount=amount)
    assert again.python == prepared.python
    assert again.installed == ()
    assert amount.sent == sent


def test_the_pip_of_the_target_is_used_where_it_has_one(agent: Agent, wheel_folder: Path) -> None:
    has_pip = subprocess.run([BARE, "-m", "pip", "--version"], capture_output=True, check=False)
    if has_pip.returncode:
        pytest.skip("the Python that stands in for a bare one has no pip")
    options = ("--no-index", "--find-links", str(wheel_folder))
    prepared = prepare(agent, TINY, "target", options)
    assert imported(prepared.python) == "1 2"


def test_where_the_target_cannot_fetch_it_is_done_from_here(
    agent: Agent, wheel_folder: Path, amount: Amount
) -> None:
    options = ("--no-index", "--find-links", "/nowhere")
    prepared = prepare(agent, TINY, "auto", options, amount)
    assert imported(prepared.python) == "1 2"
    assert any("cannot download packages" in note for note in amount.notes)


def test_what_nobody_can_fetch_is_named(agent: Agent, wheel_folder: Path) -> None:
    needs = Needs((Need("no_such", ("no-such-package",), "3"),), "cpu")
    with pytest.raises(UnavailableError, match=r"no-such-package>=3: neither .* by hand"):
        prepare(agent, needs, "here")


def test_an_optional_package_may_be_missing(
    agent: Agent, wheel_folder: Path, amount: Amount
) -> None:
    more = Need("no_such", ("no-such-package",), "3", optional=True)
    prepared = prepare(agent, Needs((*TINY.modules, more), "cpu"), "here", amount=amount)
    assert imported(prepared.python) == "1 2"
    assert any("it is skipped" in note for note in amount.notes)


def test_what_people_must_install_says_how(agent: Agent) -> None:
    needs = Needs((Need("no_such", ("tensorrt",), fix="Do this"),), "gpu")
    with pytest.raises(UnavailableError, match=r"tensorrt is missing\. Do this"):
        prepare(agent, needs)


def test_a_python_that_has_all_is_used_as_it_is(connection: Connection) -> None:
    target = target_of(connection)
    states = {check.name: check.state for check in target.checks("profile_onnxruntime")}
    assert states["numpy"] == states["onnxruntime"] == states["folder"] == GOOD
    assert not Path(connection.directory, "venv").exists()


def test_a_bare_target_says_what_will_be_installed(connection: Connection) -> None:
    checks = target_of(connection, python=BARE).checks("profile_onnxruntime")
    states = {check.name: check.state for check in checks}
    assert states["Python"] == GOOD
    assert MISSING in states.values()


def test_no_python(connection: Connection) -> None:
    with pytest.raises(UnavailableError, match=r"it has no python3\.99\. Install one there"):
        target_of(connection, python="python3.99").jobs()


def test_an_old_python_says_so(connection: Connection, tmp_path: Path) -> None:
    python = tmp_path / "python3.8"
    python.write_text(
        f"""#!/bin/sh
shift
code="import sys; sys.version_info = (3, 8, 10); sys.argv = sys.argv[1:]; exec(sys.argv[0])"
exec {sys.executable} -c "$code" "$@"
"""
    )
    python.chmod(0o755)
    with pytest.raises(UnavailableError, match=r"its Python is 3\.8\.10; 3\.10 or newer"):
        target_of(connection, python=str(python)).jobs()


def test_an_old_jetpack_says_so() -> None:
    answer = {"python": [3, 6, 9], "tegra": "# R32 (release), REVISION: 7.1, GCID: 1"}
    with pytest.raises(UnavailableError, match=r"JetPack 4: too old: its Python is 3\.6"):
        machine_from(answer, "nano")


def test_the_probe_runs_on_every_old_python() -> None:
    assert "f'" not in bootstrap.PROBE
    assert 'f"' not in bootstrap.PROBE
    compile(bootstrap.PROBE, "probe", "exec", dont_inherit=True)


def test_a_folder_that_cannot_be_written(connection: Connection, tmp_path: Path) -> None:
    target = target_of(connection, directory="/dev/null/x")
    job = target.start("fake", script(["finish"]))
    with pytest.raises(UnavailableError, match="no permission to write to /dev/null"), job:
        job.result()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_write_permission(connection: Connection, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    checks = target_of(connection, directory=str(closed / "x")).checks("doctor")
    assert {check.name: check.state for check in checks}["folder"] == BROKEN


def test_the_cache_variable_of_the_target_is_honoured(
    connection: Connection, tmp_path: Path
) -> None:
    from dld_tui.core.settings.saved_targets import DEFAULT_DIRECTORY

    cache = tmp_path / "cache of target"
    target = target_of(
        connection, directory=DEFAULT_DIRECTORY, environment={"NV_DLD_CACHE_DIR": str(cache)}
    )
    assert target.jobs() == []
    assert (cache / "target" / "package").is_dir()


def test_a_package_that_arrives_broken_is_refused(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = bootstrap.package_archive()
    monkeypatch.setattr(bootstrap, "package_archive", lambda: archive[:-1000])
    with pytest.raises(Exception, match="the dld package cannot be copied there"):
        prepare(agent, Needs((), ""))


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"python": "new"},
        {"python": [3, 12, 1], "root": "relative"},
        {"python": [3, 12, 1], "root": "/x\0y"},
    ],
)
def test_a_probe_that_makes_no_sense(answer: dict[str, object]) -> None:
    with pytest.raises(UnavailableError, match="invalid answer"):
        machine_from(answer, "box")


def machine(**changes: object) -> Machine:
    values = {
        "python": (3, 10, 12), "executable": "/usr/bin/python3", "root": "/x",
        "machine": "aarch64", "system": "Linux", "libc": ("glibc", "2.35"), "host": "orin",
        "here": "/", "writable": True, "package": False, "gpu": True, "free": None, "ready": None,
        "environments": (),
    }  # fmt: skip
    return Machine(**{**values, **changes})  # type: ignore[arg-type]


def test_wheels_are_those_of_the_target() -> None:
    tags = deploy.platform_tags(machine())
    assert tags[0] == "manylinux_2_35_aarch64"
    assert {"manylinux_2_17_aarch64", "manylinux2014_aarch64", "linux_aarch64"} < set(tags)
    assert "manylinux1_aarch64" not in tags
    command = deploy.download_command(machine(), ["onnx>=1.19"], Path("/w"))
    assert command[command.index("--python-version") + 1] == "3.10"
    assert "cp310" in command
    assert command[-1] == "onnx>=1.19"
    alpine = deploy.platform_tags(machine(libc=("", ""), machine="x86_64"))
    assert alpine[-1] == "musllinux_1_0_x86_64"
    with pytest.raises(UnavailableError, match="Darwin"):
        deploy.platform_tags(machine(system="Darwin"))
    with pytest.raises(UnavailableError, match="cannot be downloaded"):
        deploy.platform_tags(machine(machine="x;rm -rf"))


def test_needs_follow_the_request() -> None:
    def packages(activity: str, **request: str) -> set[str]:
        return {need.packages[0] for need in needs_of(activity, {**request}).modules}

    assert "onnxruntime" in packages("profile_onnxruntime", provider="CPU")
    assert "onnxruntime-gpu" in packages("profile_onnxruntime", provider="CUDA,CPU")
    assert "tensorrt-rtx-cu13" in packages("build", library="tensorrt_rtx")
    assert "tensorrt" in packages("build", library="auto")
    assert packages("build", library="/opt/tensorrt").isdisjoint({"tensorrt", "tensorrt-rtx-cu13"})
    assert packages("doctor") == set()
    assert "onnxruntime" in packages("accuracy", model="m.onnx", round="fp16")
    assert {"onnxruntime", "tensorrt"} <= packages("accuracy", model="m.onnx", backend="tensorrt")
    assert "tensorrt" in packages("accuracy", model="m.onnx", against="m.engine")
    assert "onnxruntime-gpu" in packages("accuracy", model="m.onnx", against_provider="CUDA")
    runtimes = {"onnxruntime", "onnxruntime-gpu", "tensorrt"}
    for activity, request, needed in (
        ("load", {"model": "m.onnx"}, {"onnxruntime"}),
        ("load", {"model": "m.engine"}, {"tensorrt"}),
        ("placement", {"runtime": "onnxruntime"}, {"onnxruntime"}),
        ("placement", {"runtime": "tensorrt"}, {"onnxruntime", "tensorrt"}),
        ("search_precision", {}, {"onnxruntime"}),
        ("search_precision", {"backend": "tensorrt"}, {"onnxruntime", "tensorrt"}),
        ("selftest", {"backend": "cpu"}, {"onnxruntime"}),
        ("selftest", {"backend": "cuda"}, {"onnxruntime-gpu"}),
        ("selftest", {"backend": "tensorrt"}, {"onnxruntime", "tensorrt"}),
    ):
        assert packages(activity, **request) & runtimes == needed, (activity, request)
    assert {"onnxruntime", "tensorrt"} <= packages("tactics")
    for conversion in (
        "fp16",
        "sanitize",
        "precisions",
        "tensors",
        "quantize",
        "external",
        "inline",
        "restore",
    ):
        assert "onnxruntime" in packages(f"convert_{conversion}"), conversion
    assert "polygraphy" in packages("convert_sanitize")
    assert "onnxconverter-common" in packages("convert_fp16", library="polygraphy")


def test_a_pair_needs_what_either_version_runs_on() -> None:
    plain = needs_of("time_pair", {"provider": "CPU"})
    assert plain == needs_of("profile_onnxruntime", {"provider": "CPU"})
    for side in ("base_settings", "new_settings"):
        found = needs_of("time_pair", {"provider": "CPU", side: {"provider": "CUDA"}})
        assert found == needs_of("profile_onnxruntime", {"provider": "CUDA"})


def test_needs_of_every_activity_are_declared() -> None:
    assert set(NEEDS) == {info.id for info in ACTIVITIES}


@pytest.mark.broad
def test_every_activity_that_runs_onnxruntime_brings_it() -> None:
    for info in activities():
        needs = needs_of(info.id, {"polygraphy": True})
        if needs.modules and "onnxruntime" in imported_by(info.run.partition(":")[0]):
            assert "onnxruntime" in {need.module for need in needs.modules}, info.id


def imported_by(module: str) -> set[str]:
    """Return what a module imports from outside, itself or by our backends, at any depth."""
    found: set[str] = set()
    seen: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if not name.startswith(("dld_tui.activities", "dld_tui.backends")):
            found.add(name.partition(".")[0])
            continue
        spec = None if name in seen else importlib.util.find_spec(name)
        seen.add(name)
        if spec is None or spec.origin is None:
            continue
        for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                todo.append(node.module)
                if node.module == "dld_tui.backends":
                    todo += [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                todo += [alias.name for alias in node.names]
    return found


RTX = Needs((Need("tinymod", ("tinymod",), "1.0"),), "rtx")
ANY = Needs((Need("no_such", ("tensorrt",), fix="Do this"),), "gpu", otherwise=RTX)


def test_any_library_is_the_one_that_can_be_installed(agent: Agent, wheel_folder: Path) -> None:
    prepared = prepare(agent, ANY, "here")
    assert imported(prepared.python) == "1 2"
    assert prepared.installed == ("tinymod>=1.0",)


def test_any_library_where_none_can_be_installed(agent: Agent, wheel_folder: Path) -> None:
    (wheel_folder / "tinymod-1.5-py3-none-any.whl").unlink()
    with pytest.raises(UnavailableError, match=r"tensorrt is missing, .* tinymod.*Do this"):
        prepare(agent, ANY, "here")


@pytest.fixture
def user_environment(tmp_path: Path, wheel_folder: Path) -> Path:
    """The Python of a virtual environment that a user made, which has one package."""
    folder = tmp_path / "user's env"
    subprocess.run([BARE, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    (site / "theirs.py").write_text("value = 'theirs'\n")
    return folder / "bin" / "python"


def test_a_virtual_environment_runs_the_job_where_optional_packages_are_missing(
    connection: Connection, user_environment: Path, amount: Amount
) -> None:
    agent = Agent(Link(changed(connection, python=str(user_environment)), Answers()))
    optional = Need("tinymod", ("tinymod",), "1.0", optional=True)
    needs = Needs((Need("theirs", ("theirs",)), optional), "cpu")
    try:
        assert prepare(agent, needs, "here", amount=amount).python == str(user_environment)
        assert [note for note in amount.notes if "pip install tinymod>=1.0" in note]
        assert prepare(agent, needs, "here").python == str(user_environment)  # by the note there
    finally:
        loop.call(agent.link.close(), 60)


def files_of(folder: Path) -> list[Path]:
    """Return what is in a folder, but for what Python keeps of each module that it imports."""
    return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)


def test_what_a_virtual_environment_lacks_is_added_beside_it(
    connection: Connection, user_environment: Path
) -> None:
    agent = Agent(Link(changed(connection, python=str(user_environment)), Answers()))
    before = files_of(user_environment.parents[1])
    try:
        needs = Needs((Need("theirs", ("theirs",)), *TINY.modules), "cpu")
        python = prepare(agent, needs, "here").python
    finally:
        loop.call(agent.link.close(), 60)
    assert python.startswith(f"{connection.directory}/venv/")
    code = "import theirs, tinymod; print(theirs.value, tinymod.value)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "theirs 1\n"
    assert files_of(user_environment.parents[1]) == before

    # Another Python of the same version does not get that environment.
    other = Agent(Link(changed(connection, python=BARE), Answers()))
    try:
        assert prepare(other, TINY, "here").python != python
    finally:
        loop.call(other.link.close(), 60)


def test_versions_are_compared_by_number() -> None:
    need = Need("numpy", ("numpy",), "2.2")
    assert need.serves("2.10.1")
    assert need.serves("")  # it does not say
    assert not need.serves("1.26.4")


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
