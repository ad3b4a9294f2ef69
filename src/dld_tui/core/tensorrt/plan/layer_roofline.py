"""What a device can do at most, and how near to that a layer comes.

Peaks are dense (no structured sparsity) and of Tensor Cores with FP32 accumulation where a device
has both, from NVIDIA's data sheets and architecture whitepapers:

- A100: "NVIDIA A100 Tensor Core GPU" data sheet, 2021 (PCIe 80 GB: 1,935 GB/s; SXM 80 GB: 2,039)
- A30, A10, A2, T4, V100, L4, L40, L40S: their data sheets
- H100: "NVIDIA H100 Tensor Core GPU" data sheet, 2023, halved where it gives sparse figures; H200:
  data sheet, 2024; B200: "NVIDIA DGX B200" data sheet, 2024, an eighth of it, halved where sparse
- TITAN RTX and RTX 20: "NVIDIA Turing GPU Architecture"; RTX 30: "NVIDIA Ampere GA102 GPU
  Architecture", appendix; RTX 40: "NVIDIA Ada GPU Architecture", appendix
- Jetson AGX Orin 64 GB: "Jetson AGX Orin Series Technical Brief", GPU only

Where the metadata has the memory's bus width and clock, the bandwidth is computed from these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dld_tui.core.cost.roofline import Roof
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EnginePlan
from dld_tui.core.tensorrt.plan.file_set import device_name
from dld_tui.core.tensorrt.plan.json_text import first, number_of
from dld_tui.core.tensorrt.plan.layer_macs import macs
from dld_tui.core.types import JSON


@dataclass(frozen=True)
class Peaks:
    """The most that a device can do."""

    device: str
    tflops: Mapping[str, float]
    """10^12 operations a second (a multiply-accumulate is two) by type."""
    bandwidth_gbs: float
    """10^9 bytes a second."""

    def ops(self, precision: str) -> float | None:
        """Return operations a second for a type; None when the table has none."""
        tflop = self.tflops.get(precision)
        return tflop * 1e12 if tflop else None


def roof_of(peaks: Peaks) -> Roof:
    """Return the roof of a GPU by its data sheet."""
    flops = {name: value * 1e12 for name, value in peaks.tflops.items()}
    return Roof(peaks.device, flops, peaks.bandwidth_gbs * 1e9, launch_ms=0.003,
                source="the data sheet")  # fmt: skip


@dataclass(frozen=True)
class Placement:
    """Where a layer is under the roof."""

    bound: str
    """``compute`` or ``memory``: what limits it at best."""
    attainable: float
    """Operations a second at most at this layer's intensity; bytes a second when it computes no
    products."""
    efficiency: float | None
    """What was reached as a share of that, 0 to 1; None without a time."""


def _peaks(fp32: float, fp16: float, int8: float, gbs: float, fp8: float = 0.0, fp4: float = 0.0,
           *, bf16: bool = True) -> tuple[Mapping[str, float], float]:  # fmt: skip
    """Return peaks by type; Volta and Turing have no bf16."""
    table = {
        "fp32": fp32, "fp16": fp16, "bf16": fp16 if bf16 else 0.0, "int8": int8, "fp8": fp8,
        "fp4": fp4,
    }  # fmt: skip
    return {name: value for name, value in table.items() if value}, gbs


# FP32 is that of CUDA cores: TF32 can be switched off, and the layer information does not say.
_TABLE = (
    (r"B200", _peaks(0, 2250, 4500, 8000, 4500, 9000)),
    (r"H200", _peaks(67, 989, 1979, 4800, 1979)),
    (r"H100.*PCIe", _peaks(51, 756, 1513, 2000, 1513)),
    (r"H100.*NVL", _peaks(60, 835, 1671, 3900, 1671)),
    (r"H100\b", _peaks(67, 989, 1979, 3350, 1979)),
    (r"A100.*80GB PCIe", _peaks(19.5, 312, 624, 1935)),
    (r"A100.*80GB", _peaks(19.5, 312, 624, 2039)),
    (r"A100\b", _peaks(19.5, 312, 624, 1555)),
    (r"A30\b", _peaks(10.3, 165, 330, 933)),
    (r"A10\b", _peaks(31.2, 125, 250, 600)),
    (r"A2\b", _peaks(4.5, 18, 36, 200)),
    (r"L40S", _peaks(91.6, 362, 733, 864, 733)),
    (r"L40\b", _peaks(90.5, 181, 362, 864, 362)),
    (r"L4\b", _peaks(30.3, 121, 242, 300, 242)),
    (r"Tesla T4|\bT4\b", _peaks(8.1, 65, 130, 320, bf16=False)),
    (r"V100.*PCIe", _peaks(14, 112, 0, 900, bf16=False)),
    (r"V100", _peaks(15.7, 125, 0, 900, bf16=False)),
    (r"TITAN RTX", _peaks(16.3, 130.5, 261, 672, bf16=False)),
    (r"RTX 2080 Ti", _peaks(13.4, 53.8, 215.2, 616, bf16=False)),
    (r"RTX 3080 Ti", _peaks(34.1, 68, 273, 912)),
    (r"RTX 3090 Ti", _peaks(40, 80, 320, 1008)),
    (r"RTX 3090", _peaks(35.6, 71, 284, 936)),
    (r"RTX 3080", _peaks(29.8, 59.5, 238, 760)),
    (r"RTX 3070", _peaks(20.3, 40.6, 162.6, 448)),
    (r"RTX 4090", _peaks(82.6, 165.2, 660.6, 1008, 330.3)),
    (r"RTX 4080", _peaks(48.7, 97.5, 389.9, 717, 194.9)),
    (r"AGX Orin", _peaks(5.3, 42.5, 85, 204.8)),
)


def peaks_of(device: Mapping[str, JSON]) -> Peaks | None:
    """Return what a device can do; None when it is not in the table."""
    name = device_name(device)
    for pattern, (tflops, bandwidth) in _TABLE:
        if re.search(pattern, name[:200], re.IGNORECASE):
            return Peaks(name, tflops, computed_bandwidth(device) or bandwidth)
    return None


def computed_bandwidth(device: Mapping[str, JSON]) -> float | None:
    """Return 10^9 bytes a second by bus width and clock, two transfers a cycle; None if unknown."""
    width = number_of(first(device, "Memory Bus Width", "GLOBAL_MEMORY_BUS_WIDTH"))
    ghz = number_of(first(device, "Memory Clock Rate", "Application Memory Clock Rate"))
    if ghz is None:
        khz = number_of(device.get("MEMORY_CLOCK_RATE"))
        ghz = khz / 1e6 if khz is not None else None
    if width is None or ghz is None or not 0 < width < 1e6 or not 0 < ghz < 1e3:
        return None
    return width / 8 * ghz * 2


def placement(layer: EngineLayer, peaks: Peaks) -> Placement | None:
    """Return where a layer is under the roof; None when its shapes are not known."""
    size = layer.footprint
    if not size:
        return None
    bandwidth = peaks.bandwidth_gbs * 1e9
    count = macs(layer)
    if not count:
        return Placement("memory", bandwidth, _share(size, bandwidth, layer.time_ms))
    peak = peaks.ops(layer.precision)
    if peak is None:
        return None
    by_memory = 2 * count / size * bandwidth
    bound, attainable = ("compute", peak) if peak <= by_memory else ("memory", by_memory)
    return Placement(bound, attainable, _share(2 * count, attainable, layer.time_ms))


def _share(work: float, per_second: float, time_ms: float | None) -> float | None:
    return work / (time_ms / 1000) / per_second if time_ms else None


def unknown_device(plan: EnginePlan) -> str:
    """Return why there is no roofline, in a sentence without its stop; empty when there is one."""
    if peaks_of(plan.device) is not None:
        return ""
    name = device_name(plan.device)
    if not name:
        return "no roofline: the files do not say which device this is"
    return f"no roofline: the peaks of {name} are not in the table"
