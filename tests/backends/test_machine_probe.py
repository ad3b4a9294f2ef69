from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.backends.machine import probe
from dld_tui.backends.machine.jetson import FAILED, Jetson, ToolAnswer
from dld_tui.backends.machine.probe import (
    Library,
    conflict_checks,
    counter_checks,
    dla_checks,
    gpu_checks,
    library_check,
    part_checks,
)
from dld_tui.core.machine.health import BROKEN, GOOD, MISSING, WEAK, Check
from dld_tui.core.process.installation import packages_of
from tests.support.jetson_boards import BOARDS, Board, answers, place, put

SMI = "| NVIDIA-SMI 580.65   Driver Version: 580.65   CUDA Version: 13.0  |\n"


def test_cuda_and_clocks() -> None:
    def tool(command: Sequence[str]) -> str | None:
        return (
            SMI if len(command) == 1 else "345, 1980, 2619, Disabled\n1980, 1980, 2619, Enabled\n"
        )

    cuda, first, second = probe.cuda_checks(tool)
    assert cuda.found.startswith("13.0")
    assert (first.state, first.fix) == (WEAK, "sudo nvidia-smi -pm 1")
    assert second.state == GOOD
    assert list(probe.cuda_checks(lambda command: None)) == []


def checks_of(board: Jetson) -> dict[str, Check]:
    return {check.name: check for check in probe.board_checks(board)}


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_what_each_board_is_told(tmp_path: Path, board: Board) -> None:
    checks = checks_of(place(tmp_path / "root", board))
    number, name = board.fastest
    mode = checks["power mode"]
    if f": {name}\n" in board.printed:
        assert (mode.state, mode.fix) == (GOOD, "")
        assert "the fastest of" in mode.found
    else:
        assert (mode.state, mode.fix) == (WEAK, f"sudo nvpmodel -m {number}")
        assert f"the fastest is {name} (mode {number})" in mode.found
    clocks = checks["clocks"]
    assert (clocks.state, clocks.fix) == (
        (GOOD, "") if board.is_fixed else (WEAK, "sudo jetson_clocks")
    )
    release = checks["release"]
    assert release.state == {4: BROKEN, 5: WEAK}.get(board.jetpack, GOOD)
    assert f"JetPack {board.jetpack}" in release.found

    user = checks_of(place(tmp_path / "root", board, as_root=False))
    assert user["clocks"].state == WEAK
    assert user["clocks"].found == "unknown: only root may ask jetson_clocks"


def test_an_old_release_names_what_the_board_can_have(tmp_path: Path) -> None:
    fixes = {
        name: checks_of(place(tmp_path / "root", BOARDS[name]))["release"].fix
        for name in ("Nano", "AGX Xavier", "Xavier NX", "AGX Orin, JetPack 5")
    }
    assert "another machine" in fixes["Nano"]
    assert "JetPack 5" in fixes["AGX Xavier"]
    assert "another machine for TensorRT" in fixes["Xavier NX"]
    assert "JetPack 7" in fixes["AGX Orin, JetPack 5"]


def test_a_mode_that_cannot_be_compared_is_not_shown_as_good(tmp_path: Path) -> None:
    board = place(tmp_path, BOARDS["Orin Nano Super"])
    board.tool = answers("NV Power Mode: MY_MODE\n9\n")
    mode = checks_of(board)["power mode"]
    assert mode.state == WEAK
    assert "does not list" in mode.found
    (tmp_path / "etc/nvpmodel.conf").unlink()
    mode = checks_of(board)["power mode"]
    assert (mode.state, mode.fix) == (WEAK, "")
    assert "cannot be read" in mode.found


def test_a_container_without_tools_and_files_gets_one_line_each(tmp_path: Path) -> None:
    put(tmp_path, "etc/nv_tegra_release", "odd\n")
    put(tmp_path, ".dockerenv", "")
    checks = checks_of(Jetson(tmp_path, answers()))
    assert {name: check.state for name, check in checks.items()} == dict.fromkeys(
        ("release", "power mode", "clocks"), WEAK
    )
    assert checks["release"].found == "unknown: /etc/nv_tegra_release is odd"
    assert "no nvpmodel in this container" in checks["power mode"].found
    assert all("outside of the container" in check.fix for check in checks.values())
    board = place(tmp_path / "board", BOARDS["Nano"])
    (tmp_path / "board/etc/nv_tegra_release").unlink()
    release = checks_of(board)["release"]
    assert release.found == "unknown: no /etc/nv_tegra_release here"

    (tmp_path / ".dockerenv").unlink()
    checks = checks_of(Jetson(tmp_path, answers()))
    assert checks["power mode"].fix == "sudo apt install nvidia-l4t-nvpmodel"
    assert checks["clocks"].found == "unknown: jetson_clocks is not installed"
    assert list(probe.board_checks(Jetson(tmp_path / "none", answers()))) == []


def test_clocks_that_nothing_is_known_of(tmp_path: Path) -> None:
    board = place(tmp_path, BOARDS["AGX Thor"])
    for printed, found in (
        ("Online CPUs: 0-13\n", "no known line about the GPU"),
        ("gpu-gpc-0 MinFreq= MaxFreq=1575000000\n", "gpu-gpc-0 unknown to 1575 MHz, now unknown"),
    ):
        board.tool = answers(clocks=printed)
        clocks = checks_of(board)["clocks"]
        assert clocks.state == WEAK
        assert found in clocks.found


def test_what_the_driver_does_not_tell_is_unknown(tmp_path: Path) -> None:
    machine = Jetson(tmp_path, answers())

    def tool(command: Sequence[str]) -> str | None:
        if len(command) == 1:
            return "| Driver Version: N/A   CUDA Version: N/A  |\n"
        return "[N/A], [N/A], [N/A], [N/A]\n345, 1980, [N/A], [N/A]\n"

    cuda, first, second = probe.cuda_checks(tool, machine)
    assert [check.state for check in (cuda, first, second)] == [WEAK] * 3
    assert "[N/A]" not in cuda.found + first.found + second.found
    # Those of a Jetson are told by its own files, and it has no persistence mode.
    jetson = place(tmp_path, BOARDS["Orin Nano"])
    (only,) = probe.cuda_checks(lambda command: SMI, jetson)
    assert only.name == "CUDA"


def test_groups_of_a_jetson(tmp_path: Path) -> None:
    assert list(probe.group_checks(tmp_path, frozenset(), 1000)) == []
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvhost-gpu").touch()
    video, debug = probe.group_checks(tmp_path, frozenset({"video"}), 1000)
    assert video.state == GOOD
    assert debug.state == WEAK
    assert "usermod -aG debug" in debug.fix
    assert list(probe.group_checks(tmp_path, frozenset(), 0)) == []


def test_disks(tmp_path: Path) -> None:
    cache, temporary = probe.disk_checks(tmp_path / "not" / "yet")
    assert "free for" in cache.found
    assert temporary.name == "temporary disk"


def test_clocks_that_a_killed_run_left_can_be_restored(tmp_path: Path) -> None:
    board = place(tmp_path, BOARDS["Orin Nano Super"])
    put(tmp_path, "run/dld-tui-jetson-clocks", "what they were\n")
    check = checks_of(board)["clocks"]
    assert check.state == WEAK
    assert check.fix == "sudo jetson_clocks --restore /run/dld-tui-jetson-clocks"
    assert "left so by one that was killed" in check.found


LISTING = """\
GPU 0: NVIDIA H100 (UUID: GPU-1f4c)
GPU 1: NVIDIA H100 (UUID: GPU-5d5b)
  MIG 3g.40gb     Device  0: (UUID: MIG-11c29e81-e611-50b5-b5ef-609c0a0fe58b)
  MIG 1g.10gb     Device  1: (UUID: MIG-GPU-5d5b/1/0)
"""


def test_parts_of_gpus_are_listed_with_what_chooses_them() -> None:
    checks = list(part_checks(lambda command: LISTING))

    assert [(check.name, check.found) for check in checks] == [
        ("MIG", "3g.40gb of GPU 1: --device MIG-11c29e81-e611-50b5-b5ef-609c0a0fe58b"),
        ("MIG", "1g.10gb of GPU 1: --device MIG-GPU-5d5b/1/0"),
    ]


def test_undivided_gpus_and_no_driver_say_nothing() -> None:
    assert list(part_checks(lambda command: LISTING.partition("  MIG")[0])) == []
    assert list(part_checks(lambda command: None)) == []


def test_dla_cores_are_those_that_are_on(tmp_path: Path) -> None:
    assert list(dla_checks(tmp_path)) == []
    for name, status in (("nvdla0@15880000", b"okay\0"), ("nvdla1@158c0000", b"disabled\0")):
        node = tmp_path / "bus@0" / "host1x@13e00000" / name
        node.mkdir(parents=True)
        (node / "status").write_bytes(status)

    (check,) = dla_checks(tmp_path)
    assert check.found == "cores 0: --dla-core N"
    (tmp_path / "bus@0/host1x@13e00000/nvdla1@158c0000/status").unlink()
    (check,) = dla_checks(tmp_path)
    assert check.found == "cores 0, 1: --dla-core N"


INSTALL = f"pip install {packages_of('cpu')}"


@pytest.mark.parametrize(
    ("code", "state", "found", "fix"),
    [
        ("show('1.2', 'CPU', '')", GOOD, "1.2, CPU", ""),
        ("print('noise', end=''); show('1.2')", GOOD, "1.2", ""),
        ("print('no list')", GOOD, "works", ""),
        ("import x_absent", MISSING, "not installed", INSTALL),
        ("raise ModuleNotFoundError(\"No module named 'other'\")", BROKEN, "other", INSTALL),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", BROKEN, "SIGKILL", ""),
        ("import sys; sys.exit(3)", BROKEN, "no reason given", INSTALL),
    ],
)
def test_what_becomes_of_an_import(code: str, state: str, found: str, fix: str) -> None:
    check = library_check(Library("x_absent", "cpu", code))
    assert check.state == state
    assert found in check.found
    assert check.fix == fix


def add_package(folder: Path, name: str, version: str) -> None:
    """Let a folder say that a package is installed."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_versions_are_those_of_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pynvml.py").touch()  # as of nvidia-ml-py, which has no __version__
    add_package(tmp_path, "nvidia-ml-py", "13.610.43")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    library = next(one for one in probe.LIBRARIES if one.module == "pynvml")
    check = library_check(library)
    assert (check.state, check.found) == (GOOD, "13.610.43")


@pytest.mark.parametrize(
    ("source", "state", "found"),
    [
        ("", GOOD, "13.4.0, CUPTI 13.4.92"),
        ("raise RuntimeError('no driver')", BROKEN, "cupti-python cannot be loaded: no driver"),
    ],
)
def test_cupti_is_loaded_as_a_profile_loads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, state: str, found: str
) -> None:
    package = tmp_path / "cupti"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "cupti.py").write_text(source)
    add_package(tmp_path, "cupti-python", "13.4.0")
    add_package(tmp_path, "nvidia-cuda-cupti", "13.4.92")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    library = next(one for one in probe.LIBRARIES if one.module == "cupti")
    check = library_check(library)
    assert (check.state, check.found) == (state, found)


@pytest.mark.parametrize(
    ("runtime", "state", "told"),
    [
        ("show('1.31', 'CUDAExecutionProvider', 'CPUExecutionProvider')", WEAK, "It works now"),
        ("show('1.31', 'CPUExecutionProvider')", BROKEN, "no provider for a GPU"),
        ("raise ImportError('no such symbol')", BROKEN, "does not load"),
    ],
)
def test_two_packages_of_one_module_are_told(
    monkeypatch: pytest.MonkeyPatch, runtime: str, state: str, told: str
) -> None:
    """A machine with both works, until one of them is upgraded or removed."""
    monkeypatch.setattr(probe, "LIBRARIES", (Library("onnxruntime", "cpu", runtime),))
    monkeypatch.setattr(probe, "_is_installed", lambda name: True)
    [check] = conflict_checks()
    assert (check.state, told in check.found) == (state, True)
    monkeypatch.setattr(probe, "_is_installed", lambda name: name == "onnxruntime")
    assert list(conflict_checks()) == []


def looks_of(root: Path, smi: ToolAnswer | str) -> list[tuple[str, str, str]]:
    board = Jetson(root, answers(smi=smi))
    return [(c.name, c.state, c.found) for c in gpu_checks(board)]


def test_the_driver_of_a_jetson_is_a_part_of_it(tmp_path: Path) -> None:
    place(tmp_path, BOARDS["Orin Nano Super"])
    unseen = looks_of(tmp_path, "")[1]
    assert unseen[:2] == ("NVIDIA", WEAK)
    assert "not visible here" in unseen[2]
    assert "memory of the board" in looks_of(tmp_path, "Orin (nvgpu), 540.4.0, [N/A]\n")[1][2]

    put(tmp_path, "sys/class/devfreq/17000000.gpu/cur_freq", "306000000\n")
    for smi in ("", ToolAnswer(problem=FAILED, why="no devices were found")):
        board = Jetson(tmp_path, answers(smi=smi))
        _, check = gpu_checks(board)
        assert (check.state, check.fix) == (GOOD, "")
        assert "driver of Jetson Linux (/sys/class/devfreq" in check.found


def test_on_a_jetson_the_remedy_is_the_tensorrt_of_jetpack(tmp_path: Path) -> None:
    check = Check("Backends", "tensorrt", MISSING, "not installed", "pip install x")
    assert probe._with_system_tensorrt(check, Jetson(tmp_path, answers())) == check
    jetson = place(tmp_path, BOARDS["Orin Nano Super"])
    told = probe._with_system_tensorrt(check, jetson)
    assert "apt install python3-libnvinfer" in told.fix
    rtx = replace(check, name="tensorrt_rtx")
    assert probe._with_system_tensorrt(rtx, jetson) == rtx


def test_an_import_is_ended_in_time_and_sees_no_file_beside_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x_stray.py").write_text("raise SystemExit('ran a stray file')")
    monkeypatch.chdir(tmp_path)
    assert library_check(Library("x_stray", "cpu", "import x_stray")).state == MISSING
    monkeypatch.setattr(probe, "_TIMEOUT_S", 0.2)
    check = library_check(Library("x", "cpu", "import time; time.sleep(60)"))
    assert check.state == BROKEN
    assert "over 0.2 s" in check.found


def test_what_brings_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def installs() -> dict[str, str]:
        return {library.module: library.install for library in probe.LIBRARIES}

    with monkeypatch.context() as beside:  # [gpu] would overwrite the onnxruntime of the CPU
        beside.setattr(probe, "_is_installed", lambda name: name == "onnxruntime")
        assert installs()["pynvml"] == "pip install nvidia-ml-py"
        assert installs()["polygraphy"] == f"pip install {packages_of('polygraphy')}"
    monkeypatch.setattr(probe, "_is_installed", lambda name: False)
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    for version, package in (((3, 10), "nvidia-ml-py"), ((3, 12), packages_of("gpu"))):
        monkeypatch.setattr("sys.version_info", version)
        assert installs()["pynvml"] == f"pip install {package}"
        assert bool(installs()["cupti"]) is (version == (3, 12))  # its wheels are of CUDA 13


@pytest.mark.parametrize(
    ("smi", "told"),
    [
        ("GPU A, 1.0, 8 GiB\nGPU B, [N/A], [N/A]\n[N/A], 1.0, 2 GiB\n", [
            ("GPU 0", GOOD, "GPU A, 1.0, 8 GiB"),
            ("GPU 1", GOOD, "GPU B, driver unknown, memory unknown"),
            ("GPU 2", WEAK, "unknown: the driver does not name it"),
        ]),
        (ToolAnswer(problem=FAILED, why="cannot talk to the driver"),
         [("NVIDIA", BROKEN, "nvidia-smi: cannot talk to the driver")]),
        ("", [("NVIDIA", MISSING, "no nvidia-smi: no driver found")]),
    ],
)  # fmt: skip
def test_gpus_of_the_driver(
    tmp_path: Path, smi: ToolAnswer | str, told: list[tuple[str, str, str]]
) -> None:
    assert looks_of(tmp_path, smi) == told
    put(tmp_path, "proc/device-tree/model", "A board\0")
    assert looks_of(tmp_path, smi) == [("board", GOOD, "A board"), *told]


def test_a_jetson_without_its_device_tree(tmp_path: Path) -> None:
    put(tmp_path, "etc/nv_tegra_release", "# R36 (release), REVISION: 4.3\n")
    put(tmp_path, ".dockerenv", "")
    board, gpu = gpu_checks(Jetson(tmp_path, answers()))
    assert (board.state, gpu.state) == (WEAK, WEAK)
    assert gpu.fix == "start the container with --runtime nvidia"


@pytest.mark.parametrize(
    ("text", "user", "states"),
    [
        ("EnableMSI: 1\nRmProfilingAdminOnly: 1\n", 1000, [WEAK]),
        ("RmProfilingAdminOnly: 1\n", 0, [GOOD]),
        ("RmProfilingAdminOnly: 0\n", 1000, [GOOD]),
        (None, 1000, []),
    ],
)
def test_who_may_read_counters(
    tmp_path: Path, text: str | None, user: int, states: list[str]
) -> None:
    if text is not None:
        (tmp_path / "params").write_text(text)
    checks = list(counter_checks(tmp_path / "params", user))
    assert [check.state for check in checks] == states
    assert all(bool(check.fix) is (check.state == WEAK) for check in checks)
