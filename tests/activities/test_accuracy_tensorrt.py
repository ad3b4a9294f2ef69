"""Models beside their engines, on the fakes of TensorRT and CUDA; nothing here ran on a GPU."""

from __future__ import annotations

import itertools
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.activities.accuracy.job import Request, run
from dld_tui.backends.accuracy import runs
from dld_tui.backends.tensorrt.library import use
from dld_tui.core.accuracy.result import Result
from dld_tui.core.codec import encode
from dld_tui.core.errors import ActivityError, InputError, UnavailableError, UsageError
from dld_tui.core.model.document import Document
from dld_tui.core.tensorrt.settings import BuildSettings
from tests.support import models
from tests.support.activities import finished
from tests.support.engines import built
from tests.support.fake_machine import install
from tests.support.fake_tensorrt import STRONGLY_TYPED
from tests.support.jobs import texts

pytest.importorskip("onnxruntime")
SHAPE, IMAGE = ("x:2x4",), ("image:3",)
IDS = """
<ir_version: 8, opset_import: ["" : 17]>
ids (int64[N] image) => (int64[N] doubled, int64[N] kept) {
  [a] doubled = Add(image, image)
  [b] kept = Identity(image)
}
"""
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


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def trt(monkeypatch: pytest.MonkeyPatch) -> Any:
    return install(monkeypatch)


def compare(model: Path, **settings: Any) -> tuple[dict[str, Any], Result, list[str]]:
    """Return the result as JSON, what was found, and the lines of the log."""
    events = list(run(Request(model, **settings)))
    result = finished(events)
    return encode(result), result.found, texts(events)


def engine_of(trt: Any, folder: Path, text: str = IDS, **more: Any) -> Path:
    path = folder / "ids.engine"
    path.write_bytes(built(trt, text, ranges=((1, 2, 4),), rest=(), **more))
    return path


def wrong_at(trt: Any, name: str) -> None:
    trt.fake.values = lambda one, value: value + 0.5 if one == name else value


def names(found: Result) -> list[str]:
    return [row.name for row in found.rows]


def test_profiles_are_made_of_the_inputs(trt: Any, tmp_path: Path) -> None:
    path, data = models.write(tmp_path, models.CHAIN), tmp_path / "data"
    for number, size in enumerate((3, 1, 8)):
        folder = data / f"test_data_set_{number}"
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", np.full((size, 4), number - 1, np.float32))
    compare(path, against_backend="tensorrt", inputs=data)
    ((_, config),) = trt.fake.builds
    assert config._profiles[0].get_shape("x") == [(1, 4), (3, 4), (8, 4)]
    ranges = {"max_shapes": ("x:4x4",), "min_shapes": ("x:1x4",)}
    with pytest.raises(UsageError, match=r"shape \[8, 4\] of input x is outside profile 0"):
        compare(path, against_backend="tensorrt", inputs=data, **ranges)


def test_inner_tensors_in_several_engines(
    trt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "perf_counter", itertools.count(step=2.0).__next__)
    wrong_at(trt, "c")
    result, found, said = compare(
        models.write(tmp_path, WIDE), against_backend="tensorrt", tensors=True, tf32=False,
        memory_budget=2,
    )  # fmt: skip
    assert names(found) == ["a", "b", "c", "d", "y"]
    assert result["first"] == "c"
    assert result["is_good"], "only c is wrong, and no output"
    marked = [
        [network.get_output(at).name for at in range(network.num_outputs)]
        for network, _ in trt.fake.builds
    ]
    assert marked == [["y", "a", "b"], ["y", "c", "d"], ["y"]]
    assert said[0].startswith("5 tensors are compared in 3 groups: 3 engines are built")
    assert said[1] == "Built in 2.0 s: the others take about 4.0 s"
    assert "the others take about" not in "".join(said[2:])
    assert any("does not fuse across them" in remark for remark in found.remarks)


def test_an_engine_is_built_once_for_the_same_tensors(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, WIDE)
    with closing(Document.open(path)) as document:
        side = runs.BuiltSide(document, use(trt), BuildSettings(path, tmp_path / "x.engine"))
        with side.runner(True) as runner:
            for wanted in (["a", "y"], ["y", "a"], ["y"], ["y"], ["b"]):
                list(runner.prepare(wanted, [{}]))
    marked = [[one.name for one in network._outputs] for network, _ in trt.fake.builds]
    assert marked == [["y", "a"], ["y"], ["y", "b"]]


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
            tensor._shape_tensor = tensor.name in "bc"
        return done

    is_execution = property(lambda self: self.name != "b")  # c is both
    monkeypatch.setattr(trt.OnnxParser, "parse_from_file", folding)
    monkeypatch.setattr(trt.ITensor, "is_execution_tensor", is_execution)
    path = models.write(tmp_path, WIDE)
    result, found, _ = compare(path, against_backend="tensorrt", tensors=True)
    assert names(found) == ["c", "d", "y"]
    assert sorted(map(tuple, result["not_compared"].values())) == [("a",), ("b",)]
    assert result["unmatched"] == 2
    said = "not compared: 1 tensor, TensorRT treats it as a shape"
    assert any(remark.startswith(said) for remark in found.remarks)


def test_a_group_that_cannot_be_built_is_left_out(trt: Any, tmp_path: Path) -> None:
    path, build = models.write(tmp_path, WIDE), trt.Builder.build_serialized_network

    def refusing(self: Any, network: Any, config: Any) -> Any:
        marked = {network.get_output(at).name for at in range(network.num_outputs)}
        trt.fake.build_fails = "no implementation for node c" if "c" in marked else ""
        return build(self, network, config)

    trt.Builder.build_serialized_network = refusing
    result, found, said = compare(path, against_backend="tensorrt", tensors=True, memory_budget=2)
    assert names(found) == ["a", "b", "y"]
    assert [*result["not_compared"].values()] == [["c", "d"]]
    assert any("left out" in line for line in said)
    trt.fake.build_fails, trt.Builder.build_serialized_network = "no kernel", build
    with pytest.raises(ActivityError, match="no kernel"):
        compare(path, against_backend="tensorrt")


def test_an_engine_that_is_there_is_the_other_or_the_reference(trt: Any, tmp_path: Path) -> None:
    path, engine = models.write(tmp_path, IDS), engine_of(trt, tmp_path)
    how = "TensorRT 10.13.0.35, engine of "
    for first, second in ((path, engine), (engine, path)):
        with pytest.raises(UsageError, match="only if you trust"):
            compare(first, against=second, shape=IMAGE)
    result, found, _ = compare(path, against=engine, trust=True, shape=IMAGE)
    assert result["is_good"]
    assert names(found) == ["doubled", "kept"]
    assert result["other"]["how"].startswith(how)
    assert not [remark for remark in found.remarks if "engine" in remark]

    renamed = models.write(tmp_path, IDS.replace("kept", "second"), "renamed.onnx")
    result, found, _ = compare(engine, against=renamed, trust=True, shape=IMAGE)
    assert result["is_good"]
    assert [(row.name, row.other, row.node, row.op_type) for row in found.rows] == [
        ("doubled", "doubled", "a", "Add"), ("kept", "second", "b", "Identity")
    ]  # fmt: skip
    assert result["reference"]["how"].startswith(how)
    assert result["other"]["provider"] == "CPU"
    assert "output kept is compared with second, by position" in found.remarks
    _, found, _ = compare(engine, against=engine, trust=True, shape=IMAGE)
    assert [(row.name, row.node) for row in found.rows] == [("doubled", ""), ("kept", "")]
    assert not trt.fake.builds[1:], "nothing was built for these"

    result, found, _ = compare(
        engine, against=path, against_backend="tensorrt", fp16=True, trust=True, shape=IMAGE
    )
    assert result["other"]["how"] == "TensorRT 10.13.0.35, fp16"
    assert names(found) == ["doubled", "kept"]


def test_outputs_too_few_and_too_many(trt: Any, tmp_path: Path) -> None:
    one = IDS.replace(", int64[N] kept", "").replace("  [b] kept = Identity(image)\n", "")
    whole, few = models.write(tmp_path, IDS), models.write(tmp_path, one, "few.onnx")
    _, found, _ = compare(whole, against=engine_of(trt, tmp_path, one), trust=True, shape=IMAGE)
    assert "output kept is not in the engine" in found.remarks
    _, found, _ = compare(few, against=engine_of(trt, tmp_path), trust=True, shape=IMAGE)
    assert "output kept of the engine is not in the reference" in found.remarks


def test_two_precisions_of_tensorrt(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    result, found, _ = compare(
        path,
        backend="tensorrt",
        fp16=True,
        shape=SHAPE,
        tensors=True,
        layer_precision=("gone:fp16",),
    )
    assert any("no layer has the name of 'gone'" in remark for remark in found.remarks)
    assert result["reference"]["how"] == "TensorRT 10.13.0.35"
    assert result["other"]["how"] == "TensorRT 10.13.0.35, fp16, layer-precision gone:fp16"
    assert [config.get_flag(trt.BuilderFlag.FP16) for _, config in trt.fake.builds] == [False, True]


def test_tensors_in_bodies_are_counted(tmp_path: Path) -> None:
    body = """<ir_version: 8, opset_import: ["" : 17]>
    body (float[2] x, bool c) => (float[2] y) {
      a = Abs(x)
      y = If(c) <
        then_branch = t () => (float[2] r) { r = Neg(a) },
        else_branch = e () => (float[2] s) { u = Exp(a)  s = Neg(u) }
      >
    }"""
    path = models.write(tmp_path, body)
    _, found, _ = compare(path, tensors=True, against_optimization="all")
    assert "not compared: 3 tensors that are in bodies of If, Loop and Scan" in found.remarks


def test_what_does_not_go_together_is_refused_first(trt: Any, tmp_path: Path) -> None:
    path, engine = models.write(tmp_path, models.CHAIN), tmp_path / "a.engine"
    with pytest.raises(UsageError, match="nothing to compare with"):
        compare(path, backend="tensorrt")
    engine.write_bytes(b"no engine")
    with pytest.raises(InputError, match="is not a TensorRT engine"):
        compare(path, against=engine, trust=True)
    assert not trt.fake.builds


def test_what_a_library_cannot_do_is_refused_before_the_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trt, none = install(monkeypatch, STRONGLY_TYPED), tmp_path / "none.onnx"
    with pytest.raises(UsageError, match="--fp16 cannot be used: types come from the model"):
        compare(none, against_backend="tensorrt", fp16=True)
    trt.fake.runtime_fails = (
        "Error: SM 90 is not supported. Supported compute capabilities: 8.0 8.6 8.9 12.0"
    )
    with pytest.raises(UnavailableError, match=r"does not run on this GPU.*8\.0, 8\.6"):
        compare(none, against_backend="tensorrt")
    assert not trt.fake.builds


def test_it_can_be_stopped_while_it_builds(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    steps: Any = run(Request(path, against_backend="tensorrt", shape=SHAPE))
    with closing(steps):
        assert any(getattr(step, "stage", "") == "Preparing the model" for step in steps)
    assert not trt.fake.builds
    assert trt.fake.cuda.live == 0
