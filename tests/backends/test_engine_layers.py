"""Kernels of an engine inside ONNX Runtime belong to the layers that TensorRT names.

The ranges are made by hand.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from dld_tui.backends.onnxruntime.engine_layers import add_engine_layers
from dld_tui.core.model.document import Document
from dld_tui.core.report.gpu_kernels import (
    Activity,
    ActivityLog,
    LayerSpan,
    NamedRange,
    PassSpan,
    attribute,
)
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import open_report
from tests.support.models import write
from tests.support.profiles import start_report

ORIGIN = 1_700_000_000_000_000_000
MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
m (float[1, 1, 4, 4] x) => (float[1, 1, 4, 4] y)
<float[1, 1, 1, 1] w = {2}> {
    [conv1] a = Conv(x, w)
    [relu1] b = Relu(a)
    [last] y = Softmax(b)
}
"""
ENGINE = "TensorrtExecutionProvider_TRTKernel_graph_m_2068723788287043730_0_0"
LAYERS = [Layer(ENGINE, "TRTKernel", provider="Tensorrt"), Layer("other", "Relu", provider="CPU")]
NAMES = ("Reformatting CopyNode for Input Tensor 0 to conv1 + relu1", "conv1 + relu1", "last")


def ns(us: float) -> int:
    return ORIGIN + round(1000 * us)


def a_pass(index: int, start: float) -> PassSpan:
    return PassSpan(index, start, 100, [LayerSpan(0, start + 10, 60), LayerSpan(1, start + 80, 10)])


def ranges_of(start: float) -> list[NamedRange]:
    """Return what TensorRT names in a pass: the execution, and its layers in it."""
    inside = [NamedRange(name, ns(start + at), ns(start + at + 8)) for at, name in
              zip((20, 30, 40), NAMES, strict=True)]  # fmt: skip
    outside = NamedRange("something else", ns(start + 82), ns(start + 84))
    before = NamedRange("something before", ns(start + 2), ns(start + 9))
    around = NamedRange("ExecutionContext::enqueue", ns(start + 12), ns(start + 60))
    return [before, *inside, around, outside]


def kernels_of(number: int, start: float) -> ActivityLog:
    log = ActivityLog()
    for at, launched in enumerate((15, 22, 33, 36, 41, 85)):
        log.launched(number + at, ns(start + launched))
        log.work.append(Activity("kernel", f"k{at}", ns(start + 200 + at), ns(start + 201 + at),
                                 number + at, "7"))  # fmt: skip
    return log


def test_kernels_belong_to_engine_layers_and_these_to_nodes(tmp_path: Path) -> None:
    passes = [a_pass(0, 100.0), a_pass(1, 300.0)]
    log = kernels_of(0, 100.0)
    second = kernels_of(10, 300.0)
    log.work += second.work
    log.launches.update(second.launches)
    path = tmp_path / "r.dldprof"
    made = start_report(path)
    for layer in LAYERS:
        made.add_layer(layer)
    with contextlib.closing(Document.open(write(tmp_path, MODEL))) as document:
        ranges = [*ranges_of(100.0), *ranges_of(300.0)]
        spans, added = add_engine_layers(made, passes, LAYERS, ranges, ORIGIN, document)
    for span in spans:
        made.add_pass(span.index, span.start_us, span.duration_us)
    found = attribute(log, ORIGIN, spans)
    made.finish()
    assert [layer.name for layer in added] == [*NAMES]
    assert {layer.provider for layer in added} == {"Tensorrt"}
    # One before the first layer counts for the engine; the last one for the node on the CPU.
    for events in found.events.values():
        assert [event.layer for event in events] == [0, 2, 3, 3, 4, 1]
    with open_report(path) as report:
        nodes = [sorted(link.node for link in layer.nodes) for layer in report.layers]
        assert nodes[3] == ["conv1", "relu1"]
        assert nodes[4] == ["last"]
        assert any("3 layers of 1 engine" in note.text for note in report.notes)


@pytest.mark.parametrize("provider", ["Tensorrt", "CUDA"])
def test_without_names_an_engine_stays_whole(tmp_path: Path, provider: str) -> None:
    layers = [Layer(ENGINE, "TRTKernel", provider=provider), LAYERS[1]]
    made = start_report(tmp_path / "r.dldprof")
    with contextlib.closing(Document.open(write(tmp_path, MODEL))) as document:
        passes = [a_pass(0, 100.0)]
        spans, added = add_engine_layers(made, passes, layers, [], ORIGIN, document)
    assert (spans, added) == (passes, [])
