from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from dld_tui.core.errors import ExitStatus, UnavailableError
from dld_tui.core.report.sweep import load_sweep, sweep_text
from dld_tui.core.settings import saved_targets
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.targets.ssh.results import JobsStore, StoredJob, StoredOutput
from tests.support import models
from tests.support.cli import Dld
from tests.support.jobs import wait_until
from tests.support.recorded import Recorded
from tests.support.sshd import Sshd

needs_onnxruntime = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None, reason="no onnxruntime here"
)


@pytest.fixture
def box(sshd: Sshd, tmp_path: Path) -> Connection:
    """Save a target whose Python has all packages."""
    return save("box", sshd, tmp_path)


def save(name: str, sshd: Sshd, folder: Path) -> Connection:
    known_hosts = folder / "known_hosts"
    known_hosts.write_text(sshd.known_line)
    connection = Connection(
        name, sshd.host, sshd.port, sshd.user, "key", sshd.user_key, known_hosts,
        config=False, directory=str(folder / f"deployed {name}"), python=sys.executable,
    )  # fmt: skip
    saved_targets.save(connection)
    return connection


@pytest.mark.broad
@needs_onnxruntime
def test_a_job_is_found_again_after_its_program_died(
    dld: Dld, box: Connection, tmp_path: Path
) -> None:
    model = models.write(tmp_path, models.CHAIN.replace(", float[2] unused = {5, 6}", ""))
    report = tmp_path / "out.dldprof"
    command = [
        sys.executable, "-m", "dld_tui", "profile", "onnxruntime", str(model), "-o", str(report),
        "--shape", "x:3x4", "--duration", "1", "--target", "box",
    ]  # fmt: skip
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": "src"})
    running = Path(box.directory, "jobs")
    wait_until(lambda: any(running.glob("*/events")), "the job runs", 30)
    process.kill()
    process.wait()

    listed = dld("target", "jobs", "--json").json["jobs"]
    assert [(job["target"], job["activity"]) for job in listed] == [("box", "profile_onnxruntime")]
    assert listed[0]["outputs"] == [str(report)]
    assert listed[0]["job"] in dld("target", "jobs", "box").out
    assert not report.exists()
    attached = dld("target", "attach", listed[0]["job"][-8:])
    assert (attached.status, attached.out) == (0, f"{report}\n")
    assert dld("report", report, "--json").json["passes"] > 0
    assert dld("target", "jobs", "box", "--json").json == {"jobs": []}
    assert "No jobs" in dld("target", "jobs").err
    assert "not a job started" in dld.fails(2, "target", "attach", listed[0]["job"])


@pytest.mark.broad
@needs_onnxruntime
def test_several_targets_at_once_are_compared(
    dld: Dld, sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save("one", sshd, tmp_path)
    save("two", sshd, tmp_path)
    model = models.write(tmp_path, models.layered())
    arguments = ["profile", "onnxruntime", model, "--shape", "x:2x4", "--iterations", 5]
    done = dld(*arguments, "--target", "one", "--target", "local", "--target", "two", "--json")
    assert done.status == ExitStatus.DONE, done.err
    assert [Path(report["path"]).name for report in done.json["reports"]] == [
        "model-one.dldprof", "model-local.dldprof", "model-two.dldprof",
    ]  # fmt: skip
    assert "given twice" in dld.fails(2, *arguments, "--target", "one", "--target", "one")

    # What fails on one target does not stop the others.
    saved_targets.save(Connection("gone", "127.0.0.1", 1, config=False))
    failed = dld(*arguments, "-o", "r.dldprof", "--target", "gone", "--target", "local")
    assert failed.status == ExitStatus.UNAVAILABLE
    assert (tmp_path / "r-local.dldprof").exists()
    assert not (tmp_path / "r-gone.dldprof").exists()


@pytest.mark.broad
def test_doctor_says_what_a_target_has(dld: Dld, box: Connection) -> None:
    done = dld("doctor", "--target", "box", "--json")
    groups = {check["group"] for check in done.json["checks"]}
    assert {"Target", "Packages", "Python", "Folders"} <= groups
    assert "Terminal" not in groups  # that of a target is nobody's
    names = {check["name"] for check in done.json["checks"]}
    assert {"disk", "worker", "onnxruntime", "temporary disk"} <= names


@pytest.mark.real_workers
def test_doctor_works_on_a_bare_target(dld: Dld, box: Connection) -> None:
    bare = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    saved_targets.save(changed(box, python=str(bare)))
    done = dld("doctor", "--target", "box", "--json")
    missing = {c["name"]: c for c in done.json["checks"] if c["state"] == "missing"}
    assert missing
    assert not (Path(box.directory) / "venv").exists()


IDS = [f"20260102-03040{number}-{number}abcdef0" for number in range(5)]


class Boxes:
    """Stands for targets: two that have jobs, one that has none, and one that is off."""

    asked: ClassVar[list[str]] = []

    def __init__(self, connection: Connection) -> None:
        self._name = connection.name

    def jobs(self) -> list[Any]:
        if self._name == "off":
            raise UnavailableError("off does not answer", hint="Switch it on")
        known = {"one": IDS[:2], "two": IDS[3:]}.get(self._name, [])
        return [
            SimpleNamespace(id=id, activity=f"activity\x1b{number}", started=1e9 + number,
                            state=("running", "finished")[number])
            for number, id in enumerate(known)
        ]  # fmt: skip

    def attach(self, stored: StoredJob) -> Any:
        self.asked.append(f"attach {stored.id} on {self._name}")
        return contextlib.nullcontext(SimpleNamespace(
            cancel=lambda: self.asked.append("cancel"), wait=lambda: self.asked.append("wait"),
            result=lambda tell: {"answer": 42},
        ))  # fmt: skip

    def wipe(self, *, results: bool) -> None:
        self.asked.append(f"wipe {self._name}, results {results}")

    def clean(self, days: float, *, results: bool) -> Any:
        self.asked.append(f"clean {self._name}, {days} days, results {results}")
        return SimpleNamespace(jobs=len(self.jobs()), bytes=2048, unfetched=IDS[:2])


def test_what_is_told_of_jobs_and_files_of_targets(
    dld: Dld, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dld_tui.targets.ssh.target.SshTarget", Boxes)
    monkeypatch.setattr("dld_tui.cli.setup.target.ask_on_terminal", lambda: Boxes.asked.append("?"))
    clock = SimpleNamespace(time=lambda: 1e9 + 7200)
    monkeypatch.setattr("dld_tui.targets.ssh.results.time", clock)
    told = {}

    def tell(*words: str) -> None:
        done = dld("target", *words)
        told[" ".join(words)] = f"{done.out}{done.err}status {done.status}, asked {Boxes.asked}"
        Boxes.asked.clear()

    tell("jobs", "--json")
    told["jobs of nobody"] = told.pop("jobs --json")
    for name in ("off", "one", "two", "idle"):
        saved_targets.save(Connection(name, "there", directory="d"))
    outputs = [StoredOutput(f"{name}\x1b.dldprof", name, needed=name != "b") for name in "abc"]
    for at, target in ((0, "off"), (1, "one"), (2, "away"), (4, "two")):
        JobsStore().put(StoredJob(IDS[at], target, "profile_onnxruntime", 0.0, tuple(outputs[:at])))
    for words in (
        "jobs", "jobs --json", "jobs one", "jobs two --json", "jobs idle", "jobs off", "jobs no",
        f"attach {IDS[4]}", f"attach {IDS[1][-8:]} --json", "attach abcdef0", "attach 2abcdef0",
        f"attach {IDS[4]} --cancel", "clean one", "clean two --days 2 --unfetched",
        "clean idle --all", "clean one --all --unfetched", "clean none",
    ):  # fmt: skip
        tell(*words.split())
    recorded("jobs_of_targets", told)


@pytest.mark.broad
@needs_onnxruntime
def test_a_sweep_of_several_targets_is_one_and_goes_on_with_those_that_were_lost(
    dld: Dld, sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save("one", sshd, tmp_path)
    saved_targets.save(Connection("lost", "127.0.0.1", 1, config=False))
    model = models.write(tmp_path, models.layered())
    words = ["sweep", model, "--batch", "1,2", "--duration", 0.06, "-o", "s.sweep.json"]
    places = ["--target", "one", "--target", "lost"]
    failed = dld(*words, *places)
    assert failed.status == ExitStatus.UNAVAILABLE
    assert "are kept" in failed.err
    assert not Path("s.sweep.json").exists()
    part = load_sweep(Path("s-one.sweep.json"))

    save("lost", sshd, tmp_path)
    done = dld(*words, *places, "--json")
    assert done.status == ExitStatus.DONE, done.err
    assert "one: known from before" in done.err
    assert "are kept" not in done.err
    found = load_sweep(Path("s.sweep.json"))
    assert [point.at for point in found.points] == [
        ("one", 1), ("one", 2), ("lost", 1), ("lost", 2)
    ]  # fmt: skip
    assert found.points[0].rounds_ms == part.points[0].rounds_ms
    assert [axis["name"] for axis in done.json["axes"]] == ["target", "batch"]
    assert not [*tmp_path.glob("s-*.json")]
    assert "exists" in dld.fails(2, *words, *places)

    alone = dld(*words[:-1], "u.sweep.json", "--target", "one", "--json")
    assert alone.json["report"] == "u.sweep.json"

    # What another request or another model left is not taken for this one.
    for other in (replace(part, digest="another"), replace(part, settings={})):
        Path("t-one.sweep.json").write_text(sweep_text(other))
        assert "exists" in dld.fails(2, *words[:-1], "t.sweep.json", *places)
