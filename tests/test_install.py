"""What `make` installs, containers copy, and the table of docs/start/install.md counts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import pytest
import tomlkit

from dld_tui.targets.process import worker_command
from scripts import aarch64, costs, resolve
from tests.support.fork_server import server

ROOT = Path(__file__).resolve().parents[1]


def steps(target: str, venv: Path, *settings: str) -> str:
    command = ["make", "--dry-run", target, f"VENV={venv}", f"PYTHON={sys.executable}", *settings]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("target", "settings", "extras"),
    [
        ("demo", (), "cpu"),
        ("demo", ("EXTRAS=cpu,parquet",), "cpu,parquet"),
        ("test", (), "cpu,dev"),
        ("check", ("EXTRAS=cpu,rtx",), "cpu,rtx,dev"),
    ],
)
def test_a_target_installs_what_it_runs(
    tmp_path: Path, target: str, settings: tuple[str, ...], extras: str
) -> None:
    assert re.findall(r"--editable '\.\[(.*)\]'", steps(target, tmp_path, *settings)) == [extras]


def test_what_the_tests_need_is_enough_for_the_demo(tmp_path: Path) -> None:
    (tmp_path / ".installed").touch()
    (tmp_path / ".developed").touch()
    for target in ("demo", "test"):
        assert "pip install" not in steps(target, tmp_path)
    (tmp_path / ".developed").unlink()
    assert "pip install" not in steps("demo", tmp_path)
    assert "cpu,dev" in steps("test", tmp_path)


def test_a_wheel_is_counted_in_blocks(tmp_path: Path) -> None:
    wheel = tmp_path / "small.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, size in (("empty.py", 0), ("one.py", 1), ("block.py", 4096), ("more.py", 4097)):
            archive.writestr(name, b"x" * size)
    assert costs.unpacked(wheel) == (1 + 1 + 2) * 4096
    assert costs.cell({"a": (1_000_000, 2_000_000), "b": (500_000, 1_000_000)}) == "1.5 / 3.0"


def test_a_wheel_for_newer_pythons_is_refused() -> None:
    chosen = {
        name: {"metadata": {"version": "2.1", "requires_python": python}}
        for name, python in (("newer", "!=3.14.1,>=3.11"), ("any", None), ("same", ">=3.10"))
    }
    assert resolve._refused(costs.PLATFORMS["JetPack 6"], chosen) == ["newer!=2.1"]
    assert resolve._refused(costs.PLATFORMS["JetPack 7"], chosen) == []


def test_every_extra_is_in_the_table_of_the_documentation() -> None:
    page = (ROOT / "docs/start/install.md").read_text(encoding="utf-8")
    project = tomlkit.parse((ROOT / "pyproject.toml").read_text(encoding="utf-8")).unwrap()
    extras = set(project["project"]["optional-dependencies"]) - {"dev"}
    assert extras <= set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


@pytest.mark.parametrize(
    ("error", "status"),
    [(aarch64.MissingError("no debootstrap"), 69), (RuntimeError("make demo: it ended with 2"), 1)],
)
def test_an_emulated_machine_that_cannot_be_made_is_no_failed_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(aarch64, "require", fail)
    monkeypatch.setattr(sys, "argv", ["aarch64", "--root", str(tmp_path)])
    assert aarch64.main() == status


def test_an_end_by_signal_reaches_what_runs_in_the_emulated_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = partial(signal.raise_signal, signal.SIGTERM)  # as `timeout` does
    monkeypatch.setattr(aarch64, "require", end)
    monkeypatch.setattr(sys, "argv", ["aarch64", "--root", str(tmp_path)])
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit, match="143"):  # subprocess.run kills its child then
            aarch64.main()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_emulated_machine_runs_tests_that_are_there(tmp_path: Path) -> None:
    assert [name for name in aarch64.TESTED if not (ROOT / name).exists()] == []
    printed = "took 12.5 10.25\nVmRSS:\t  71234 kB\ntook 20 19\n"
    assert aarch64._took(printed) == [2.25, 1.0]
    assert aarch64._memory(printed) == pytest.approx(71.234)
    log = tmp_path / "pip.log"
    log.write_text(
        "2026-11-22T20:00:00,000   Downloading onnx-1.23.2-cp310-abi3-manylinux.whl (16.9 MB)\n"
        "2026-11-22T20:00:01,000   Using cached numpy-2.4.6-cp311.whl (15.0 MB)\n"
        "2026-11-22T20:00:01,000   Downloading click-8.5.1-py3-none-any.whl (126 kB)\n"
    )
    assert aarch64.downloaded(log) == pytest.approx(17.026)


RECIPES = sorted((ROOT / "containers").glob("*.Dockerfile"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe(recipe: Path) -> None:
    lines = re.sub(r"\\\n", " ", recipe.read_text()).splitlines()
    steps = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    assert steps[:2] == [["ARG", "BASE"], ["FROM", "${BASE}"]]
    assert {step[0] for step in steps} <= {"ARG", "FROM", "RUN", "COPY", "ENV", "WORKDIR", "CMD"}
    copied = [source for step in steps if step[0] == "COPY" for source in step[1:-1]]
    kept = Path(f"{recipe}.dockerignore").read_text().split()
    assert {f"!{source}" for source in copied} == {line for line in kept if line[0] == "!"}
    assert all((ROOT / source).exists() for source in copied)


def test_there_is_one_for_each_machine() -> None:
    assert [recipe.name for recipe in RECIPES] == ["l4t.Dockerfile", "x86_64.Dockerfile"]


def test_a_worker_is_forked_whatever_the_environment_of_pytest() -> None:
    assert server.takes(worker_command(), os.environ)
