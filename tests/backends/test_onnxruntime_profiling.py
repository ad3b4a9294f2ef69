"""Products on a GPU stand against the peak of how their kernels compute."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.backends.onnxruntime.profiling import copies_note, fallback_notes, hold_against_kernels
from dld_tui.backends.onnxruntime.session import Copies
from dld_tui.core.machine.peaks import Peaks
from dld_tui.core.report.formats.ort_profile import Kernel, kernel_from
from dld_tui.core.report.records import Cost, GpuEvent, Layer, PassState
from dld_tui.core.report.report import Report
from dld_tui.core.report.roofline import limiter, roof_percent
from tests.support.profiles import start_report

CUDA = "CUDAExecutionProvider"
GPU = Peaks("a GPU", {"fp32": 1e12, "tf32": 8e12, "int8": 3e13}, 1e12, launch_ms=0.001)
ON_CUDA_CORES, ON_TENSOR_CORES = "ampere_sgemm_128x64_tn", "cutlass_tensorop_s1688gemm_128x128"


@pytest.mark.parametrize(
    ("kind", "peak", "kernels", "told"),
    [
        ("MatMul", "tf32", {ON_CUDA_CORES: 1200.0, "void split_k": 50.0}, ("fp32", "compute", 80)),
        ("MatMul", "tf32", {ON_TENSOR_CORES: 200.0}, ("tf32", "compute", 62.5)),
        ("MatMul", "tf32", {"unknown": 1250.0}, ("tf32", "compute", 10)),
        ("MatMulNBits", "int8", {ON_CUDA_CORES: 125.0}, ("int8", "compute", 26.667)),
        ("Relu", "fp32", {ON_TENSOR_CORES: 2000.0}, ("fp32", "compute", 50)),
    ],
)
def test_the_kernel_that_takes_longest_tells_the_peak(
    tmp_path: Path, kind: str, peak: str, kernels: dict[str, float], told: tuple[str, str, float]
) -> None:
    cost = Cost(10**9, 10**6, roof_ms=1e12 / GPU.flops[peak], bound="compute", peak=peak)
    layer = Layer("l", kind, provider=CUDA, input_types=("float32",), cost=cost)
    with start_report(tmp_path / "r.dldprof") as writer:
        number = writer.add_layer(layer)
        took = sum(kernels.values())
        writer.add_pass(0, 0.0, took, PassState.KERNELS_ALONE)
        events = [GpuEvent("s", "kernel", name, 0.0, us, number) for name, us in kernels.items()]
        writer.add_gpu_events(0, events)
        hold_against_kernels(writer, [layer], {CUDA: GPU})
    with Report.open(tmp_path / "r.dldprof") as report:
        (read,) = report.layers
    assert read.cost is not None
    assert (read.cost.peak, limiter(read)) == told[:2]
    assert roof_percent(read) == pytest.approx(told[2], rel=1e-4)


def kernels(provider: str, *names: str, op_type: str = "Resize") -> list[Kernel]:
    arguments = {"op_name": op_type, "provider": f"{provider}ExecutionProvider"}
    return [kernel_from(name, dict(arguments)) for name in names]


def test_nodes_on_the_cpu_are_named() -> None:
    found = fallback_notes([*kernels("CUDA", "conv"), *kernels("CPU", "up", "\x1b[2Jdown")], "CUDA")

    (note,) = found
    assert note.kind == "warning"
    assert note.text.startswith("2 of 3 nodes ran on the CPU: up (Resize), ")
    assert "\x1b" not in note.text


def test_a_long_list_is_cut() -> None:
    (note,) = fallback_notes(kernels("CPU", *(f"n{number}" for number in range(40))), "CUDA")

    assert note.text.endswith("n11 (Resize) and 28 more.")


def test_copies_between_them_are_counted() -> None:
    copy = kernels("CUDA", "copy", op_type="MemcpyToHost")

    assert [note.text for note in fallback_notes(copy, "CUDA")] == [
        "1 node copies between the CPU and the device."
    ]


def test_where_all_is_as_wanted_nothing_is_said() -> None:
    assert fallback_notes(kernels("CUDA", "conv"), "CUDA") == []
    assert fallback_notes(kernels("CPU", "conv"), "CPU") == []


def test_what_the_latency_is_without() -> None:
    note = copies_note(Copies(0.5, 0.25, 1024, 16), ["words"])

    assert "bringing the inputs takes 0.500 ms (1,024 bytes)" in note.text
    assert note.text.endswith("Inputs that stay in the memory of the CPU: words.")
