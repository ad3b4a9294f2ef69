"""Products on a GPU stand against the peak of how their kernels compute; notes of a run."""

from __future__ import annotations

from pathlib import Path

from dld_tui.backends.onnxruntime.profiling import copies_note, fallback_notes, hold_against_kernels
from dld_tui.backends.onnxruntime.session import Copies
from dld_tui.core.machine.peaks import Peaks
from dld_tui.core.report.formats.ort_profile import Kernel, kernel_from
from dld_tui.core.report.records import Cost, GpuEvent, Layer, PassState
from dld_tui.core.report.report import Report
from dld_tui.core.report.roofline import limiter, roof_percent
from tests.support.profiles import start_report
from tests.support.recorded import Recorded, settled

CUDA = "CUDAExecutionProvider"
GPU = Peaks("a GPU", {"fp32": 1e12, "tf32": 8e12, "int8": 3e13}, 1e12, launch_ms=0.001)
ON_CUDA_CORES, ON_TENSOR_CORES = "ampere_sgemm_128x64_tn", "cutlass_tensorop_s1688gemm_128x128"


LAYERS: list[tuple[str, str, str, dict[str, float]]] = [
    ("Conv", "Other", "tf32", {ON_CUDA_CORES: 10.0}), ("Gemm", CUDA, "", {ON_CUDA_CORES: 20.0}),
    ("MatMulNBits", CUDA, "int8", {ON_CUDA_CORES: 125.0}),
    ("MatMul", CUDA, "tf32", {ON_CUDA_CORES: 1200.0, "void split_k": 50.0}),
    ("MatMul", CUDA, "tf32", {ON_TENSOR_CORES: 200.0}), ("MatMul", CUDA, "tf32", {"?": 1250.0}),
    ("Relu", CUDA, "fp32", {ON_TENSOR_CORES: 2000.0}),
]  # fmt: skip


def test_the_kernel_that_takes_longest_tells_the_peak(tmp_path: Path, recorded: Recorded) -> None:
    layers = []
    with start_report(tmp_path / "r.dldprof") as writer:
        took = sum(sum(kernels.values()) for *_, kernels in LAYERS)
        writer.add_pass(0, 0.0, took, PassState.KERNELS_ALONE)
        for kind, provider, peak, kernels in LAYERS:
            roof = 1e12 / GPU.flops[peak] if peak else None
            cost = Cost(10**9, 10**6, roof_ms=roof, bound="compute", peak=peak) if peak else None
            layers.append(Layer("l", kind, provider=provider, input_types=("float32",), cost=cost))
            number = writer.add_layer(layers[-1])
            events = [
                GpuEvent("s", "kernel", name, 0.0, us, number) for name, us in kernels.items()
            ]
            writer.add_gpu_events(0, events)
        hold_against_kernels(writer, layers, {CUDA: GPU})
    with Report.open(tmp_path / "r.dldprof") as report:
        peaks = [
            f"{one.name} {one.type} {kernels}: {one.cost and one.cost.peak} {limiter(one)}"
            f" {roof_percent(one)}"
            for one, (*_, kernels) in zip(report.layers, LAYERS, strict=True)
        ]

    def kernel(provider: str, name: str, op_type: str = "Resize") -> Kernel:
        return kernel_from(name, {"op_name": op_type, "provider": f"{provider}ExecutionProvider"})

    many = [kernel("CPU", f"n{number}") for number in range(40)]
    copies = [kernel("CUDA", f"copy{n}", f"Memcpy{n}Host") for n in ("To", "From")]
    runs = {
        "some": ("CUDA", [kernel("CUDA", "conv"), kernel("CPU", "up"), kernel("CPU", "\x1b[2Jdn")]),
        "all": ("CUDA", many), "as many as are named": ("CUDA", many[:12]),
        "one more": ("CUDA", many[:13]), "copies": ("CUDA", [*copies, kernel("CUDA", "conv")]),
        "as wanted": ("CUDA", [kernel("CUDA", "conv")]), "on the CPU": ("CPU", many),
    }  # fmt: skip
    texts = {
        name: "\n".join(f"{one.kind.value}: {one.text}" for one in fallback_notes(ran, provider))
        for name, (provider, ran) in runs.items()
    }
    for waits in ([], ["words"], ["words", "\x1b"]):
        texts[f"inputs that wait: {waits!r}"] = copies_note(Copies(0.5, 0.25, 1024, 16), waits).text
    recorded("onnxruntime_profiling", {"peaks": settled("\n".join(peaks)), **texts})
