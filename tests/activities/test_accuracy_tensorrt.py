"""Models beside their engines, on the fakes of TensorRT and CUDA; nothing here ran on a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.activities.accuracy.job import Request, run
from dld_tui.backends.tensorrt import library, outputs
from dld_tui.backends.tensorrt.library import Library, use
from dld_tui.core.accuracy.result import Result
from dld_tui.core.codec import encode
from dld_tui.core.errors import ActivityError, InputError, UnavailableError, UsageError
from dld_tui.core.events import Event, Finished, Log
from tests.support import models
from tests.support.engines import built
from tests.support.fake_tensorrt import STRONGLY_TYPED, WEAKLY_TYPED, fake_tensorrt

pytest.importorskip("onnxruntime")

Values = Callable[[str, Any], Any]
SHAPE = ("x:2x4",)
IDS = """
<ir_version: 8, opset_import: ["" : 17]>
ids (int64[N] image) => (int64[N] doubled, int64[N] kept) {
  [a] doubled = Add(image, image)
  [b] kept = Identity(image)
}
"""
BODY = """
<ir_version: 8, opset_import: ["" : 17]>
body (float[2] x, bool c) => (float[2] y) {
  a = Abs(x)
  y = If(c) <
    then_branch = t () => (float[2] r) { r = Neg(a) },
    else_branch = e () => (float[2] s) { u = Exp(a)  s = Neg(u) }
  >
}
"""


@pytest.fixture
def trt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return install(monkeypatch, tmp_path)


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, version: str = WEAKLY_TYPED) -> Any:
    fake = fake_tensorrt(version)
    fake.fake.values = lambda name, value: value

    def find(choice: str) -> Library:
        return use(fake)

    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setattr(library, "find_library", find)
    monkeypatch.setattr(outputs, "Cuda", lambda device: fake.fake.cuda)
    return fake


def compare(model: Path, **settings: Any) -> tuple[dict[str, Any], Result, list[Event]]:
    *events, last = run(Request(model, **settings))
    assert isinstance(last, Finished)
    return encode(last.result), last.result.found, events


def wrong_at(names: Sequence[str], by: float = 0.5) -> Values:
    return lambda name, value: value + by if name in names else value


def test_outputs_of_a_built_engine(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    result, found, _ = compare(path, against_backend="tensorrt", fp16=True, shape=SHAPE, sets=3)

    assert result["is_good"]
    assert [row.name for row in found.rows] == ["y"]
    assert result["other"]["how"] == "TensorRT 10.13.0.35, fp16"
    assert result["reference"]["how"].startswith("ONNX Runtime 1.")
    ((_, config),) = trt.fake.builds
    assert config.get_flag(trt.BuilderFlag.FP16)
    assert trt.fake.cuda.live == 0

    trt.fake.values = wrong_at(["y"])
    result, found, _ = compare(path, against_backend="tensorrt", shape=SHAPE)
    assert not result["is_good"]
    assert found.rows[0].error.max_abs == pytest.approx(0.5)


def test_profiles_are_made_of_the_inputs(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    for number, size in enumerate((3, 1, 8)):
        folder = tmp_path / "data" / f"test_data_set_{number}"
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", np.full((size, 4), number - 1, np.float32))
    compare(path, against_backend="tensorrt", inputs=tmp_path / "data")
    ((_, config),) = trt.fake.builds
    assert config._profiles[0].get_shape("x") == [(1, 4), (3, 4), (8, 4)]

    with pytest.raises(UsageError, match=r"shape \[8, 4\] of input x is outside profile 0"):
        compare(
            path, against_backend="tensorrt", inputs=tmp_path / "data", max_shapes=("x:4x4",),
            min_shapes=("x:1x4",),
        )  # fmt: skip


def test_inner_tensors_in_several_engines(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, WIDE)
    trt.fake.values = wrong_at(["c"])
    result, found, events = compare(
        path, against_backend="tensorrt", tensors=True, tf32=False, memory_budget=2
    )

    assert [row.name for row in found.rows] == ["a", "b", "c", "d", "y"]
    assert result["first"] == "c"
    assert result["is_good"], "only c is wrong, and no output"
    assert len(trt.fake.builds) == 3
    marked = [
        [network.get_output(at).name for at in range(network.num_outputs)]
        for network, _ in trt.fake.builds
    ]
    assert marked == [["y", "a", "b"], ["y", "c", "d"], ["y"]]
    said = [event.text for event in events if isinstance(event, Log)]
    assert said[0].startswith("5 tensors are compared in 3 groups: 3 engines are built")
    assert "the others take about" in said[1]
    assert any("does not fuse across them" in remark for remark in found.remarks)


WIDE = """
<ir_version: 10, opset_import: ["" : 18]>
wide (float[1, 300, 300] x) => (float[1, 300, 300] y)
<float w = {1.5}>
{
    [a] a = Mul(x, w)
    [b] b = Tanh(a)
    [c] c = Add(a, b)
    [d] d = Neg(c)
    [y] y = Add(d, a)
}
"""


def test_tensors_that_tensorrt_does_not_have_are_listed_with_the_reason(
    trt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse = trt.OnnxParser.parse_from_file

    def folding(self: Any, model: str) -> bool:
        done = bool(parse(self, model))
        for layer in self._network._layers:
            tensor = layer.get_output(0)
            if tensor.name == "a":
                tensor._value_name = "a_renamed"
            tensor._shape_tensor = tensor.name == "b"
        return done

    monkeypatch.setattr(trt.OnnxParser, "parse_from_file", folding)
    monkeypatch.setattr(
        trt.ITensor, "is_execution_tensor", property(lambda self: not self._shape_tensor)
    )
    path = models.write(tmp_path, WIDE)
    result, found, _ = compare(path, against_backend="tensorrt", tensors=True)
    assert [row.name for row in found.rows] == ["c", "d", "y"]
    assert sorted(map(tuple, result["not_compared"].values())) == [("a",), ("b",)]
    assert result["unmatched"] == 2
    assert any(
        remark.startswith("not compared: 1 tensor, TensorRT treats it as a shape")
        for remark in found.remarks
    )


def test_a_group_that_cannot_be_built_is_left_out(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, WIDE)
    build = trt.Builder.build_serialized_network

    def refusing(self: Any, network: Any, config: Any) -> Any:
        names = {network.get_output(at).name for at in range(network.num_outputs)}
        trt.fake.build_fails = "no implementation for node c" if "c" in names else ""
        return build(self, network, config)

    trt.Builder.build_serialized_network = refusing
    result, found, events = compare(path, against_backend="tensorrt", tensors=True, memory_budget=2)
    assert [row.name for row in found.rows] == ["a", "b", "y"]
    assert [*result["not_compared"].values()] == [["c", "d"]]
    assert any("left out" in event.text for event in events if isinstance(event, Log))

    trt.fake.build_fails, trt.Builder.build_serialized_network = "no kernel", build
    with pytest.raises(ActivityError, match="no kernel"):
        compare(path, against_backend="tensorrt")


def test_an_engine_that_is_there_needs_trust(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, IDS)
    engine = tmp_path / "ids.engine"
    engine.write_bytes(built(trt, IDS, ranges=((1, 2, 4),), rest=()))
    with pytest.raises(UsageError, match="only if you trust"):
        compare(path, against=engine, shape=("image:3",))

    result, found, _ = compare(path, against=engine, trust=True, shape=("image:3",))
    assert result["is_good"]
    assert [row.name for row in found.rows] == ["doubled", "kept"]
    assert result["other"]["how"].startswith("TensorRT 10.13.0.35, engine of ")
    assert not [remark for remark in found.remarks if "engine" in remark]


def test_an_engine_as_the_reference(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, IDS.replace("kept", "second"), "renamed.onnx")
    engine = tmp_path / "ids.engine"
    engine.write_bytes(built(trt, IDS, ranges=((1, 2, 4),), rest=()))
    with pytest.raises(UsageError, match="only if you trust"):
        compare(engine, against=path, shape=("image:3",))

    result, found, _ = compare(engine, against=path, trust=True, shape=("image:3",))
    assert result["is_good"]
    assert [(row.name, row.other, row.node, row.op_type) for row in found.rows] == [
        ("doubled", "doubled", "a", "Add"), ("kept", "second", "b", "Identity")
    ]  # fmt: skip
    assert result["reference"]["how"].startswith("TensorRT 10.13.0.35, engine of ")
    assert result["other"]["provider"] == "CPU"
    assert "output kept is compared with second, by position" in found.remarks

    _, found, _ = compare(engine, against=engine, trust=True, shape=("image:3",))
    assert [(row.name, row.node) for row in found.rows] == [("doubled", ""), ("kept", "")]
    assert not trt.fake.builds[1:], "nothing was built for these"


def test_an_engine_beside_a_build_of_a_model(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, IDS)
    engine = tmp_path / "ids.engine"
    engine.write_bytes(built(trt, IDS, ranges=((1, 2, 4),), rest=()))
    result, found, _ = compare(
        engine, against=path, against_backend="tensorrt", fp16=True, trust=True, shape=("image:3",)
    )
    assert result["other"]["how"] == "TensorRT 10.13.0.35, fp16"
    assert [row.name for row in found.rows] == ["doubled", "kept"]


def test_names_and_types_of_an_engine_that_differ_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trt = install(monkeypatch, tmp_path, "8.6.1")
    path = models.write(tmp_path, IDS)
    engine = tmp_path / "ids.engine"
    other = IDS.replace("image", "ids").replace("kept", "second")
    engine.write_bytes(built(trt, other, ranges=((1, 2, 4),), rest=(), name="ids"))
    result, found, _ = compare(path, against=engine, trust=True, shape=("image:3",), tensors=True)

    assert result["is_good"]
    assert [(row.name, row.other) for row in found.rows] == [
        ("doubled", "doubled"), ("kept", "second")
    ]  # fmt: skip
    assert "output kept is compared with second, by position" in found.remarks
    assert "input ids is fed with image, by position" in found.remarks
    assert "input ids of the engine is int32, not int64: it is cast" in found.remarks
    assert "output doubled is int64 in the reference and int32 in the engine" in found.remarks


def test_outputs_too_few_and_too_many(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, IDS)
    more = IDS.replace("(int64[N] doubled, int64[N] kept)", "(int64[N] doubled)").replace(
        "  [b] kept = Identity(image)\n", ""
    )
    engine = tmp_path / "ids.plan"
    engine.write_bytes(built(trt, more, ranges=((1, 2, 4),), rest=()))
    _, found, _ = compare(path, against=engine, trust=True, shape=("image:3",))
    assert "output kept is not in the engine" in found.remarks

    engine.write_bytes(built(trt, IDS, ranges=((1, 2, 4),), rest=()))
    few = models.write(tmp_path, more, "few.onnx")
    _, found, _ = compare(few, against=engine, trust=True, shape=("image:3",))
    assert "output kept of the engine is not in the reference" in found.remarks


def test_two_precisions_of_tensorrt(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    result, _, _ = compare(path, backend="tensorrt", fp16=True, shape=SHAPE, tensors=True)
    assert result["reference"]["how"] == "TensorRT 10.13.0.35"
    assert result["other"]["how"] == "TensorRT 10.13.0.35, fp16"
    assert [config.get_flag(trt.BuilderFlag.FP16) for _, config in trt.fake.builds] == [False, True]

    with pytest.raises(UsageError, match="nothing to compare with"):
        compare(path, backend="tensorrt")


def test_tensors_in_bodies_are_counted(tmp_path: Path) -> None:
    path = models.write(tmp_path, BODY)
    _, found, _ = compare(path, tensors=True, against_optimization="all")
    assert "not compared: 3 tensors that are in bodies of If, Loop and Scan" in found.remarks


def test_what_does_not_go_together_is_refused_first(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    engine = tmp_path / "a.engine"

    def refused(**settings: Any) -> str:
        with pytest.raises(UsageError) as raised:
            list(run(Request(**{"model": path, **settings})))
        return raised.value.message

    assert refused(fp16=True) == "--fp16 is for TensorRT"
    assert refused(model=engine) == "there is nothing to compare the engine with"
    assert "outputs only" in refused(model=engine, against=path, tensors=True)
    assert "--fp16 cannot be used with" in refused(model=engine, against=path, fp16=True)
    assert "--optimization is for ONNX" in refused(model=engine, against=path, optimization="all")
    assert "--no-tf32 cannot be used with a built engine" in refused(against=engine, tf32=False)
    assert "--round cannot be used with" in refused(against=engine, round="fp16")
    assert "runs no engines" in refused(against=engine, against_backend="onnxruntime")
    assert "--against-provider is for ONNX Runtime" in refused(
        against_backend="tensorrt", against_provider="CUDA"
    )
    engine.write_bytes(b"no engine")
    with pytest.raises(InputError, match="is not a TensorRT engine"):
        list(run(Request(path, engine, trust=True)))
    assert not trt.fake.builds


def test_what_a_library_cannot_do_is_refused_before_the_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, STRONGLY_TYPED)
    with pytest.raises(UsageError, match="--fp16 cannot be used: types come from the model"):
        list(run(Request(tmp_path / "none.onnx", against_backend="tensorrt", fp16=True)))


def test_a_gpu_that_the_library_does_not_run_on_ends_it_before_a_build(
    trt: Any, tmp_path: Path
) -> None:
    trt.fake.runtime_fails = (
        "Error: SM 90 is not supported. Supported compute capabilities: 8.0 8.6 8.9 12.0"
    )
    with pytest.raises(UnavailableError, match=r"does not run on this GPU.*8\.0, 8\.6"):
        list(run(Request(tmp_path / "none.onnx", against_backend="tensorrt")))
    assert not trt.fake.builds


def test_it_can_be_stopped_while_it_builds(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    steps: Any = run(Request(path, against_backend="tensorrt", shape=SHAPE))
    with contextlib.closing(steps):
        assert any(getattr(step, "stage", "") == "Preparing the model" for step in steps)
    assert not trt.fake.builds
    assert trt.fake.cuda.live == 0
