"""What reports of many kinds say first, advise and note, compared with the files beside."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dld_tui.core.reading.card import card_lines
from dld_tui.core.reading.first_lines import (
    brief,
    costly_types,
    latency_title,
    shapes_text,
    text_lines,
)
from dld_tui.core.reading.story import next_steps, step_command
from dld_tui.core.report.generation import GENERATION
from dld_tui.core.report.measured_figures import input_lines, measured_figures, measured_json
from dld_tui.core.report.records import Cost, GpuEvent, Layer, NodeLink, PassState
from dld_tui.core.report.report import LAYERS_ONLY, PHASES_ONLY, Report
from dld_tui.core.report.triage import notes_of
from dld_tui.core.types import JSON
from tests.support.gpu_reports import CUDA
from tests.support.profiles import start_report
from tests.support.recorded import Recorded, settled
from tests.support.report_files import HOSTILE
from tests.support.transcript_files import decoder_report

CPU = "CPUExecutionProvider"
Layers = Mapping[Layer, Sequence[float]]


def layer(name: str, kind: str = "Conv", provider: str = CPU, **more: Any) -> Layer:
    link = NodeLink((), name, name, kind)
    return Layer(name, kind, provider=provider, nodes=(link,), confidence="name", **more)


@dataclass(frozen=True)
class Made:
    """A report to write."""

    layers: Layers = field(default_factory=dict)
    """With milliseconds in each pass."""
    latencies: Sequence[float] = ()
    between_ms: float = 0.0
    """What a pass takes beside its layers."""
    kernels: Sequence[GpuEvent] = ()
    """Of a pass of kernels alone, of a millisecond."""
    properties: Mapping[str, JSON] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    gpu_absent: str | None = None
    partial: bool = False

    def write(self, path: Path) -> Path:
        made = start_report(path, **self.facts)
        for name, value in self.properties.items():
            made.set_property(name, value)
        made.add_latencies(self.latencies)
        numbers = [made.add_layer(one) for one in self.layers]
        passes = max(map(len, self.layers.values()), default=0)
        for number in range(passes):
            start = at = 1e6 * number
            rows: list[tuple[int, float, float, float, int | str]] = []
            for index, times in zip(numbers, self.layers.values(), strict=True):
                if number < len(times):
                    took = 1000 * times[number]
                    rows.append((index, at, took, took, 1))
                    at += took
            made.add_pass(number, start, at + 1000 * self.between_ms - start)
            made.add_samples(number, rows)
        if self.kernels:
            made.add_pass(passes, 1e6 * passes, 1000.0, PassState.KERNELS_ALONE)
            made.add_gpu_events(passes, self.kernels)
        if self.gpu_absent is not None:
            made.set_gpu_absent(self.gpu_absent)
        if self.partial:
            made.abort("stopped")
            return path
        return made.finish()


CONV, RELU, PRODUCT = layer("conv"), layer("relu", "Relu"), layer("mm", "MatMul")
STEADY = [1.0, 1.001, 0.999] * 40
NOISY = [1.0, 2.0] * 60
EQUAL = {CONV: [1.0, 1.1] * 10, RELU: [1.1, 1.0] * 10}
APART = {CONV: [2.0] * 10, RELU: [1.0] * 10}
BUSY = {"environment": {"other_busy_threads": 3.0, "cpu_threads": 8}}
LOADED = {"environment": {"load_average": [5.5, 1, 1], "cpu_threads": 8}}


def given(name: str, *shape: int, **more: str) -> JSON:
    return {"name": name, "shape": [*shape], **more}


INPUTS: dict[str, JSON] = {
    "inputs": [
        given("x", 1, 3, 8, 8, why="image"), given("y", 1, 3, 8, 8, why="image", values="0..1"),
        given("a" * 60, 2), given("scalar"), given("m", 1, 9, values="ones"), given(HOSTILE, 4, 4),
        given("t", 2, 2, 2, why="text", values="0..9"), {"name": 3, "shape": [1]}, {"name": "b"}, 7,
    ]
}  # fmt: skip
DAMAGED: Mapping[str, JSON] = {
    "peak_memory_bytes": -1, "load_ms": "3", "throughput_per_s": None, "phases_ms": {"h2d": 3},
}  # fmt: skip
ENERGY: Mapping[str, JSON] = {
    "energy_per_inference_j": 0.5, "board_power_w": 300.0, "energy_rails": "the GPU",
    "energy_repeats_j": [0.49, 0.5, 0.52],
}  # fmt: skip
SIZES: Mapping[str, JSON] = {
    "peak_memory_bytes": 3_000_000.4, "gpu_memory_bytes": 5e9, "activation_bytes": 7000,
    "load_ms": 1234.0, "throughput_per_s": 2048.25,
    "phases_ms": {"h2d": {"median": 0.5, "min": 0.4, "max": "1", "p99": 0.9}, "compute": {},
                  "d2h": {"max": 2}, "enqueue": 3},
}  # fmt: skip
IN_USE = {
    replace(CONV, cost=Cost(flops=10**9, moved_bytes=10**6, in_use_bytes=10**6, arena_bytes=9)):
        [1.0] * 3,
    replace(RELU, cost=Cost(in_use_bytes=2 * 10**6, arena_bytes=3 * 10**6)): [2.0] * 3,
}  # fmt: skip
FP32 = {"precision": "float32"}
ENGINE: Mapping[str, Any] = {
    "backend": "TensorRT 10.16.1", "execution_provider": "", "model": {"path": "/m.onnx"},
}  # fmt: skip
ON_GPU: Mapping[str, Any] = {"execution_provider": "CUDA", "device": "NVIDIA H200"}
COPIES = {
    layer("a", "MatMul", CUDA, **FP32): [0.1] * 3, layer("to", "MemcpyToHost", CUDA): [0.1] * 3,
    layer("b", "Relu"): [0.2] * 3, layer("c", "Loop"): [0.1] * 3,
}  # fmt: skip


def kernels(count: int, every: float, length: float, layer: int | None = 0) -> list[GpuEvent]:
    return [GpuEvent("s", "kernel", "k", every * at, length, layer) for at in range(count)]


def cases() -> Iterator[tuple[str, Made]]:
    """Yield reports of every kind of doubt, figure and advice."""
    yield "nothing", Made()
    yield "steady", Made(APART, STEADY, between_ms=0.25)
    yield "few passes", Made({CONV: [1.0], RELU: [1.0]}, [1.5])
    yield "two passes", Made({CONV: [1.0, 1.2]}, [1.5, 1.5])
    yield "noisy", Made(APART, NOISY)
    yield "noisy and busy", Made(APART, NOISY, facts=BUSY)
    yield "busy", Made(APART, STEADY, facts=BUSY)
    yield "loaded", Made(EQUAL, STEADY, facts=LOADED)
    yield "noisy, no order", Made(EQUAL, NOISY)
    yield "steady, no order", Made(EQUAL, STEADY)
    yield "a slow first", Made(EQUAL, [10.0, *STEADY])
    yield "a slow first, busy", Made(EQUAL, [10.0, *STEADY], facts=BUSY)
    yield "profiled alone", Made(APART, between_ms=1.0)
    yield "profiling slows", Made(APART, [2.0] * 100)
    yield "profiling slows, noisy", Made(APART, [1.0, 2.0] * 60, facts=BUSY)
    delayed = {CONV: [1.0] * 8 + [9.0] * 8, RELU: [1.0] * 8 + [9.0] * 8}
    yield "delayed", Made(delayed, STEADY)
    yield "partial", Made({CONV: [1.0]}, [1.0], partial=True)
    yield "unfinished passes", Made({CONV: [1.0] * 4, RELU: [1.0]}, partial=True)
    yield "no GPU", Made(APART, STEADY, gpu_absent="no driver\x1b[2J", facts=ON_GPU)
    yield "sums of layers", Made(APART, properties={LAYERS_ONLY: True})
    yield "phases", Made(APART, STEADY, properties={PHASES_ONLY: True, **SIZES})
    keys = ("network", "device", "backend", "execution_provider")
    yield "hostile", Made({layer(HOSTILE, HOSTILE): [1.0]}, facts=dict.fromkeys(keys, HOSTILE))
    yield "many types", Made({layer(f"l{at}", f"T{at}"): [1.0 + at] * 8 for at in range(6)})
    many = {layer(f"/b.{at}/mm", "MatMul", **FP32): [1.0] * 8 for at in range(5)}
    yield "many layers", Made({**many, PRODUCT: [0.0] * 8}, STEADY)
    yield "a fallback", Made({layer("g", provider=CUDA): [1.0] * 8, **many}, facts=ON_GPU)
    shared = NodeLink((), "n", "n", "Conv", share=0.5)
    joined = replace(layer("f", "FusedConv"), nodes=(shared, shared))
    yield "joined", Made({joined: [6.0] * 8, replace(RELU, nodes=(), confidence="none"): [2.0] * 8})
    yield "a loop", Made({layer("loop", "Loop"): [2.0] * 8, CONV: [1.0] * 8}, STEADY)
    yield "launches", Made({layer("g", provider=CUDA): [1.0] * 8}, [9.0, *STEADY], facts=ON_GPU)
    wide = {layer("mm", "MatMul", CUDA, **FP32): [0.3] * 8, layer("r", "Relu", CUDA): [0.2] * 8}
    for name, events in (
        ("short kernels", kernels(45, 20.0, 4.0)), ("long kernels", kernels(4, 250.0, 100.0)),
        ("a whole pass", kernels(1, 0.0, 990.0)), ("no layer", kernels(3, 100.0, 90.0, None)),
        ("copies", [GpuEvent("s", "memcpy", "HtoD", 0.0, 400.0, None, 10), *kernels(1, 500.0, 9)]),
    ):  # fmt: skip
        yield name, Made(wide, [1.2] * 9, kernels=events, facts=ON_GPU)
    yield "a graph of kernels", Made(
        wide, [1.2] * 9, kernels=kernels(45, 20.0, 4.0), properties={"cuda_graph": True},
        facts=ON_GPU)  # fmt: skip
    yield "quicker with records", Made(wide, [0.9] * 9, kernels=kernels(9, 90, 70), facts=ON_GPU)
    yield "slower with records", Made(wide, [2.0] * 9, kernels=kernels(9, 90, 70), facts=ON_GPU)
    yield "interrupted", Made(COPIES, [1.0] * 9, kernels=kernels(3, 300.0, 4.0), facts=ON_GPU)
    for version in ("10.16.1", "11.0.0", "?"):
        facts = {**ENGINE, "backend": f"TensorRT {version}"}
        yield f"TensorRT {version}", Made(many, STEADY, facts=facts)
    yield "an engine without a model", Made(many, NOISY, facts={**ENGINE, "model": {}})


def figure_cases() -> Iterator[tuple[str, Made]]:
    """Yield reports of every kind of input and figure beside the times."""
    yield "inputs", Made(APART, STEADY, properties=INPUTS)
    yield "given inputs", Made(APART, STEADY, facts={"settings": {"input_shapes": {
        "x": [1, 2], "y": ["n"], "z": 3, "e": []}}})  # fmt: skip
    yield "no inputs", Made(APART, STEADY, facts={"settings": {"input_shapes": [3]}})
    yield "sizes", Made(IN_USE, STEADY, properties=SIZES)
    yield "damaged", Made(APART, STEADY, properties=DAMAGED)
    yield "energy", Made(APART, STEADY, properties=ENERGY)
    yield "power", Made(APART, STEADY, properties={"board_power_w": 3.0})
    for asked, used in ((True, True), (True, False), (False, False)):
        settings = {"cuda_graph": asked, "cuda_graph_used": used}
        yield f"a graph {asked} {used}", Made(APART, STEADY, facts={"settings": settings})


def answer(report: Report) -> str:
    lines = [*text_lines(report), "--", brief(report), latency_title(report)]
    lines += [*card_lines(report)[-3:], str([costly_types(report, most)[1] for most in (1, 9)])]
    lines += [f"- {step.line} {step.layers}: {step_command(report, step)}"
              for step in next_steps(report)]  # fmt: skip
    lines += [f"{note.kind.value}: {note.text}" for note in notes_of(report)]
    assert all(map(str.isprintable, lines))
    return "\n".join(lines)


def test_answers_of_reports(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    for name, made in cases():
        with Report.open(made.write(tmp_path / f"{name}.dldprof")) as report:
            texts[name] = settled(answer(report), tmp_path)
    recorded("whole_answers", texts)


def figures(report: Report) -> str:
    lines = [text_lines(report)[1], *(line for line in text_lines(report) if "Memory" in line)]
    lines += [f"{one.name}: {one.text} {one.is_doubtful}" for one in measured_figures(report)]
    return "\n".join([*lines, shapes_text(report), *input_lines(report),
                      json.dumps(measured_json(report))])  # fmt: skip


def test_figures_of_reports(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    for name, made in figure_cases():
        with Report.open(made.write(tmp_path / f"{name}.dldprof")) as report:
            texts[name] = figures(report)
    recorded("whole_figures", texts)


def generations() -> Iterator[tuple[str, dict[str, JSON]]]:
    """Yield figures of decoders."""
    one: dict[str, JSON] = {
        "batch": 2, "prompt": 64, "tokens": 8, "prefill_ms": 5.0, "first_token_ms": 6.0,
        "decode_ms": 70.0, "step_ms": [8.0, 9.0], "kv_bytes": 4096,
    }  # fmt: skip
    yield "least", one
    yield "repeated", {**one, "repeats_ms": [70.0, 72.0], "first_tokens_ms": [6.0, 7.0]}
    yield "memory", {**one, "peak_memory_bytes": 3 * 10**6, "gpu_memory_bytes": 5 * 10**9,
                     "energy_per_token_j": 0.25}  # fmt: skip
    yield "no batch", {**one, "batch": 0}
    yield "no prompt", {**one, "prompt": 0}
    yield "no tokens", {**one, "tokens": 0, "decode_ms": 0.0, "step_ms": []}
    yield "wrong", {**one, "kv_bytes": "3"}


def test_answers_of_decoders(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    paths = {"whole": decoder_report(tmp_path / "whole.dldprof")}
    facts = {**BUSY, "settings": {"prompt": 64, "batch": 2, "iterations": 3, "odd": 4}}
    for name, generation in generations():
        made = Made(APART, NOISY, properties={GENERATION: [generation]}, facts=facts)
        paths[name] = made.write(tmp_path / f"{name}.dldprof")
    for name, path in paths.items():
        with Report.open(path) as report:
            texts[name] = settled(f"{answer(report)}\n{figures(report)}", tmp_path)
    recorded("whole_decoder_answers", texts)
