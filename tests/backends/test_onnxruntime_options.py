from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from dld_tui.backends.onnxruntime import runtime
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import (
    SessionSettings,
    options_by_provider,
    parse_pairs,
    parse_sizes,
    provider_list,
    session_options,
)
from dld_tui.core.errors import ActivityError, InputError, UsageError
from dld_tui.core.report.latency import StopCondition, measure
from tests.support import models

pytest.importorskip("onnxruntime")


def test_options_go_to_their_provider() -> None:
    texts = ["cudnn_conv_algo_search=HEURISTIC", "cuda.enable_cuda_graph=1", "a.b=c=d,e"]

    assert options_by_provider(texts, ["Tensorrt", "CUDA"]) == {
        "Tensorrt": {"cudnn_conv_algo_search": "HEURISTIC", "a.b": "c=d,e"},
        "CUDA": {"enable_cuda_graph": "1"},
    }


def test_where_inputs_and_outputs_are_bound() -> None:
    memory = {name: SessionSettings((name,)).memory for name in ("CUDA", "Dml", "CPU", "XNNPACK")}

    assert memory == {"CUDA": "cuda", "Dml": "dml", "CPU": "cpu", "XNNPACK": "cpu"}
    assert SessionSettings(("Tensorrt", "CPU")).uses_cuda
    assert not SessionSettings(("CPU", "CUDA")).uses_cuda


def test_bound_feeds_give_the_same_results_and_their_copies_are_timed(tmp_path: Path) -> None:
    session = Session(models.write(tmp_path, models.CHAIN), SessionSettings(quiet=True))
    feeds = [session.feed({"x": np.full((rows, 4), rows, np.float32)}) for rows in (1, 2)]
    bound = session.bind(feeds)
    bursts = measure(session.bound_timer(bound), StopCondition(3))

    assert sum(burst.calls for burst in bursts) == 3
    for feed, one in zip(feeds, bound, strict=True):
        (result,) = one.binding.copy_outputs_to_cpu()
        assert result.tolist() == session.run(feed)[0].tolist()
    copies = bound[1].time_copies(passes=3)
    assert (copies.input_bytes, copies.output_bytes) == (32, 32)
    assert copies.inputs_ms > 0
    assert copies.outputs_ms > 0
    assert bound[0].on_host == []


def test_texts_are_pairs_and_sizes() -> None:
    for text in ("alone", "=value", ""):
        with pytest.raises(UsageError, match="--session-config"):
            parse_pairs([text], "--session-config")
    assert parse_sizes(["N=4,height=224", "w=1"]) == {"N": 4, "height": 224, "w": 1}
    for wrong in ("N=0", "N=-1", "N=x", "N=2147483648"):
        with pytest.raises(UsageError, match="is not a size"):
            parse_sizes([wrong])


@pytest.mark.parametrize(
    ("settings", "entries"),
    [
        (SessionSettings(device_id=3), [("CUDAExecutionProvider", {"device_id": "3"}),
                                        "CPUExecutionProvider", "XNNPACKExecutionProvider"]),
        (SessionSettings(device_id=1, provider_options={"CUDA": {"x": "1"}, "CPU": {"y": "2"}}),
         [("CUDAExecutionProvider", {"device_id": "1", "x": "1"}),
          ("CPUExecutionProvider", {"y": "2"}), "XNNPACKExecutionProvider"]),
    ],
)  # fmt: skip
def test_options_of_providers_join_the_device(settings: SessionSettings, entries: Any) -> None:
    assert provider_list(["CUDA", "CPU", "XNNPACK"], settings) == entries


@pytest.mark.parametrize(
    ("mode", "threads", "parallel"),
    [("auto", 1, False), ("auto", 2, True), ("parallel", 0, True), ("sequential", 4, False)],
)
def test_what_the_options_of_a_session_get(mode: str, threads: int, parallel: bool) -> None:
    entry = {"session.disable_prepacking": "1"}
    settings = SessionSettings(
        execution_mode=mode, threads=3, inter_threads=threads, config=entry, quiet=True
    )
    options = session_options(runtime.load(), settings)
    modes = runtime.load().ExecutionMode
    assert (options.execution_mode == modes.ORT_PARALLEL) is parallel
    assert options.intra_op_num_threads == 3
    assert options.inter_op_num_threads == threads
    assert options.get_session_config_entry("session.disable_prepacking") == "1"
    assert options.log_severity_level == 3
    assert not options.enable_profiling


def test_what_onnxruntime_refuses_of_them(tmp_path: Path) -> None:
    torn = tmp_path / "torn.so"

    def refused(kind: type[Exception], said: str, **settings: Any) -> None:
        with pytest.raises(kind, match=said):
            session_options(runtime.load(), SessionSettings(**settings))

    refused(UsageError, "--session-config", config={"k" * 5000: "1"})
    refused(InputError, "does not exist", custom_operators=(torn,))
    torn.write_bytes(b"no library")
    refused(InputError, "not a library of custom operators", custom_operators=(torn,))


def one_input(folder: Path, kind: str, node: str, result: str) -> Session:
    text = f'<ir_version: 10, opset_import: ["" : 21]> g ({kind} x) => ({result} y) {{ {node} }}'
    settings = SessionSettings(dimensions={"N": 2}, quiet=True)
    return Session(models.write(folder, text), settings)


def test_text_and_types_without_a_numpy_form_stay_on_the_host(tmp_path: Path) -> None:
    session = one_input(tmp_path, "bfloat16[N]", "y = Cast<to: int = 1>(x)", "float[N]")
    assert session.inputs[0].dims == (2,), "as its size was given"
    feed = session.feed({"x": np.array([1.5, -2], ml_dtypes.bfloat16)})
    (bound,) = session.bind([feed])
    list(measure(session.bound_timer([bound]), StopCondition(1)))
    assert bound.on_host == ["x"]
    assert bound.binding.copy_outputs_to_cpu()[0].tolist() == [1.5, -2]
    assert session.run(feed)[0].tolist() == [1.5, -2]


def test_a_sequence_is_described_and_cannot_be_bound(tmp_path: Path) -> None:
    session = one_input(tmp_path, "seq(float[N])", "y = SequenceLength(x)", "int64")
    (spec,) = session.inputs
    assert (spec.dtype, spec.container) == ("float32", "sequence")
    feed: Any = session.feed({"x": [np.ones(2, np.float32), np.ones(3, np.float32)]})
    assert session.run(feed)[0] == 2
    with pytest.raises(ActivityError, match="is a sequence") as caught:
        session.bind([feed])
    assert caught.value.hint == "Measure it without --io-binding"
