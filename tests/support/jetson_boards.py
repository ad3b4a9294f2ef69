"""Jetson boards as their files and tools show them, shortened; each with its source.

The lines that decide are as published; lines on CPUs, DLA and PVA are left out but for one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dld_tui.backends.machine.jetson import ABSENT, NO_RIGHTS, Jetson, ToolAnswer

NOT_ROOT = ToolAnswer("Error: Please run as root user\n", NO_RIGHTS, "Error: Please run as root")
CPU = "cpu0:  Online=1 Governor=schedutil MinFreq=729600 MaxFreq=1344000 CurrentFreq=1344000 \n"


def modes(*names: str) -> str:
    return "".join(f"< POWER_MODEL ID={i} NAME={name} >\n" for i, name in enumerate(names))


@dataclass(frozen=True)
class Board:
    source: str
    model: str
    release: str
    conf: str
    printed: str
    """Of ``nvpmodel -q``."""
    clocks: str
    """Of ``jetson_clocks --show`` for root."""
    files: Mapping[str, str] = field(default_factory=dict)


BOARDS: Mapping[str, Board] = {
    "Orin Nano Super": Board(
        source="published outputs of R36.4.3",
        model="NVIDIA Jetson Orin Nano Engineering Reference Developer Kit Super",
        release="# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic",
        conf=modes("15W", "25W", "MAXN_SUPER", "7W") + "< PM_CONFIG DEFAULT=1 >\n",
        printed="NV Power Mode: 25W\n1\n",
        clocks="SOC family:tegra234\n" + CPU * 6
        + "GPU MinFreq=306000000 MaxFreq=918000000 CurrentFreq=306000000\nActive GPU TPCs: 4\n"
        "EMC MinFreq=204000000 MaxFreq=3199000000 CurrentFreq=2133000000 FreqOverride=0\n",
    ),
    "Orin Nano": Board(
        source="published outputs of R39.2",
        model="NVIDIA Jetson Orin Nano Developer Kit",
        release="# R39 (release), REVISION: 2.0, GCID: 45755727, BOARD: generic",
        conf=modes("15W", "7W"),
        printed="NV Power Mode: 15W\n0\n",
        clocks=CPU * 6 + "GPU MinFreq=306000000 MaxFreq=624750000 CurrentFreq=306000000\n",
    ),
    "Orin NX Super": Board(
        source="modes: NVIDIA's guide of R36.4.3, Supported Modes; MAXN_SUPER is mode 0 there;"
        " clocks: a published output, 'Machine:NVIDIA Orin NX Developer Kit'",
        model="NVIDIA Jetson Orin NX Engineering Reference Developer Kit Super",
        release="# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic",
        conf=modes("MAXN_SUPER", "10W", "15W", "25W", "40W"),
        printed="NV Power Mode: 40W\n4\n",
        clocks=CPU * 8 + "GPU MinFreq=306000000 MaxFreq=918000000 CurrentFreq=306000000\n"
        "DLA0_CORE:   Online=1 MinFreq=0 MaxFreq=614400000 CurrentFreq=614400000\n",
    ),
    "AGX Orin, JetPack 5": Board(
        source="published outputs of R35.4.1",
        model="Jetson AGX Orin Developer Kit",
        release="# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref",
        conf=modes("MAXN", "MODE_15W", "MODE_30W", "MODE_50W"),
        printed="NVPM WARN: fan mode is not set!\nNV Power Mode: MODE_30W\n2\n",
        clocks=CPU * 12 + "GPU MinFreq=306000000 MaxFreq=624750000 CurrentFreq=306000000\n",
    ),
    "AGX Orin": Board(
        source="a published output of R39.2 with 'Active GPU TPCs: 8', after jetson_clocks",
        model="NVIDIA Jetson AGX Orin Developer Kit",
        release="# R39 (release), REVISION: 2.0, GCID: 45755727, BOARD: generic",
        conf=modes("MAXN", "MODE_15W", "MODE_30W", "MODE_50W"),
        printed="NV Power Mode: MAXN\n0\n",
        clocks=CPU * 12 + "GPU MinFreq=1300500000 MaxFreq=1300500000 CurrentFreq=1300500000\n"
        "Active GPU TPCs: 8\n",
    ),
    "AGX Thor": Board(
        source="published outputs of R38.2; modes of a T5000: MAXN, 120W, 90W, 70W",
        model="NVIDIA Jetson AGX Thor Developer Kit",
        release="# R38 (release), REVISION: 2.0, GCID: 41844464, BOARD: generic",
        conf=modes("MAXN", "120W", "90W", "70W"),
        printed="NV Power Mode: 120W\n1\n",
        clocks=CPU * 14 + "gpu-gpc-0 MinFreq=315000000 MaxFreq=1575000000 CurrentFreq=315000000\n"
        "gpu-nvd-0 MinFreq=1692000000 MaxFreq=1692000000 CurrentFreq=1692000000\n",
    ),
    "Xavier NX": Board(
        source="'nvpmodel -p --verbose' of R35.1 as published; numbers of modes 6 to 8 as in"
        " NVIDIA's guide of R35; caps as in github.com/borongyuan/XavierNXOverclock",
        model="NVIDIA Jetson Xavier NX Developer Kit",
        release="# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref",
        conf="# < POWER_MODEL ID=id_num NAME=mode_name >\n"
        "< PARAM TYPE=CLOCK NAME=GPU >\n"
        "MAX_FREQ /sys/devices/17000000.gv11b/devfreq/17000000.gv11b/max_freq\n"
        + "".join(
            f"< POWER_MODEL ID={number} NAME=MODE_{name} >\n"
            + "".join(f"CPU_ONLINE CORE_{core} {int(core < cores)}\n" for core in range(6))
            + f"CPU_DENVER_0 MAX_FREQ {cpu}\nGPU MIN_FREQ 0\nGPU MAX_FREQ {gpu}\n"
            f"EMC MAX_FREQ {emc}\nNVDEC MAX_FREQ 665600000\nVDDIN_OC_LIMIT WARN 3000\n\n"
            for number, name, cores, cpu, gpu, emc in (
                (0, "15W_2CORE", 2, 1907200, 1109250000, 1600000000),
                (1, "15W_4CORE", 4, 1420800, 1109250000, 1600000000),
                (2, "15W_6CORE", 6, 1420800, 1109250000, 1600000000),
                (3, "10W_2CORE", 2, 1497600, 803250000, 1600000000),
                (4, "10W_4CORE", 4, 1190400, 803250000, 1600000000),
                (5, "10W_DESKTOP", 4, 1907200, 510000000, 1600000000),
                (6, "20W_2CORE", 2, 1907200, 1109250000, 1866000000),
                (7, "20W_4CORE", 4, 1420800, 1109250000, 1866000000),
                (8, "20W_6CORE", 6, 1420800, 1109250000, 1866000000),
            )
        )
        + "< PM_CONFIG DEFAULT=2 >\n",
        printed="NV Power Mode: MODE_15W_6CORE\n2\n",
        clocks=CPU * 6 + "GPU MinFreq=114750000 MaxFreq=1109250000 CurrentFreq=114750000\n",
    ),
    "AGX Xavier": Board(
        source="modes: jetsonhacks.com/2018/10/07/nvpmodel-nvidia-jetson-agx-xavier-developer-kit;"
        " the line of the GPU is composed",
        model="Jetson-AGX",
        release="# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t186ref, EABI: aarch64",
        conf=modes(
            "MAXN", "MODE_10W", "MODE_15W", "MODE_30W_ALL",
            "MODE_30W_6CORE", "MODE_30W_4CORE", "MODE_30W_2CORE",
        ),
        printed="NV Power Mode: MODE_30W_ALL\n3\n",
        clocks=CPU * 8 + "GPU MinFreq=318750000 MaxFreq=905250000 CurrentFreq=318750000\n",
    ),
    "TX2": Board(
        source="modes: jetsonhacks.com/2017/03/25/nvpmodel-nvidia-jetson-tx2-development-kit and"
        " the file of R28 (paths in place of names); clocks: 'family:tegra186 Machine:quill'",
        model="quill",
        release="# R32 (release), REVISION: 4.3, GCID: 21589087, BOARD: t186ref, EABI: aarch64",
        conf="".join(
            f"< POWER_MODEL ID={number} NAME={name} >\n# gpu clock settings\n"
            "/sys/devices/system/cpu/cpu1/online 1\n"
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq 2035200\n"
            "/sys/devices/17000000.gp10b/devfreq/17000000.gp10b/min_freq 0\n"
            f"/sys/devices/17000000.gp10b/devfreq/17000000.gp10b/max_freq {gpu}\n"
            f"/sys/kernel/nvpmodel_emc_cap/emc_iso_cap {emc}\n\n"
            for number, name, gpu, emc in (
                (0, "MAXN", 1300500000, 0),
                (1, "MAXQ", 850000000, 1331200000),
                (2, "MAXP_CORE_ALL", 1120000000, 1600000000),
            )
        ),
        printed="NV Power Mode: MAXP_CORE_ALL\n2\n",
        clocks=CPU + "GPU MinFreq=1300500000 MaxFreq=1300500000 CurrentFreq=1300500000\n"
        "EMC MinFreq=40800000 MaxFreq=1866000000 CurrentFreq=1866000000 FreqOverride=1\n"
        "Can't access Fan!\nNV Power Mode: MAXN\n",
    ),
    "Nano": Board(
        source="NVIDIA's guide of R32.7.1, power_management_nano.html; clocks: a published output,"
        " 'SOC family:tegra210  Machine:NVIDIA Jetson Nano Developer Kit'",
        model="NVIDIA Jetson Nano Developer Kit",
        release="# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t210ref, EABI: aarch64",
        conf="< POWER_MODEL ID=0 NAME=MAXN >\nGPU MAX_FREQ 921600000\nEMC MAX_FREQ 1600000000\n"
        "< POWER_MODEL ID=1 NAME=5W >\nGPU MAX_FREQ 640000000\nEMC MAX_FREQ 1600000000\n",
        printed="NV Power Mode: 5W\n1\n",
        clocks="SOC family:tegra210  Machine:NVIDIA Jetson Nano Developer Kit\nOnline CPUs: 0-1\n"
        "GPU MinFreq=76800000 MaxFreq=614400000 CurrentFreq=460800000\n",
    ),
}  # fmt: skip


def answers(
    nvpmodel: ToolAnswer | str = "", clocks: ToolAnswer | str = "", smi: ToolAnswer | str = ""
) -> Callable[[Sequence[str]], ToolAnswer]:
    """Return tools that answer so; an empty text means that one is not there."""
    told = {"nvpmodel": nvpmodel, "jetson_clocks": clocks, "nvidia-smi": smi}

    def tool(command: Sequence[str]) -> ToolAnswer:
        answer = told[command[0]]
        if isinstance(answer, str):
            return ToolAnswer(answer) if answer else ToolAnswer(problem=ABSENT)
        return answer

    return tool


def put(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def place(root: Path, board: Board, *, as_root: bool = True) -> Jetson:
    """Return a board whose files are below a folder; what was there goes."""
    shutil.rmtree(root, ignore_errors=True)
    put(root, "proc/device-tree/model", f"{board.model}\0")
    put(root, "etc/nv_tegra_release", f"{board.release}\n# KERNEL_VARIANT: oot\n")
    put(root, "etc/nvpmodel.conf", board.conf)
    for name, text in board.files.items():
        put(root, name, text)
    return Jetson(root, answers(board.printed, board.clocks if as_root else NOT_ROOT))
