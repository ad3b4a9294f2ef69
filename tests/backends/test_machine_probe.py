"""What ``dld doctor`` says of libraries, and of GPUs and boards: machine_probe.txt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dld_tui.backends.machine import probe
from dld_tui.backends.machine.jetson import FAILED, NO_RIGHTS, Jetson, ToolAnswer
from dld_tui.backends.machine.probe import Library, conflict_checks, library_check
from dld_tui.core.machine.health import BROKEN, GOOD, MISSING, WEAK, Check
from dld_tui.core.process.installation import packages_of
from tests.support.jetson_boards import BOARDS, answers, place, put
from tests.support.recorded import Recorded, settled


def shown(checks: Iterable[Check]) -> str:
    return "\n".join(
        f"{one.state} | {one.group} | {one.name} | {one.found} | {one.fix}" for one in checks
    )


def boards(root: Path) -> Iterator[tuple[str, Jetson]]:
    """Yield each board for root and for another user, and boards with odd files and tools."""
    for name, board in BOARDS.items():
        yield name, place(root, board)
        yield f"{name}, for a user", place(root, board, as_root=False)
    super_ = BOARDS["Orin Nano Super"]
    unknown = replace(super_, model="NVIDIA Jetson Future", release="# R40 (release)\n")
    for name, board, tools in (
        ("a newer release", unknown, answers()),
        ("an old one of an unknown board", replace(unknown, release="# R31 (release)"), answers()),
        ("a mode of its own", super_, answers("NV Power Mode: MY_MODE\n9\n")),
        ("a mode without a number", super_, answers("NV Power Mode: MAXN_SUPER\n")),
        ("a mode of another number", super_, answers("NV Power Mode: MAXN_SUPER\n1\n")),
        ("a mode by its number", super_, answers("NV Power Mode: mode 1\n1\n")),
        ("no mode told", super_, answers("nothing\n")),
        ("not for this user", super_, answers(ToolAnswer("", NO_RIGHTS, "no"))),
        ("a tool that fails", super_, answers(ToolAnswer("", FAILED, "no such device"))),
        ("no modes", replace(super_, conf="# none\n"), answers(super_.printed)),
        ("no modes and no tool", replace(super_, conf="# none\n"), answers()),
        ("no clocks told", super_, answers(clocks="Online CPUs: 0-13\n")),
        ("clocks without numbers", super_,
         answers(clocks="gpu-gpc-0 MinFreq= MaxFreq=1575000000\n")),
        ("a fixed clock and an unknown one", super_, answers(
            clocks="gpu-gpc-0 MinFreq=1575000000 MaxFreq=1575000000 CurrentFreq=1575000000\n"
            "gpu-gpc-1 MinFreq=315000000 MaxFreq= CurrentFreq=1575000000\n")),
    ):  # fmt: skip
        jetson = place(root, board)
        jetson.tool = tools
        yield name, jetson
    jetson = place(root, replace(super_, conf=super_.conf.replace("25W", "MODE_25W")))
    (root / "etc/nvpmodel.conf").unlink()
    yield "no list of modes", jetson
    place(root, super_)
    put(root, "run/dld-tui-jetson-clocks", "what they were\n")
    yield "clocks that a killed run left", Jetson(root, answers(super_.printed, super_.clocks))
    (root / "etc/nv_tegra_release").unlink()
    yield "no release", Jetson(root, answers())
    put(root, "etc/nv_tegra_release", "odd\n")
    put(root, ".dockerenv", "")
    yield "a container", Jetson(root, answers())
    yield "another machine", Jetson(root / "none", answers())


def gpus(root: Path) -> Iterator[tuple[str, str]]:
    """Yield what is said of the GPUs of three machines, by what nvidia-smi prints."""
    board = BOARDS["Orin Nano Super"]
    for title, smi in (
        ("no nvidia-smi", ""),
        ("four GPUs", "GPU A, 1.0, 8 GiB\nGPU B, [N/A], [N/A]\n[N/A], 1.0, 2 GiB\nGPU D, 1.0\n"),
        ("one that fails", ToolAnswer(problem=FAILED, why="cannot talk to the driver")),
    ):
        (root / "machine").mkdir(parents=True, exist_ok=True)
        machine = Jetson(root / "machine", answers(smi=smi))
        yield f"{title}, on a machine", shown(probe.gpu_checks(machine))
        put(root, "other/proc/device-tree/model", "A board\0")
        yield (
            f"{title}, on another board",
            shown(probe.gpu_checks(Jetson(root / "other", answers(smi=smi)))),
        )
        jetson = place(root / "jetson", board)
        jetson.tool = answers(smi=smi)
        yield f"{title}, on a Jetson", shown(probe.gpu_checks(jetson))
        put(root, "jetson/dev/nvgpu", "")
        yield f"{title}, on a Jetson with its driver", shown(probe.gpu_checks(jetson))
        put(root, "jetson/sys/class/devfreq/17000000.gpu/cur_freq", "306000000\n")
        jetson = Jetson(root / "jetson", answers(smi=smi))
        yield f"{title}, on a Jetson with a clock", shown(probe.gpu_checks(jetson))
        (root / "jetson/proc/device-tree/model").unlink()
        (root / "jetson/sys/class/devfreq/17000000.gpu/cur_freq").unlink()
        (root / "jetson/dev/nvgpu").unlink()
        put(root, "jetson/.dockerenv", "")
        jetson = Jetson(root / "jetson", answers(smi=smi))
        yield f"{title}, in a container of a Jetson", shown(probe.gpu_checks(jetson))


DRIVER = "| NVIDIA-SMI 580.65   Driver Version: 580.65   CUDA Version: {}  |\n"
CLOCKS = (
    "345, 1980, 2619, Disabled\n1980, 1980, 2619, Enabled\n[N/A], [N/A], [N/A], Enabled\n"
    "345, 1980, [N/A], [N/A]\n345, [N/A], 2619, Enabled\n[N/A], 1980, 2619, Enabled\nodd\n"
)
LISTING = """\
GPU 0: NVIDIA H100 (UUID: GPU-1f4c)
GPU 1: NVIDIA H100 (UUID: GPU-5d5b)
  MIG 3g.40gb     Device  0: (UUID: MIG-11c29e81-e611-50b5-b5ef-609c0a0fe58b)
  MIG 1g.10gb     Device  1: (UUID: MIG-GPU-5d5b/1/0)
"""


def driver(root: Path) -> Iterator[tuple[str, str]]:
    """Yield what is said of CUDA, clocks, parts of GPUs and who may read counters."""
    machine, jetson = Jetson(root / "none", answers()), place(root, BOARDS["Orin Nano"])

    def cuda(version: str, board: Jetson, clocks: str | None = CLOCKS) -> str:
        def tool(command: Sequence[str]) -> str | None:
            if len(command) == 1:
                return DRIVER.format(version) if version else None
            assert command[1:] == [
                "--query-gpu=clocks.sm,clocks.max.sm,clocks.mem,persistence_mode",
                "--format=csv,noheader,nounits",
            ]
            return clocks

        return shown(probe.cuda_checks(tool, board))

    yield "CUDA and clocks", cuda("13.0", machine)
    yield "no CUDA told", cuda("[N/A]", machine, None)
    yield "no driver", cuda("", machine)
    yield "CUDA of a Jetson", cuda("12.6", jetson)
    for title, listing in (
        ("parts", LISTING), ("no parts", LISTING.partition("  MIG")[0]), ("no list", None)
    ):  # fmt: skip
        yield title, shown(probe.part_checks(lambda command, listing=listing: listing))  # type: ignore[misc]
    for user, text in (
        (1000, "EnableMSI: 1\nRmProfilingAdminOnly: 1\n"), (0, "RmProfilingAdminOnly: 1\n"),
        (1000, "RmProfilingAdminOnly: 0\n"), (1000, None),
    ):  # fmt: skip
        (root / "params").unlink(missing_ok=True)
        if text is not None:
            (root / "params").write_text(text)
        yield f"counters for {user}: {text!r}", shown(probe.counter_checks(root / "params", user))


def parts(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Yield what is said of DLA cores, groups and disks."""
    yield "no DLA", shown(probe.dla_checks(root))
    node = root / "bus@0/host1x@13e00000"
    for name, status in (("nvdla0@15880000", b"okay\0"), ("nvdla1@158c0000", b"disabled\0")):
        (node / name).mkdir(parents=True)
        (node / name / "status").write_bytes(status)
    yield "one DLA core", shown(probe.dla_checks(root))
    (node / "nvdla1@158c0000/status").unlink()
    yield "two DLA cores", shown(probe.dla_checks(root))
    monkeypatch.setattr("getpass.getuser", lambda: "me")
    yield "groups of another machine", shown(probe.group_checks(root, frozenset(), 1000))
    put(root, "dev/nvhost-gpu", "")
    yield "groups", shown(probe.group_checks(root, frozenset({"video"}), 1000))
    groups = {7: SimpleNamespace(gr_name="debug"), 8: SimpleNamespace(gr_name="others")}
    monkeypatch.setattr("os.getgroups", lambda: [1, 7, 8])  # the first has no name
    monkeypatch.setattr("grp.getgrgid", groups.__getitem__)
    yield "groups of this process", shown(probe.group_checks(root, user=1000))
    yield "groups of root", shown(probe.group_checks(root, frozenset(), 0))
    monkeypatch.setenv("TMPDIR", str(root / "tmp"))
    for free in (3 << 30, 2 << 30, (2 << 30) - 1, 100 << 20, (100 << 20) - 1):
        monkeypatch.setattr("shutil.disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        yield f"disks of {free}", shown(probe.disk_checks(root / "not" / "yet"))


def test_what_is_told_of_a_machine(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    found = {name: shown(probe.board_checks(one)) for name, one in boards(root)}
    for more in (gpus(tmp_path / "gpus"), driver(root), parts(tmp_path / "parts", monkeypatch)):
        found |= {name: settled(text, tmp_path) for name, text in more}
    recorded("machine_probe", found)


INSTALL = f"pip install {packages_of('cpu')}"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("show('1.2', 'CPU', '')", (GOOD, "1.2, CPU", "")),
        ("print('noise', end=''); show('1.2')", (GOOD, "1.2", "")),
        ("print('no list')", (GOOD, "works", "")),
        ("", (GOOD, "works", "")),
        ("import x_absent", (MISSING, "not installed", INSTALL)),
        ("raise ModuleNotFoundError(\"No module named 'other'\")",
         (BROKEN, "ModuleNotFoundError: No module named 'other'", INSTALL)),
        ("raise ValueError(\"No module named 'x_absent'\")",
         (BROKEN, "ValueError: No module named 'x_absent'", INSTALL)),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
         (BROKEN, "importing it ended with SIGKILL", "")),
        ("import sys; sys.exit(3)", (BROKEN, "no reason given", INSTALL)),
    ],
)  # fmt: skip
def test_what_becomes_of_an_import(code: str, told: tuple[str, str, str]) -> None:
    check = library_check(Library("x_absent", "cpu", code))
    assert check == Check("Backends", "x_absent", *told)


BOTH = "onnxruntime and onnxruntime-gpu are both installed and share one folder"


@pytest.mark.parametrize(
    ("runtime", "state", "told"),
    [
        ("show('1.31', 'CUDAExecutionProvider', 'CPUExecutionProvider')", WEAK,
         ". It works now, as onnxruntime-gpu was installed last; to upgrade or remove one of"
         " them takes files of the other away, and then the GPU or all of it is lost"),
        ("show('1.31', 'CPUExecutionProvider')", BROKEN,
         ", and onnxruntime was installed last: it has no provider for a GPU"),
        ("raise ImportError('no such symbol')", BROKEN, ": onnxruntime does not load"),
    ],
)  # fmt: skip
def test_two_packages_of_one_module_are_told(
    monkeypatch: pytest.MonkeyPatch, runtime: str, state: str, told: str
) -> None:
    """A machine with both works, until one of them is upgraded or removed."""
    monkeypatch.setattr(probe, "LIBRARIES", (Library("onnxruntime", "cpu", runtime),))
    monkeypatch.setattr(probe, "_is_installed", lambda name: True)
    fix = f"pip uninstall -y onnxruntime onnxruntime-gpu; pip install {packages_of('gpu')}"
    assert [*conflict_checks()] == [Check("Backends", "packages", state, BOTH + told, fix)]
    monkeypatch.setattr(probe, "_is_installed", lambda name: name == "onnxruntime")
    assert [*conflict_checks()] == []


def test_on_a_jetson_the_remedy_is_the_tensorrt_of_jetpack(tmp_path: Path) -> None:
    check = Check("Backends", "tensorrt", MISSING, "not installed", "pip install x")
    assert probe._with_system_tensorrt(check, Jetson(tmp_path, answers())) == check
    jetson = place(tmp_path, BOARDS["Orin Nano Super"])
    told = probe._with_system_tensorrt(check, jetson)
    assert "apt install python3-libnvinfer" in told.fix
    for other in (replace(check, name="tensorrt_rtx"), replace(check, state=BROKEN)):
        assert probe._with_system_tensorrt(other, jetson) == other


def test_an_import_is_ended_in_time_and_sees_no_file_beside_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x_stray.py").write_text("raise SystemExit('ran a stray file')")
    monkeypatch.chdir(tmp_path)
    assert library_check(Library("x_stray", "cpu", "import x_stray")).state == MISSING
    monkeypatch.setattr(probe, "_TIMEOUT_S", 0.2)
    check = library_check(Library("x", "cpu", "import time; time.sleep(60)"))
    assert check == Check("Backends", "x", BROKEN, "importing it took over 0.2 s", INSTALL)
    monkeypatch.setattr("sys.executable", str(tmp_path / "none"))
    assert library_check(Library("x", "cpu", "")).state == BROKEN


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
