"""The peaks of a processor: operations a second by type, bytes a second by level of memory.

Those of a CPU are measured (:mod:`dld_tui.backends.onnxruntime.processor_peaks`) and kept in the
folder for caches. Those of an NVIDIA GPU are of its data sheet.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from dld_tui.core import fmt
from dld_tui.core.codec import decode, encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.process import paths
from dld_tui.core.types import TextEnum

BUSY = " while other programs ran"
"""What is said of peaks that were measured so."""
FP16_SUMS = "fp16-sums"
"""Products of fp16 that are also added in fp16: twice the rate of ``fp16`` on GeForce."""


class PeakSource(TextEnum):
    """Where peaks are from, as a report shows it."""

    MEASURED = "measured with ONNX Runtime"
    DATA_SHEET = "the data sheet"
    GIVEN = "given"


@dataclass(frozen=True)
class MemoryLevel:
    """A cache, or memory."""

    bytes: int
    """How much a layer moved when it was measured."""
    bandwidth: float
    """Bytes per second."""


@dataclass(frozen=True)
class Peaks:
    """The most that a processor does."""

    device: str
    """Untrusted text."""
    flops: Mapping[str, float]
    """Operations per second by the type that computes: ``fp32``, ``tf32``, ``fp16``, ``int8``; a
    multiply-accumulate is two."""
    bandwidth: float
    """Bytes per second to and from memory."""
    caches: tuple[MemoryLevel, ...] = ()
    """The smallest first."""
    far_bytes: int = 0
    """How much a layer moved when that of memory was measured."""
    launch_ms: float = 0.0
    """How long a layer takes that computes nothing to speak of."""
    source: PeakSource = PeakSource.GIVEN
    measured_s: float | None = None
    """When, in seconds since 1970."""
    busy: bool = False
    """Other programs ran while they were measured: the processor may do more."""
    memory_bytes: int | None = None

    @property
    def fastest_bandwidth(self) -> float:
        """Bytes per second of the fastest level: memory or a cache."""
        return max((level.bandwidth for level in self.caches), default=self.bandwidth)

    def bandwidth_of(self, moved: float) -> float:
        """Return bytes per second that a layer of so many bytes does not exceed.

        Those of the largest measured size that is not larger: a larger one is not faster.
        """
        levels = (*self.caches, MemoryLevel(self.far_bytes, self.bandwidth))
        first = max((at for at, one in enumerate(levels) if one.bytes <= moved), default=0)
        return max(level.bandwidth for level in levels[first:])


def best(new: Peaks, known: Peaks) -> Peaks:
    """Return the highest peaks of two measurements of one processor."""
    bandwidths = {level.bytes: level.bandwidth for level in known.caches}
    return replace(
        new,
        flops={kind: max(rate, known.flops.get(kind, 0.0)) for kind, rate in new.flops.items()},
        bandwidth=max(new.bandwidth, known.bandwidth),
        caches=tuple(
            replace(level, bandwidth=max(level.bandwidth, bandwidths.get(level.bytes, 0.0)))
            for level in new.caches
        ),
        launch_ms=min(new.launch_ms, known.launch_ms or new.launch_ms),
        busy=new.busy and known.busy,
    )


_FILE = "peaks.json"


@dataclass(frozen=True)
class Setup:
    """What measured peaks hold for."""

    cpu: str
    threads: int
    """Of a session, 0 for as many as ONNX Runtime takes."""
    version: str
    """Of ONNX Runtime."""


@dataclass(frozen=True)
class _Kept:
    setup: Setup
    peaks: Peaks


def measured_peaks(setup: Setup, measure: Callable[[], Peaks]) -> Peaks:
    """Return the peaks of a CPU; measured, unless those of an idle machine are kept.

    Raises:
        Exception: Of `measure`.
    """
    cached = _read()
    before = cached.get(setup)
    if before is not None and not before.busy:
        return before
    new = measure()
    peaks = new if before is None else best(new, before)
    _write({**cached, setup: peaks})
    return peaks


def kept_peaks(cpu: str) -> Peaks | None:
    """Return the peaks of a CPU that were measured with most threads; None if there are none.

    Those of the latest measurement count.
    """
    of_cpu = [(setup, peaks) for setup, peaks in _read().items() if cpu and setup.cpu == cpu]
    if not of_cpu:
        return None
    return max(
        of_cpu,
        key=lambda one: (not one[0].threads, one[0].threads, one[1].measured_s or 0.0),
    )[1]


def _read() -> dict[Setup, Peaks]:
    with contextlib.suppress(OSError, ValueError, DldError):
        text = (paths.cache_dir() / _FILE).read_text(encoding="utf-8")
        return {one.setup: one.peaks for one in decode(list[_Kept], json.loads(text))}
    return {}  # missing, damaged, or of an earlier version: measured again


def _write(cached: Mapping[Setup, Peaks]) -> None:
    from dld_tui.core.files.writer import write_text

    with contextlib.suppress(OSError, DldError):
        path = paths.cache_dir() / _FILE
        paths.ensure(path.parent)
        records = [_Kept(setup, peaks) for setup, peaks in cached.items()]
        write_text(path, json.dumps(encode(records)), overwrite=True)


def rate_text(kind: str, rate: float) -> str:
    """Return a peak of a type a second: ``fp16 312 TFLOP/s``, ``int8 624 TOP/s``."""
    unit = "OP/s" if kind.startswith("int") else "FLOP/s"
    return f"{kind} {fmt.short_count(rate)}{unit}"


def _sheet(
    fp32: float, fp16: float, int8: float, gbs: float, gb: int | None, fp8: float = 0.0,
    fp4: float = 0.0, *, bf16: bool = True, sums: float = 0.0,
) -> Peaks:  # fmt: skip
    """Return the peaks of a data sheet, in 10^12 operations and 10^9 bytes.

    Volta and Turing have no bf16. Tensor Cores that have it have TF32, at half of its rate.

    Args:
        gb: None for devices that are sold with several sizes.
        sums: Of fp16 with sums in fp16, where that is another rate.
    """
    table = {
        "fp32": fp32, "tf32": fp16 / 2 if bf16 else 0.0, "fp16": fp16,
        FP16_SUMS: sums, "bf16": fp16 if bf16 else 0.0, "int8": int8, "fp8": fp8, "fp4": fp4,
    }  # fmt: skip
    return Peaks(
        "",
        {name: value * 1e12 for name, value in table.items() if value},
        gbs * 1e9,
        launch_ms=0.003,
        source=PeakSource.DATA_SHEET,
        memory_bytes=None if gb is None else gb * 10**9,
    )


# Dense (no structured sparsity), of Tensor Cores with FP32 accumulation where a device has both;
# FP32 is that of CUDA cores. From NVIDIA's data sheets and architecture whitepapers:
# - A100: "NVIDIA A100 Tensor Core GPU" data sheet, 2021 (PCIe 80 GB: 1,935 GB/s; SXM 80 GB: 2,039)
# - A30, A10, A2, T4, V100, L4, L40, L40S: their data sheets
# - H100: "NVIDIA H100 Tensor Core GPU" data sheet, 2023, halved where it gives sparse figures;
#   H200: data sheet, 2024; B200: "NVIDIA DGX B200" data sheet, 2024, an eighth of it, halved where
#   sparse
# - TITAN RTX and RTX 20: "NVIDIA Turing GPU Architecture"; RTX 30: "NVIDIA Ampere GA102 GPU
#   Architecture", appendix; RTX 40: "NVIDIA Ada GPU Architecture", appendix
# - Jetson AGX Orin 64 GB: "Jetson AGX Orin Series Technical Brief", GPU only
# - B200: fp32 from NVIDIA's page of HGX B200; GB200: the page of GB200 NVL72, a 72nd of it
# - GH200: "NVIDIA GH200 Grace Hopper Superchip" data sheet; H200 NVL, V100S: their data sheets
_REDUCED_VARIANTS = re.compile(r"Laptop|Max-Q|Mobile|\bMIG\b", re.IGNORECASE)
"""Variants with less than the device of the table."""
_SHEETS = (
    (r"GB200", _sheet(80, 2500, 5000, 8000, 180, 5000, 10000)),
    (r"\bB200", _sheet(75, 2250, 4500, 8000, 180, 4500, 9000)),
    (r"GH200.*144", _sheet(67, 989, 1979, 4900, 144, 1979)),
    (r"GH200", _sheet(67, 989, 1979, 4000, 96, 1979)),
    (r"H200.*NVL", _sheet(60, 835, 1671, 4800, 141, 1671)),
    (r"\bH200", _sheet(67, 989, 1979, 4800, 141, 1979)),
    (r"H100.*PCIe", _sheet(51, 756, 1513, 2000, 80, 1513)),
    (r"H100.*NVL", _sheet(60, 835, 1671, 3900, 94, 1671)),
    (r"H100\b", _sheet(67, 989, 1979, 3350, 80, 1979)),
    (r"A100.*80GB PCIe", _sheet(19.5, 312, 624, 1935, 80)),
    (r"A100.*80GB", _sheet(19.5, 312, 624, 2039, 80)),
    (r"A100\b", _sheet(19.5, 312, 624, 1555, 40)),
    (r"A30\b", _sheet(10.3, 165, 330, 933, 24)),
    (r"A10\b", _sheet(31.2, 125, 250, 600, 24)),
    (r"A2\b", _sheet(4.5, 18, 36, 200, 16)),
    (r"L40S", _sheet(91.6, 362, 733, 864, 48, 733)),
    (r"L40\b", _sheet(90.5, 181, 362, 864, 48, 362)),
    (r"L4\b", _sheet(30.3, 121, 242, 300, 24, 242)),
    (r"Tesla T4|\bT4\b", _sheet(8.1, 65, 130, 320, 16, bf16=False)),
    (r"V100S", _sheet(16.4, 130, 0, 1134, 32, bf16=False)),
    (r"V100.*PCIe", _sheet(14, 112, 0, 900, None, bf16=False)),
    (r"V100", _sheet(15.7, 125, 0, 900, None, bf16=False)),
    (r"TITAN RTX", _sheet(16.3, 130.5, 261, 672, 24, bf16=False)),
    (r"RTX 2080 Ti", _sheet(13.4, 53.8, 215.2, 616, 11, bf16=False, sums=107.6)),
    (r"RTX 3080 Ti", _sheet(34.1, 68, 273, 912, 12, sums=136)),
    (r"RTX 3090 Ti", _sheet(40, 80, 320, 1008, 24, sums=160)),
    (r"RTX 3090", _sheet(35.6, 71, 284, 936, 24, sums=142)),
    (r"RTX 3080(?! Ti| SUPER)", _sheet(29.8, 59.5, 238, 760, None, sums=119)),
    (r"RTX 3070(?! Ti| SUPER)", _sheet(20.3, 40.6, 162.6, 448, 8, sums=81.3)),
    (r"RTX 4090(?! D\b)", _sheet(82.6, 165.2, 660.6, 1008, 24, 330.3, sums=330.3)),
    (r"RTX 4080(?! Ti| SUPER)", _sheet(48.7, 97.5, 389.9, 717, 16, 194.9, sums=194.9)),
    (r"AGX Orin", _sheet(5.3, 42.5, 85, 204.8, 64)),
)


def gpu_peaks(name: str) -> Peaks | None:
    """Return the peaks of an NVIDIA GPU by its name; None when it is not in the table."""
    if _REDUCED_VARIANTS.search(name[:200]):
        return None
    for pattern, sheet in _SHEETS:
        if re.search(pattern, name[:200], re.IGNORECASE):
            return replace(sheet, device=name)
    return None
