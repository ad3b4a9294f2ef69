from __future__ import annotations

import contextlib
import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.backends.tensorrt.builder import flag_names, tactic_mask
from dld_tui.backends.tensorrt.network import model_file
from dld_tui.core.errors import ActivityError, DldError, UnavailableError, UsageError
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.metadata import PRECISION_KEY
from dld_tui.core.tensorrt.settings import BuildSettings
from tests.support import models
from tests.support.fake_builds import fake_build
from tests.support.fake_tensorrt import STRONGLY_TYPED, WEAKLY_TYPED, fake_tensorrt

FIXED = models.CHAIN.replace("[N, 4]", "[2, 4]")

pytestmark = pytest.mark.usefixtures("replaces_all")


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def trt() -> Any:
    return fake_tensorrt()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.write(tmp_path, FIXED)


def layers(network: Any) -> dict[str, Any]:
    return {layer.name: layer for layer in network._layers}


def flags(trt: Any, config: Any) -> set[str]:
    return {name for name, flag in trt.BuilderFlag.__members__.items() if config.get_flag(flag)}


def test_a_plain_build(trt: Any, model: Path) -> None:
    before = hashlib.sha256(model.read_bytes()).digest()
    events: list[Event] = []
    built, network, config = fake_build(trt, model, events)
    assert built.path.read_bytes()[:4] == b"ftrt"
    assert 0 < built.seconds < 60
    assert sum(stage.ms for stage in built.stages) == pytest.approx(1000 * built.seconds, abs=0.01)
    assert [stage.name for stage in built.stages] == [
        "Starting TensorRT", "Parsing the model", "Configuring the build", "Tactic Timing",
        "Building Engine, other", "Building, outside these phases",
    ]  # fmt: skip
    assert built.bytes == built.path.stat().st_size
    assert not built.strong
    assert network.num_layers >= 4
    assert flags(trt, config) == {"TF32"}
    assert config.profiling_verbosity == trt.ProfilingVerbosity.DETAILED
    assert not network.get_flag(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    assert any(isinstance(event, Progress) for event in events)
    assert Log("Total Activation Memory: 1048576 bytes") in events
    assert "[I] Total Activation Memory: 1048576 bytes" in built.tail
    assert built.log is not None
    assert "Total Activation Memory" in built.log.read_text()
    assert hashlib.sha256(model.read_bytes()).digest() == before


def test_flags_numbers_and_pools(trt: Any, model: Path) -> None:
    _, _, config = fake_build(
        trt, model, fp16=True, bf16=True, tf32=False, typing="prefer", sparsity="enable",
        refit="strip", version_compatible=True, exclude_lean_runtime=True, gpu_fallback=True,
        weight_streaming=True, strict_nans=True, direct_io=True, optimization_level=5,
        max_aux_streams=2, avg_timing=4, workspace=64.0, memory_pools=("dlaSRAM:1M",),
        hardware_compatible="ampere_plus", verbosity="none", tactic_sources=("-CUDNN",),
        tiling_level=2,
    )  # fmt: skip
    assert flags(trt, config) - {"WEIGHTLESS"} == {
        "FP16", "BF16", "PREFER_PRECISION_CONSTRAINTS", "SPARSE_WEIGHTS", "STRIP_PLAN",
        "REFIT_IDENTICAL", "VERSION_COMPATIBLE", "EXCLUDE_LEAN_RUNTIME", "GPU_FALLBACK",
        "WEIGHT_STREAMING", "STRICT_NANS", "DIRECT_IO",
    }  # fmt: skip
    assert config.builder_optimization_level == 5
    assert (config.max_aux_streams, config.avg_timing_iterations) == (2, 4)
    assert config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) == 64 << 20
    assert config.get_memory_pool_limit(trt.MemoryPoolType.DLA_MANAGED_SRAM) == 1 << 20
    assert config.hardware_compatibility_level == trt.HardwareCompatibilityLevel.AMPERE_PLUS
    assert config.profiling_verbosity == trt.ProfilingVerbosity.NONE
    assert config.tiling_optimization_level == trt.TilingOptimizationLevel.MODERATE
    assert not config.get_tactic_sources() >> int(trt.TacticSource.CUDNN) & 1


def precise(folder: Path, text: str, **precisions: str) -> Path:
    model = models.parse(text)
    for node in model.graph.node:
        if found := precisions.get(node.name or node.op_type):
            node.metadata_props.add(key=PRECISION_KEY, value=found)
    path = folder / "precise.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_precisions_of_layers_are_constraints(trt: Any, tmp_path: Path) -> None:
    unnamed = FIXED.replace("[third] ", "")
    path = precise(tmp_path, unnamed, first="fp16", second="fp16", Mul="bf16")
    _, network, config = fake_build(
        trt, path, typing="obey", fp16=True, layer_precision=("second:fp32",)
    )
    found = layers(network)
    assert found["first"].precision == trt.DataType.HALF
    assert found["second"].precision == trt.DataType.FLOAT  # the command comes after the model
    assert found["node_of_c"].precision == trt.DataType.BF16
    assert not found["last"].precision_is_set
    assert "OBEY_PRECISION_CONSTRAINTS" in flags(trt, config)


def test_patterns_and_output_types(trt: Any, model: Path) -> None:
    built, network, _ = fake_build(
        trt, model, typing="prefer", layer_precision=("*:fp16", "last:fp32"),
        layer_output_type=("s*d:fp16",),
    )  # fmt: skip
    found = layers(network)
    assert found["first"].precision == trt.DataType.HALF
    assert found["last"].precision == trt.DataType.FLOAT
    assert found["second"].get_output_type(0) == trt.DataType.HALF
    assert not found["first"].output_type_is_set(0)
    constants = [one for one in network._layers if one.type == trt.LayerType.CONSTANT]
    assert constants
    assert not any(one.precision_is_set for one in constants)
    assert built.remarks == []


def test_the_last_type_holds_for_all_further_outputs(trt: Any, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
    g (float[6] x) => (float[2] a, float[2] b, float[2] c)
    { [cut] a, b, c = Split <axis = 0, num_outputs = 3> (x) [next] d = Relu(a) }"""
    _, network, _ = fake_build(
        trt, models.write(tmp_path, text), typing="obey",
        layer_output_type=("cut:fp16+fp32", "next:fp16+fp32"),
    )  # fmt: skip
    found, half, single = layers(network), trt.DataType.HALF, trt.DataType.FLOAT
    assert [found["cut"].get_output_type(at) for at in range(3)] == [half, single, single]
    assert found["next"].get_output_type(0) == half


def test_what_constrains_nothing_is_said(trt: Any, model: Path) -> None:
    built, _, _ = fake_build(trt, model, layer_precision=("gone\x1b[1m:fp16", "first:fp16"))
    assert built.remarks[0] == ("no layer has the name of 'gone\\x1b[1m': its type is not set")
    assert "without --typing obey or prefer" in built.remarks[1]
    assert built.log is not None
    assert "no layer has the name" in built.log.read_text()


def test_a_precision_that_is_unknown_or_that_no_tactic_has(
    trt: Any, model: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="'first' has the unknown precision 'odd'"):
        fake_build(trt, precise(tmp_path, FIXED, first="odd"))
    trt.fake.no_tactic = {("ACTIVATION", "HALF")}
    with pytest.raises(ActivityError, match="no implementation") as caught:
        fake_build(trt, model, typing="obey", layer_precision=("first:fp16",))
    assert "layer 'first'" in (caught.value.where or "")


def test_a_strong_library_gets_casts_instead(tmp_path: Path) -> None:
    strong = fake_tensorrt(STRONGLY_TYPED)
    path = precise(tmp_path, FIXED, second="fp16")
    before = path.read_bytes()
    built, network, _ = fake_build(strong, path)
    kinds = [layer.type.name for layer in network._layers]
    assert kinds.count("CAST") >= 2
    assert built.retyping is not None
    assert layers(network)["second"].get_output(0).dtype == strong.DataType.HALF
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(".dld-view-*"))


def test_profiles(trt: Any, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    shapes: Any = {"min_shapes": ("x:1x4",), "opt_shapes": ("x:2x4",), "max_shapes": ("x:8x4",)}
    _, _, config = fake_build(trt, path, **shapes)
    (profile,) = config._profiles
    assert [tuple(shape) for shape in profile.get_shape("x")] == [(1, 4), (2, 4), (8, 4)]
    _, _, config = fake_build(trt, path)
    assert {tuple(shape) for shape in config._profiles[0].get_shape("x")} == {(1, 4)}
    text = models.CHAIN.replace("(float[N, 4] x)", "(float[2, 4] fixed, float[N, 4] x)")
    _, _, config = fake_build(trt, models.write(tmp_path, text), **shapes)
    assert tuple(config._profiles[0].get_shape("x")[2]) == (8, 4)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("Error Code 2: OutOfMemory (no further information)", ActivityError, "out of memory"),
        ("Unsupported SM: 0x900", UnavailableError, "compute capability"),
    ],
)
def test_a_build_that_fails_leaves_the_log_and_no_engine(
    trt: Any, model: Path, text: str, kind: type[DldError], message: str
) -> None:
    trt.fake.build_fails = text
    with pytest.raises(kind, match=message) as caught:
        fake_build(trt, model)
    assert not model.with_suffix(".engine").exists()
    log = model.with_suffix(".log")
    assert text in log.read_text()
    assert str(log) in (caught.value.hint or "")


def test_an_operator_that_is_not_there_names_the_node(trt: Any, model: Path) -> None:
    trt.fake.unsupported = {"Mul"}
    with pytest.raises(ActivityError, match="Mul") as caught:
        fake_build(trt, model)
    assert caught.value.finding is not None
    assert caught.value.finding.node == "third"
    assert "node 'third' (Mul, number 2)" in (caught.value.where or "")


def test_a_builder_that_cannot_be_made(
    trt: Any, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise TypeError("pybind11::init(): factory function returned nullptr")

    monkeypatch.setattr(trt, "Builder", fail)
    with pytest.raises(UnavailableError, match="factory function returned nullptr"):
        fake_build(trt, model)


def test_the_parser_sees_edits_and_external_data(tmp_path: Path) -> None:
    model = models.parse(FIXED)
    weight = numpy_helper.from_array(np.arange(64, dtype=np.float32), "heavy")
    (tmp_path / "w.bin").write_bytes(b"head" * 4 + weight.raw_data)
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "w.bin"), ("offset", "16"), ("length", "256")):
        weight.external_data.add(key=key, value=value)
    model.graph.initializer.append(weight)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with contextlib.closing(Document.open(path)) as document:
        with model_file(document) as plain:
            assert plain == path
        document.apply("rename_node", scope=[], node="first", name="renamed")
        with model_file(document) as view:
            assert view != path
            seen = onnx.load(view)
        assert not view.exists()
    assert seen.graph.node[0].name == "renamed"
    values = {one.name: numpy_helper.to_array(one) for one in seen.graph.initializer}
    assert values["heavy"].tolist() == list(range(64))
    assert not list(tmp_path.glob(".dld-view-*"))


def test_hostile_names(trt: Any, tmp_path: Path) -> None:
    model = models.parse(FIXED)
    model.graph.node[0].name = "a\x1b]0;x\x07: [b] {c}\n"
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    trt.fake.unsupported = {"Relu"}
    with pytest.raises(ActivityError) as caught:
        fake_build(trt, path)
    assert "\x1b" not in str(caught.value)
    trt.fake.unsupported = set()
    assert onnx.load(path).graph.node[0].name == model.graph.node[0].name
    _, network, _ = fake_build(
        trt, path, typing="prefer", layer_precision=(f"'{model.graph.node[0].name}':fp16",)
    )
    assert network.num_layers >= 4


@pytest.mark.parametrize(
    ("version", "opset", "said"),
    [("8.6.1", 18, "17 at most"), ("11.4.0.106", 24, ""), ("11.4.0.106", 25, "24 at most"),
     ("1.7.1.116", 25, "")],
)  # fmt: skip
def test_a_model_newer_than_the_parser(version: str, opset: int, said: str, tmp_path: Path) -> None:
    text = re.sub(r'"" *: *\d+', f'"" : {opset}', FIXED)
    trt = fake_tensorrt(version)
    built, _, _ = fake_build(trt, models.write(tmp_path, text))
    found = [remark for remark in built.remarks if "opset" in remark]
    assert [said in remark for remark in found] == ([True] if said else [])


NO_DEVICE = "no DLA core 0: the device has no DLA core"


@pytest.mark.parametrize(
    ("version", "settings", "kind", "said"),
    [
        (WEAKLY_TYPED, {"sparsity": "force"}, UsageError, "weights are not changed"),
        (WEAKLY_TYPED, {"layer_precision": ("first:fp12",)}, UsageError, "'fp12' is not a precis"),
        (WEAKLY_TYPED, {"input_formats": ("fp16:moon",)}, UsageError, "unknown format 'moon'"),
        (WEAKLY_TYPED, {"input_formats": ("fp7:chw",)}, UsageError, "'fp7' is not a type"),
        (WEAKLY_TYPED, {"output_formats": ("fp16", "fp16")}, UsageError, "2 items for 1 tensors"),
        (WEAKLY_TYPED, {"typing": "strong", "input_formats": ("fp16:chw",)}, UsageError,
         "keeps the types of the model"),
        (WEAKLY_TYPED, {"dla_core": 0}, UsageError, NO_DEVICE),
        (WEAKLY_TYPED, {"plugins": ("/gone.so",)}, UnavailableError,
         "the plugin library does not exist"),
        (WEAKLY_TYPED, {"int8": True}, ActivityError, "INT8 without calibration"),
        (WEAKLY_TYPED, {"int8": True, "calibration_cache": Path("/gone")}, DldError,
         "no calibration cache yet"),
        (STRONGLY_TYPED, {"memory_pools": ("moon:1G",)}, UsageError,
         r"TensorRT 11.4.0.106 has no memory pool moon"),
        (STRONGLY_TYPED, {"compute_capability": ("8.9",)}, UsageError,
         "builds only for the device that it runs on"),
        (STRONGLY_TYPED, {"build_route": "-copy=off"}, UsageError, "unknown knob -copy"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_for_is_named(
    model: Path, version: str, settings: dict[str, Any], kind: type[DldError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        fake_build(fake_tensorrt(version), model, **settings)


def test_flags_of_refitting_and_typing(trt: Any, model: Path) -> None:
    _, _, config = fake_build(trt, model, refit="refit")
    assert "REFIT" in flags(trt, config)
    assert "STRIP_PLAN" not in flags(trt, config)
    settings = BuildSettings(Path("m.onnx"), refit="strip")  # older libraries call it otherwise
    found = flag_names(settings, False, frozenset({"REFIT", "WEIGHTLESS"}))
    assert set(found) == {"WEIGHTLESS", "REFIT"}
    built, network, config = fake_build(trt, model, typing="strong", fp16=True)
    assert built.strong
    assert network.get_flag(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    assert "FP16" not in flags(trt, config)


@pytest.mark.parametrize(
    ("words", "mask"),
    [(["-CUDNN"], 0b1), (["+jit", "-cublas"], 0b10100), (["JIT"], 0b10000), (["NONE"], 0)],
)
def test_tactic_sources(words: list[str], mask: int) -> None:
    numbers = {"CUBLAS": 0, "CUDNN": 2, "JIT": 4}
    assert tactic_mask(0b101, words, numbers) == mask
    with pytest.raises(UsageError, match="unknown tactic source MAGIC"):
        tactic_mask(0, [*words, "+magic"], numbers)


def test_formats_of_inputs_and_outputs(trt: Any, model: Path) -> None:
    _, network, _ = fake_build(
        trt, model, input_formats=("fp16:chw+hwc8",), output_formats=("fp32",)
    )
    taken, given = network.get_input(0), network.get_output(0)
    linear, wide = (1 << int(trt.TensorFormat[name]) for name in ("LINEAR", "HWC8"))
    assert (taken.dtype, taken.allowed_formats) == (trt.DataType.HALF, linear | wide)
    assert given.allowed_formats == linear


def test_the_timing_cache_is_kept(
    trt: Any, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cache_of(**settings: Any) -> tuple[dict[str, Any] | None, Any, list[str]]:
        built, _, config = fake_build(trt, model, **settings)
        return built.timing_cache, config, built.remarks

    cache, _, _ = cache_of()
    assert cache is not None
    path = tmp_path / "cache" / "tensorrt" / "tensorrt-10.13.0.35-no-device.timing"
    assert (cache["state"], cache["path"]) == ("new", str(path))
    cache, config, _ = cache_of()
    assert cache is not None
    assert cache["state"] == "used"
    assert config.get_timing_cache() is not None

    own = tmp_path / "own.timing"
    own.write_bytes(b"of another version")
    cache, _, _ = cache_of(timing_cache=own)
    assert cache is not None
    assert cache["state"] == "refused"
    assert own.read_bytes() != b"of another version"
    cache, config, _ = cache_of(no_timing_cache=True)
    assert cache is None
    assert "DISABLE_TIMING_CACHE" in flags(trt, config)

    with monkeypatch.context() as silent:  # a library that gives back none of a build
        silent.setattr(trt.IBuilderConfig, "get_timing_cache", lambda self: None)
        _, _, remarks = cache_of(timing_cache=tmp_path / "own2.timing")
    assert remarks == []
    assert (tmp_path / "own2.timing").exists()

    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(model))  # a file
    _, _, remarks = cache_of()
    assert "the timing cache cannot be kept" in remarks[0]


def test_dla_and_plugins(trt: Any, model: Path, tmp_path: Path) -> None:
    trt.fake.dla_cores = 2
    library = tmp_path / "p.so"
    library.touch()
    _, _, config = fake_build(
        trt, model, dla_core=1, gpu_fallback=True, layer_device=("first:GPU",),
        dynamic_plugins=(str(library),),
    )  # fmt: skip
    assert config.default_device_type == trt.DeviceType.DLA
    assert config.DLA_core == 1
    assert trt.fake.registry._libraries == config.plugins_to_serialize == [str(library)]


@pytest.mark.parametrize(
    ("version", "settings", "is_said"),
    [("10.16.1.11", {"adjust_for_dla": True, "report_dla": True}, False),  # weakly typed
     (STRONGLY_TYPED, {}, True)],
)  # fmt: skip
def test_a_strongly_typed_dla_computes_in_few_types(
    model: Path, version: str, settings: dict[str, Any], is_said: bool
) -> None:
    trt = fake_tensorrt(version)
    trt.fake.dla_cores = 1
    built, _, config = fake_build(trt, model, dla_core=0, **settings)
    assert config.DLA_core == 0
    assert any("the DLA computes in these only" in one for one in built.remarks) is is_said


def test_a_build_route_reaches_the_compiler(model: Path) -> None:
    trt = fake_tensorrt(STRONGLY_TYPED)
    _, _, config = fake_build(trt, model, build_route="-copy_ppg=[off]  -peep:max=4")
    assert config.build_route == "-copy_ppg=off -peep:max=4"
    trt.fake.knobs = {}
    with pytest.raises(UsageError, match="has no knobs for build routes"):
        fake_build(trt, model, build_route="-copy_ppg=off")


def test_made_up_ranges(trt: Any, tmp_path: Path) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    net (float[1,2,4,4] x, float[1,2,4,4] z, float most)
      => (float[1,2,2,2] pooled, float[1,4,4,4] joined) {
      a = Relu(x)
      pooled = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a)
      b = Clip(x, , most)
      joined = Concat <axis = 1> (z, b)
    }"""
    model = models.write(tmp_path, text)
    built, network, _ = fake_build(trt, model, int8=True, placeholder_ranges=True)
    tensors = {
        tensor.name: tensor.dynamic_range
        for layer in network._layers
        for tensor in (*layer._inputs, *layer._outputs)
        if tensor is not None
    }
    limits = {"x": 2, "z": 4, "most": 2, "a": 4, "b": 4, "pooled": 2, "joined": 4}
    assert tensors == {name: (-limit, limit) for name, limit in limits.items()}
    assert built.remarks[-1] == (
        "7 tensors have made-up ranges: time this engine, but do not use its results"
    )
