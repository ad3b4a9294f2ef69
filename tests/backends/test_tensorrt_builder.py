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
from tests.support.fake_tensorrt import STRONGLY_TYPED, fake_tensorrt

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
    assert flags(trt, config) == {
        "FP16", "BF16", "PREFER_PRECISION_CONSTRAINTS", "SPARSE_WEIGHTS", "STRIP_PLAN",
        "WEIGHTLESS", "REFIT_IDENTICAL", "VERSION_COMPATIBLE", "EXCLUDE_LEAN_RUNTIME",
        "GPU_FALLBACK", "WEIGHT_STREAMING", "STRICT_NANS", "DIRECT_IO",
    } - ({"WEIGHTLESS"} if "WEIGHTLESS" not in flags(trt, config) else set())  # fmt: skip
    assert config.builder_optimization_level == 5
    assert (config.max_aux_streams, config.avg_timing_iterations) == (2, 4)
    assert config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) == 64 << 20
    assert config.get_memory_pool_limit(trt.MemoryPoolType.DLA_MANAGED_SRAM) == 1 << 20
    assert config.hardware_compatibility_level == trt.HardwareCompatibilityLevel.AMPERE_PLUS
    assert config.profiling_verbosity == trt.ProfilingVerbosity.NONE
    assert config.tiling_optimization_level == trt.TilingOptimizationLevel.MODERATE
    assert not config.get_tactic_sources() >> int(trt.TacticSource.CUDNN) & 1


def test_weights_are_not_made_sparse(trt: Any, model: Path) -> None:
    with pytest.raises(UsageError, match="weights are not changed"):
        fake_build(trt, model, sparsity="force")


def test_refit_keeps_the_weights(trt: Any, model: Path) -> None:
    _, _, config = fake_build(trt, model, refit="refit")
    assert "REFIT" in flags(trt, config)
    assert "STRIP_PLAN" not in flags(trt, config)


def test_older_libraries_strip_by_another_name() -> None:
    settings = BuildSettings(Path("m.onnx"), refit="strip")
    found = flag_names(settings, False, frozenset({"REFIT", "WEIGHTLESS"}))
    assert set(found) == {"WEIGHTLESS", "REFIT"}


def test_strong_typing_takes_no_flag_of_a_type(trt: Any, model: Path) -> None:
    built, network, config = fake_build(trt, model, typing="strong", fp16=True)
    assert built.strong
    assert network.get_flag(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    assert "FP16" not in flags(trt, config)


def test_a_library_without_a_setting_is_named(model: Path) -> None:
    strong = fake_tensorrt(STRONGLY_TYPED)
    with pytest.raises(UsageError, match=r"TensorRT 11.4.0.106 has no memory pool moon"):
        fake_build(strong, model, memory_pools=("moon:1G",))
    with pytest.raises(UsageError, match="builds only for the device that it runs on"):
        fake_build(strong, model, compute_capability=("8.9",))


def test_tactic_sources() -> None:
    numbers = {"CUBLAS": 0, "CUDNN": 2, "JIT": 4}
    assert tactic_mask(0b101, ["-CUDNN"], numbers) == 0b001
    assert tactic_mask(0b101, ["+jit", "-cublas"], numbers) == 0b10100
    assert tactic_mask(0b101, ["JIT"], numbers) == 0b10000
    assert tactic_mask(0b101, ["NONE"], numbers) == 0
    with pytest.raises(UsageError, match="unknown tactic source MAGIC"):
        tactic_mask(0, ["+magic"], numbers)


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


def test_what_constrains_nothing_is_said(trt: Any, model: Path) -> None:
    built, _, _ = fake_build(trt, model, layer_precision=("gone\x1b[1m:fp16", "first:fp16"))
    assert built.remarks[0] == ("no layer has the name of 'gone\\x1b[1m': its type is not set")
    assert "without --typing obey or prefer" in built.remarks[1]
    assert built.log is not None
    assert "no layer has the name" in built.log.read_text()


def test_a_precision_that_is_none(trt: Any, model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'fp12' is not a precision"):
        fake_build(trt, model, layer_precision=("first:fp12",))
    with pytest.raises(UsageError, match="'first' has the unknown precision 'odd'"):
        fake_build(trt, precise(tmp_path, FIXED, first="odd"))


def test_a_precision_that_no_tactic_has(trt: Any, model: Path) -> None:
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


def test_formats_of_inputs_and_outputs(trt: Any, model: Path) -> None:
    _, network, _ = fake_build(
        trt, model, input_formats=("fp16:chw+hwc8",), output_formats=("fp32",)
    )
    formats = trt.TensorFormat
    assert network.get_input(0).dtype == trt.DataType.HALF
    assert network.get_input(0).allowed_formats == (
        1 << int(formats.LINEAR) | 1 << int(formats.HWC8)
    )
    assert network.get_output(0).allowed_formats == 1 << int(formats.LINEAR)
    for item, text in (("fp16:moon", "unknown format 'moon'"), ("fp7:chw", "'fp7' is not a type")):
        with pytest.raises(UsageError, match=text):
            fake_build(trt, model, input_formats=(item,))
    with pytest.raises(UsageError, match="2 items for 1 tensors"):
        fake_build(trt, model, output_formats=("fp16", "fp16"))
    with pytest.raises(UsageError, match="keeps the types of the model"):
        fake_build(trt, model, typing="strong", input_formats=("fp16:chw",))


def test_the_timing_cache_is_kept(trt: Any, model: Path, tmp_path: Path) -> None:
    first, _, _ = fake_build(trt, model)
    assert first.timing_cache is not None
    assert first.timing_cache["state"] == "new"
    path = Path(str(first.timing_cache["path"]))
    assert path.parent == tmp_path / "cache" / "tensorrt"
    assert path.name == "tensorrt-10.13.0.35-no-device.timing"
    second, _, config = fake_build(trt, model)
    assert second.timing_cache is not None
    assert second.timing_cache["state"] == "used"
    assert config.get_timing_cache() is not None


def test_a_given_timing_cache_and_one_of_another_version(
    trt: Any, model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "own.timing"
    path.write_bytes(b"of another version")
    built, _, _ = fake_build(trt, model, timing_cache=path)
    assert built.timing_cache is not None
    assert built.timing_cache["state"] in ("refused", "new")
    assert path.read_bytes() != b"of another version"
    none, _, config = fake_build(trt, model, no_timing_cache=True)
    assert none.timing_cache is None
    assert "DISABLE_TIMING_CACHE" in flags(trt, config)


def test_a_timing_cache_that_cannot_be_kept(
    trt: Any, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(model))  # a file
    built, _, _ = fake_build(trt, model)
    assert "the timing cache cannot be kept" in built.remarks[0]
    assert built.path.exists()


def test_dla(trt: Any, model: Path) -> None:
    with pytest.raises(UsageError, match="no DLA core 0: the device has no DLA core"):
        fake_build(trt, model, dla_core=0)
    trt.fake.dla_cores = 2
    _, _, config = fake_build(
        trt, model, dla_core=1, gpu_fallback=True, layer_device=("first:GPU",)
    )
    assert config.default_device_type == trt.DeviceType.DLA
    assert config.DLA_core == 1


def test_plugins(trt: Any, model: Path, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="the plugin library does not exist"):
        fake_build(trt, model, plugins=(str(tmp_path / "gone.so"),))
    library = tmp_path / "p.so"
    library.touch()
    _, _, config = fake_build(trt, model, dynamic_plugins=(str(library),))
    assert trt.fake.registry._libraries == [str(library)]
    assert config.plugins_to_serialize == [str(library)]


def test_int8_without_calibration(trt: Any, model: Path) -> None:
    with pytest.raises(ActivityError, match="INT8 without calibration"):
        fake_build(trt, model, int8=True)
    with pytest.raises(DldError, match="no calibration cache yet"):
        fake_build(trt, model, int8=True, calibration_cache=model.with_suffix(".cache"))


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


def test_a_build_route_reaches_the_compiler(model: Path) -> None:
    trt = fake_tensorrt(STRONGLY_TYPED)
    _, _, config = fake_build(trt, model, build_route="-copy_ppg=[off]  -peep:max=4")
    assert config.build_route == "-copy_ppg=off -peep:max=4"
    with pytest.raises(UsageError, match="unknown knob -copy"):
        fake_build(trt, model, build_route="-copy=off")
    trt.fake.knobs = {}
    with pytest.raises(UsageError, match="has no knobs for build routes"):
        fake_build(trt, model, build_route="-copy_ppg=off")


def test_made_up_ranges(trt: Any, model: Path) -> None:
    with pytest.raises(ActivityError, match=r"calibrat|scal"):
        fake_build(trt, model, int8=True)
    built, network, _ = fake_build(trt, model, int8=True, placeholder_ranges=True)
    ranges = {
        tensor.dynamic_range
        for layer in network._layers
        for tensor in (*layer._inputs, *layer._outputs)
        if tensor is not None
    }
    assert ranges <= {(-2.0, 2.0), (-4.0, 4.0)}
    assert "do not use its results" in built.remarks[-1]


def test_flags_of_the_parser_for_an_accelerator(model: Path) -> None:
    trt = fake_tensorrt("10.16.1.11")
    trt.fake.dla_cores = 1
    built, _, config = fake_build(trt, model, dla_core=0, adjust_for_dla=True, report_dla=True)
    assert config.DLA_core == 0
    assert not any("the DLA computes" in remark for remark in built.remarks)  # weakly typed
    trt = fake_tensorrt(STRONGLY_TYPED)
    trt.fake.dla_cores = 1
    built, _, _ = fake_build(trt, model, dla_core=0)
    assert any("the DLA computes in these only" in remark for remark in built.remarks)


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
