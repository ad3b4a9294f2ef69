"""What is asked of a target, installed and said, for each state that it may be in."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.activities.registry import ACTIVITIES
from dld_tui.core.errors import DldError, UnavailableError
from dld_tui.core.machine.health import Check
from dld_tui.targets.ssh import deploy
from dld_tui.targets.ssh.bootstrap import Machine, machine_from
from dld_tui.targets.ssh.deploy import NEEDS, Deployment, Need, Needs, needs_of
from dld_tui.targets.ssh.transfer import Amount, Upload
from tests.support.recorded import Recorded, settled
from tests.support.ssh_jobs import QUICK


def machine(**changes: object) -> Machine:
    values = {
        "python": (3, 10, 12), "executable": "/usr/bin/python3", "root": "/x",
        "machine": "aarch64", "system": "Linux", "libc": ("glibc", "2.35"), "host": "orin",
        "here": "/", "writable": True, "package": False, "gpu": True, "free": None, "ready": None,
        "environments": (),
    }  # fmt: skip
    return Machine(**{**values, **changes})  # type: ignore[arg-type]


A = Need("a", ("a-package", "other"), "1.15")
B = Need("b.c", ("b-package",), optional=True)
HAND = Need("t", ("tensorrt",), "10", fix="Install it by hand")
READY = {"free": 1 << 40, "package": True}
ALL = {"a": "1.15", "b.c": "2", "t": "10.1"}
RTX = Needs((A,), "rtx")
ANY = Needs((HAND,), "gpu", otherwise=RTX)


class Target:
    """An agent that notes what it is asked, and answers from lists."""

    def __init__(self, there: Machine, **answers: list[Any]) -> None:
        self.machine, self.answers = there, answers
        self.python, self.where = "python3", "box"
        self.link = SimpleNamespace(connection=SimpleNamespace(name="box\x1b"))
        self.asked: list[str] = []

    async def probe(self, ready: str = "") -> Machine:
        self.asked.append(f"probe {bool(ready)}")
        return self.machine

    async def send_package(self) -> int:
        self.asked.append("send the package")
        return 7

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        said = arguments | ({"name": "KEY"} if name == "ready" else {})
        self.asked.append(f"{name} {said}")
        answers = self.answers.get(name, [])
        default = {"create": {"python": f"/x/venv/{arguments.get('name')}/bin/python"}}
        answer = answers.pop(0) if answers else default.get(name, {})
        return {"found": answer} if name == "modules" else answer


def has(*versions: dict[str, str]) -> dict[str, list[Any]]:
    return {"modules": [*versions]}


PREPARED: dict[str, tuple[Target, Needs, str]] = {
    "known to be ready": (Target(machine(**READY, ready="/x/py")), Needs((A,), "cpu"), "auto"),
    "no needs, no package": (Target(machine(free=20 << 20)), Needs((), ""), "auto"),
    "all is there": (Target(machine(**READY), **has(ALL)), Needs((A, B), "cpu"), "auto"),
    "of the virtual environment": (
        Target(machine(**READY, virtual="/v"), **has({"a": "1.100", "z": "x y"})),
        Needs((A, B), "cpu"), "auto"),
    "missing in a virtual environment": (
        Target(machine(**READY, virtual="/v"), **has({}, {"b.c": ""}, ALL), pip=[{"ok": True}]),
        Needs((A, B), "cpu"), "auto"),
    "by pip there": (
        Target(machine(**READY), **has({}, {"a": "1.14.9"}, {"a": ""}), pip=[{"ok": True}] * 2),
        Needs((A, B), "cpu"), "auto"),
    "only by pip there": (
        Target(machine(**READY), **has({}, {}), pip=[{"ok": 1, "why": "no\x1b"}]),
        Needs((A,), "cpu"), "target"),
    "from here": (
        Target(machine(**READY), **has({}, {}, ALL), pip=[{"why": "no network"}],
               receive_many=[{"sha256": []}]),
        Needs((A,), "gpu"), "auto"),
    "only from here, one is optional": (
        Target(machine(**READY), **has({}, {"a": "2"}, {"a": "2"})), Needs((A, B), "cpu"), "here"),
    "installed and still missing": (
        Target(machine(**READY), **has({}, {}, {}), pip=[{"ok": True}]),
        Needs((A,), "cpu"), "auto"),
    "by hand": (Target(machine(**READY), **has({}, {})), Needs((A, HAND), "gpu"), "auto"),
    "any library, this one is there": (Target(machine(**READY), **has(ALL)), ANY, "auto"),
    "any library, in its environment": (
        Target(machine(**READY, environments=("py3.10-gpu",)), **has({}, ALL, ALL)), ANY, "auto"),
    "any library, the other one": (
        Target(machine(**READY), **has({}, {}, {}, ALL), pip=[{"ok": True}]), ANY, "auto"),
    "any library, none": (
        Target(machine(**READY), **has({}, {}, {}), pip=[{"why": "no"}]), ANY, "target"),
    "another Python is made": (
        Target(machine(**READY), **has({}), create=[{"python": "/etc"}]),
        Needs((A,), "cpu"), "auto"),
    "not writable": (Target(machine(writable=False, here="/\x1b")), Needs((A,), "cpu"), "auto"),
    "full": (Target(machine(free=(20 << 20) - 1)), Needs((A,), "cpu"), "auto"),
    "no list of modules": (
        Target(machine(executable="", **READY), modules=["x", ["a"], ALL]), Needs((A,), "cpu"),
        "target"),
}  # fmt: skip


@pytest.fixture
def wheels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let what is fetched be one file, except of optional packages; and let it be sent."""

    async def fetch(there: Machine, names: Sequence[str], name: str) -> list[Path]:
        if "b-package" in names:
            raise UnavailableError(f"{name}: no wheel")
        (tmp_path / "w.whl").write_bytes(b"wheel")
        return [tmp_path / "w.whl"]

    async def send(upload: Any, files: Any) -> Any:
        return dict.fromkeys(files, "0" * 64)

    monkeypatch.setattr(deploy, "fetch", fetch)
    monkeypatch.setattr(Upload, "send", send)


def told(error: DldError) -> str:
    return f"{type(error).__name__}: {error.where}: {error.message}; {error.hint}; {error.details}"


def prepared(target: Any, needs: Needs, route: str) -> Iterator[str]:
    amount, steps = Amount(), list[str]()
    amount.step = steps.append  # type: ignore[method-assign, assignment]
    deployment = Deployment(target, amount, QUICK, route, ("--index", "URL"))
    try:
        done = asyncio.run(deployment.prepare(needs))
        yield f"{done.python}, installed {', '.join(done.installed) or 'nothing'}"
    except DldError as error:
        yield told(error)
    yield from target.asked
    yield from (f"note: {note}" for note in amount.notes)
    yield f"{steps}, sent {amount.sent} bytes"


def test_preparations(wheels: None, recorded: Recorded) -> None:
    recorded(
        "ssh_preparations",
        {name: "\n".join(prepared(*case)) for name, case in PREPARED.items()},
    )


def check_line(check: Check) -> str:
    return f"{check.group}: {check.name}: {check.state}: {check.found}; {check.fix}"


CHECKED: dict[str, tuple[Target, Needs]] = {
    "all is there": (Target(machine(**READY), **has(ALL)), Needs((A, B), "cpu")),
    "nothing": (Target(machine(free=20 << 20, environments=("py3.10-cpu",)), **has({})),
                Needs((A, B, HAND), "gpu")),
    "old": (Target(machine(**READY, environments=("py3.10-cpu", "py3.10-rtx")),
                   **has({"a": "1.14.9", "b.c": ""})), Needs((A, B), "cpu")),
    "any, none": (Target(machine(environments=("py3.10-gpu", "py3.10-rtx")),
                         **has({}, {"a": "2"})), ANY),
    "any, the first": (Target(machine(), **has(ALL)), ANY),
    "any, the first can be installed": (
        Target(machine(), **has({}, {"a": "2"})), Needs((A, B), "gpu", otherwise=RTX)
    ),
    "no needs": (Target(machine(free=1)), Needs((), "")),
    "not writable": (Target(machine(writable=False, here="/\x1b")), Needs((A,), "cpu")),
}  # fmt: skip


def checked(target: Any, needs: Needs) -> Iterator[str]:
    yield from map(check_line, asyncio.run(Deployment(target, Amount(), QUICK).checks(needs)))
    yield from target.asked


PROBED: dict[str, dict[str, Any]] = {
    "old": {"python": [3, 9, 19]}, "older": {"python": [2, 7, 18]},
    "a board": {"python": [3, 6, 9], "tegra": "# R32 (release), REVISION: 7.1, GCID: 1"},
    "nothing": {}, "no numbers": {"python": "new"}, "relative": {"root": "x"},
    "zero byte": {"root": "/x\0y"}, "longest": {"root": f"/{'x' * 3999}"},
    "too long": {"root": f"/{'x' * 4000}"}, "no libc": {"libc": []}, "text": {"free": "much"},
    "hostile": {"environments": ["py3.10-cpu", "../x", "", "x" * 40, "x" * 41], "ready": 0,
                "virtual": None},
    "all": {"free": 7, "ready": "/x/venv/bin/python", "virtual": "/home/me/venv",
            "writable": 0, "package": 1, "gpu": ""},
}  # fmt: skip
TOLD: dict[str, Any] = {
    "python": [3, 10, 12], "executable": "/usr/bin/python3", "root": "/x", "machine": "aarch64",
    "system": "Linux", "libc": ["glibc", "2.35"], "host": "orin", "here": "/", "writable": True,
    "package": False, "gpu": True, "environments": [],
}  # fmt: skip


def probed(changes: dict[str, Any]) -> str:
    try:
        return repr(machine_from(changes and {**TOLD, **changes}, "box")).replace("x" * 3999, "X")
    except UnavailableError as error:
        return told(error).replace("x" * 100, "X")


DOWNLOADS = [
    machine(), machine(python=(3, 12, 1), libc=("musl", "")), machine(system="Darwin\x1b"),
    machine(machine="x;rm -rf"), machine(machine="x"), machine(machine="x" * 21),
]  # fmt: skip


def downloaded(there: Machine) -> str:
    try:
        words = deploy.download_command(there, ["onnx>=1.19", "numpy"], Path("/w"))
    except UnavailableError as error:
        return told(error)
    return " ".join(words[1:])


def test_checks_probes_and_downloads(recorded: Recorded) -> None:
    recorded("ssh_checks", {
        **{name: "\n".join(checked(*case)) for name, case in CHECKED.items()},
        **{f"probe: {name}": probed(changes) for name, changes in PROBED.items()},
        "downloads": settled("\n".join(map(downloaded, DOWNLOADS))),
    })  # fmt: skip


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    *((activity, {}) for activity in NEEDS), ("of another package", {}),
    *(("profile_onnxruntime", {"provider": name}) for name in ("CUDA,CPU", "TensorRT", "NvRtx")),
    *(("build", {"library": name}) for name in ("tensorrt_rtx", "auto", "tensorrt", "/opt/trt")),
    *(("accuracy", request) for request in (
        {"backend": "tensorrt"}, {"against": "m.engine"}, {"against_provider": "CUDA"},
        {"backend": "tensorrt", "provider": "CUDA"}, {"round": "fp16"})),
    *(("load", {"model": name}) for name in ("m.onnx", "m.engine", 5)),
    ("placement", {"runtime": "tensorrt"}), ("search_precision", {"backend": "tensorrt"}),
    *(("selftest", {"backend": name}) for name in ("cpu", "cuda", "tensorrt")),
    *(("time_pair", {"provider": "CPU", name: {"provider": "CUDA"}})
      for name in ("base_settings", "new_settings")),
    ("time_pair", {"base_settings": 1}), ("tune", {"provider": "CUDA"}),
    ("convert_opset", {"verify": False}), ("convert_fp16", {"library": "polygraphy"}),
    ("check_full", {"polygraphy": True}),
]  # fmt: skip


def needed(needs: Needs) -> str:
    packages = (f"{need.requirement}{'?' * need.optional}" for need in needs.modules)
    text = f"{needs.flavour}: {' '.join(packages)}"
    return text if needs.otherwise is None else f"{text}, or {needed(needs.otherwise)}"


def test_needs(recorded: Recorded) -> None:
    assert set(NEEDS) == {info.id for info in ACTIVITIES}
    named = [f"{activity} {request or ''}".rstrip() for activity, request in REQUESTS]
    lines = [
        f"{name}: {needed(needs_of(*asked))}" for name, asked in zip(named, REQUESTS, strict=True)
    ]
    recorded("ssh_needs", {"needs": "\n".join(lines)})
    other = (replace(A, oldest="1.16"), replace(A, optional=True), B)
    sets = [RTX, ANY, *(Needs((need,), "rtx") for need in other), Needs((A,), "cpu")]
    keys = {needs.key(python) for needs in sets for python in ("python3", "python4")}
    assert len(keys) == 2 * len(sets), "each has a note of its own"
    assert Needs((A,), "rtx").key("python3") == RTX.key("python3")


def test_wheels_are_fetched_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: Recorded
) -> None:
    commands, lines = list[str](), list[str]()

    def fetched(script: str, *requirements: str, there: Machine | None = None) -> list[Path]:
        def command(machine: Machine, names: Sequence[str], folder: Path) -> list[str]:
            commands.append(" ".join(names))
            return ["/bin/sh", "-c", script, "pip", str(folder)]

        monkeypatch.setattr(deploy, "download_command", command)
        commands.clear()
        try:
            found = asyncio.run(deploy.fetch(there or machine(), requirements, "name"))
            said = ", ".join(f"{path.name} of {path.parent.name}" for path in found)
        except UnavailableError as error:
            found, said = [], told(error).replace(sys.executable, "PYTHON")
        lines.append(f"{said}: {commands}")
        return found

    load = "echo 1 > $1/b.whl; echo 2 > $1/a.whl; echo > $1/pip.log"
    fetched(load, "a")
    fetched("exit 1", "a")
    fetched(load, "a", there=machine(python=(3, 12, 0), machine="x86_64", libc=("", "")))
    first, second = fetched(load, "a", "b")
    note = first.with_name("wheels.json")
    for damage in (
        lambda: first.write_text("3"), second.unlink, note.unlink,
        lambda: note.write_text('{"requirements": ["a", "b"]}'),
    ):  # fmt: skip
        damage()
        fetched(load, "a", "b")
    assert (first.read_text(), second.read_text()) == ("2\n", "1\n")
    assert len({path.name for path in first.parent.iterdir()}) == 4
    fetched("echo 1 > $1/only.whl", "c")
    for script in (
        "echo ERROR: a; echo ERROR: b; echo c; exit 1", "echo; exit 1",
        "printf 'last\\n\\n' >&2; exit 3", "echo No module named pip; exit 1",
    ):  # fmt: skip
        fetched(script, "a", "b")
        assert not first.parent.exists()
    recorded("ssh_wheels", {"wheels": "\n".join(lines)})
