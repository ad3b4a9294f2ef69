"""The environment of the jobs on a target, made in this process."""

from __future__ import annotations

import fcntl
import json
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.targets.ssh.remote import environment, objects
from dld_tui.targets.ssh.remote.replies import RefusedError
from tests.support.recorded import Recorded
from tests.support.ssh_jobs import BARE, files_in

Answer = tuple[int, str, str]


def told(work: Callable[[], Any]) -> str:
    try:
        return str(work())
    except RefusedError as error:
        return f"refused: {error.message}; {error.hint}; {error.kind}"


def test_what_a_python_has(tmp_path: Path) -> None:
    numpy = metadata.version("numpy")
    wanted = {
        "numpy": ["no-such", "numpy", "onnx"], "json": ["no-such"], "numpy.linalg": ["numpy"],
        "absent": ["numpy"], "absent.more": ["numpy"], "tests.support": [],
    }  # fmt: skip
    answer = environment.look(sys.executable, wanted)
    assert answer["found"] == {"numpy": numpy, "json": "", "numpy.linalg": numpy}
    assert answer["prefix"] == sys.prefix
    problems = {
        "exit 3": "no answer",
        "echo no; echo a >&2; echo b >&2": "b",
        "echo '@dld:{}'": "no answer",
    }
    for script, problem in problems.items():
        program = tmp_path / "python"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        assert environment.look(str(program), {}) == {"found": {}, "problem": problem}
    assert "No such file" in environment.look(str(tmp_path / "none"), {})["problem"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return a function that sets what programs answer, and returns what they will be asked."""

    def answers(*given: Answer | Callable[[Sequence[str]], Answer]) -> list[str]:
        left, commands = [*given], list[str]()

        def ask(command: Sequence[str], seconds: float, **unused: Any) -> Any:
            answer = left.pop(0)
            commands.append(f"{' '.join(command)[-300:]} ({seconds} s)")
            status, output, errors = answer(command) if callable(answer) else answer
            return SimpleNamespace(status=status, output=output, errors=errors)

        monkeypatch.setattr(environment, "ask", ask)
        return commands

    return answers


def makes(folder: Path, status: int = 0) -> Callable[[Sequence[str]], Answer]:
    """Return a program that makes an environment."""

    def make(command: Sequence[str]) -> Answer:
        assert command[-1] == str(folder)
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").touch()
        return status, "printed\n", ""

    return make


def test_environments_are_made(
    asked: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    recorded: Recorded,
) -> None:  # fmt: skip
    folder, texts = tmp_path / "venv" / "py3", {}
    monkeypatch.setattr(sys, "executable", str(tmp_path / "user" / "bin" / "python"))
    config = tmp_path / "user" / "pyvenv.cfg"

    def made(title: str, *answers: Any) -> None:
        commands = asked(*answers)
        said = told(lambda: environment.create(tmp_path, "../py3"))
        lines = [said, *commands, *files_in(tmp_path)]
        texts[title] = "\n".join(lines).replace(str(tmp_path), "ROOT")

    made("no venv", (1, "some\nlast of output\n", ""))
    made("no venv, silent", (0, " \n", ""))
    made("half made", makes(folder, 1))
    made("new", makes(folder))
    made("there")
    (tmp_path / "ready").mkdir()
    for name in ("a.json", "b.json", "c.txt"):
        (tmp_path / "ready" / name).touch()
    with (folder / "dld-installing").open("w") as mark:
        fcntl.flock(mark, fcntl.LOCK_SH)
        made("somebody installs")
    made("cut off", makes(folder))
    configurations = {
        "of the user": "include-system-site-packages = TRUE",
        "of the user alone": "home = /\nInclude-System-Site-Packages=false",
    }
    for title, text in configurations.items():
        (folder / "bin" / "python").unlink()
        for one in (folder / "bin", folder):
            one.rmdir()
        config.parent.mkdir(exist_ok=True)
        config.write_text(text)
        (tmp_path / "site").mkdir(exist_ok=True)
        sites = json.dumps({"platlib": str(tmp_path / "site"), "purelib": "/u"})
        monkeypatch.setattr(environment, "new_mark", lambda: "@mark:")
        made(title, makes(folder), (0, f"@mark:{sites}", ""), (0, f"@mark:{sites}", ""))
        pth = tmp_path / "site" / "dld-user.pth"
        texts[title] += f"\n{pth.read_text()}".replace(str(tmp_path), "ROOT")
    (folder / "bin" / "python").unlink()
    for one in (folder / "bin", folder):
        one.rmdir()
    made("its Python does not work", makes(folder), (1, f"@mark:{sites}", "x\nbroken\n"))
    recorded("remote_environments", texts)


def test_pip_installs(asked: Callable[..., list[str]], tmp_path: Path, recorded: Recorded) -> None:
    python = tmp_path / "venv" / "py3" / "bin" / "python"
    python.parent.mkdir(parents=True)
    texts = {}
    cases: dict[str, list[Answer]] = {
        "no pip": [(1, "", "")], "well": [(0, "", ""), (0, "", "ERROR: no matter")],
        "not found": [(0, "", ""), (1, "", "ERROR: first\nERROR: last\nnotice")],
        "no error": [(0, "", ""), (2, "x", "a\nb" + "c" * 600)],
        "silent": [(0, "", ""), (1, "", "")],
    }  # fmt: skip
    for title, answers in cases.items():
        commands = asked(*answers)
        done = environment.pip_install(str(python), ["a>=1", "b"], ["--index", "U"])
        assert files_in(tmp_path) == []
        texts[title] = "\n".join([str(done), *commands]).replace(str(tmp_path), "ROOT")
    recorded("remote_pip", texts)


def wheel(root: Path, *entries: tuple[str, str, int]) -> str:
    """Store a wheel of files with their modes; return the name of the object."""
    name = f"{len(list(objects.folder_of(root).iterdir())):064}"
    with zipfile.ZipFile(objects.path_of(root, name), "w") as archive:
        for place, text, mode in entries:
            info = zipfile.ZipInfo(place)
            info.external_attr = mode << 16
            archive.writestr(info, text)
    return name


def unpacked(root: Path, site: Path) -> Iterator[str]:
    for name in files_in(site):
        mode = (site / name).stat().st_mode & 0o111
        yield f"{name}{' *' if mode else ''}: {(site / name).read_text()}"


def test_wheels_are_unpacked(
    asked: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    recorded: Recorded,
) -> None:  # fmt: skip
    monkeypatch.setattr(environment, "new_mark", lambda: "@mark:")
    monkeypatch.setattr(environment, "_LARGEST_WHEEL", 50)
    python, site = tmp_path / "venv" / "py3" / "bin" / "python", tmp_path / "site"
    python.parent.mkdir(parents=True)
    here = (0, f'noise\n@mark:{{"platlib": "{site}", "purelib": "{site}"}}', "")
    good = wheel(
        tmp_path, ("m/", "", 0o755), ("m/__init__.py", "1", 0o644), ("m/run", "2", 0o755),
        ("n-1.data/purelib/n/a.py", "3", 0), ("n-1.data/platlib/n/b.so", "4", 0),
        ("n-1.data/scripts/go", "5", 0), ("n-1.data/purelib", "6", 0), ("x.data", "7", 0o001),
    )  # fmt: skip
    cases: dict[str, list[str]] = {
        "good, then another": [good, wheel(tmp_path, ("m/__init__.py", "8" * 50, 0))],
        "too large": [wheel(tmp_path, ("a", "1" * 25, 0), ("b", "2" * 26, 0))],
        "absolute": [wheel(tmp_path, ("/etc/x", "", 0))],
        "above": [wheel(tmp_path, ("a/../../x", "", 0))],
        "windows": [wheel(tmp_path, ("a\\..\\x", "", 0))], "missing": ["f" * 64],
    }  # fmt: skip
    (broken := objects.path_of(tmp_path, "e" * 64)).write_bytes(b"PK")
    cases["broken"] = [broken.name]
    texts = {}
    for title, names in cases.items():
        asked(here)
        pairs = [[f"w{at}.whl", name] for at, name in enumerate(names)]
        said = told(lambda: environment.install_wheels(tmp_path, str(python), pairs))  # noqa: B023
        left = [path.name for path in (tmp_path / "venv" / "py3").iterdir()]
        lines = [said, f"left {sorted(left)}", *unpacked(tmp_path, site)]
        texts[title] = "\n".join(lines).replace(str(tmp_path), "ROOT")
    asked((0, "@mark:{}", ""))
    texts["no site"] = told(lambda: environment.install_wheels(tmp_path, str(python), []))
    texts["elsewhere"] = told(lambda: environment.install_wheels(tmp_path, BARE, []))
    recorded("remote_wheels", texts)
