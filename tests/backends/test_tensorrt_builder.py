"""What builds ask of TensorRT, and what they tell: recorded whole, on the fake of its bindings."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import enum
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.backends.tensorrt import builder as tensorrt_builder
from dld_tui.backends.tensorrt import cuda as tensorrt_cuda
from dld_tui.backends.tensorrt import log as tensorrt_log
from dld_tui.backends.tensorrt.builder import flag_names, tactic_mask
from dld_tui.backends.tensorrt.network import model_file
from dld_tui.core.errors import ActivityError, DldError, UnavailableError, UsageError
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.metadata import PRECISION_KEY
from dld_tui.core.tensorrt.settings import BuildSettings
from tests.support import models
from tests.support.fake_builds import fake_build
from tests.support.fake_cuda import FakeCuda
from tests.support.fake_tensorrt import STRONGLY_TYPED, WEAKLY_TYPED, fake_tensorrt
from tests.support.recorded import Recorded, settled

FIXED = models.CHAIN.replace("[N, 4]", "[2, 4]")
RANGES = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[1,2,4,4] x, float[1,2,4,4] z, float most)
  => (float[1,2,2,2] pooled, float[1,4,4,4] joined) {
  a = Relu(x)
  pooled = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a)
  b = Clip(x, , most)
  joined = Concat <axis = 1> (z, b)
}"""
CUT = """<ir_version: 10, opset_import: ["" : 18]>
g (float[6] x) => (float[2] a, float[2] b, float[2] c)
{ [cut] a, b, c = Split <axis = 0, num_outputs = 3> (x) [next] d = Relu(a) [number] e = Shape(d) }
"""
HALF = FIXED.replace("float", "float16")
RTX = "1.7.1.116"

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


@pytest.fixture
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have one GPU, the second, and a clock of which each look takes a quarter of a second."""

    def device(name: str) -> FakeCuda:
        if name == "1":
            return FakeCuda()
        raise UnavailableError(f"there is no GPU {name}")

    monkeypatch.setattr(tensorrt_cuda, "Cuda", device)
    ticks = itertools.count()
    for module in (tensorrt_builder, tensorrt_log):
        monkeypatch.setattr(module, "monotonic", lambda: next(ticks) / 4)


def plain(value: Any) -> str:
    """Return a value that the fake got, with the names of enumerations and tensors."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, dict):
        return ", ".join(f"{plain(key)}: {plain(one)}" for key, one in value.items())
    if isinstance(value, (set, frozenset)):
        return " ".join(sorted(plain(one) for one in value))
    if isinstance(value, (list, tuple)):
        return f"({', '.join(plain(one) for one in value)})"
    return str(value) if isinstance(value, (str, int, float, type(None))) else type(value).__name__


def build_text(trt: Any, path: Path, settings: dict[str, Any]) -> str:
    """Build; return what was told and what the library got."""
    events: list[Event] = []
    lines = []
    try:
        built, network, config = fake_build(trt, path, events, **settings)
    except DldError as error:
        lines += [f"{type(error).__name__}: {error.message}", f"  where: {error.where}"]
        lines += [f"  hint: {error.hint}", f"  details: {error.details}"]
        lines += [f"  node: {error.finding.node}"] if error.finding else []
        lines += [] if path.with_suffix(".engine").exists() else ["no engine is written"]
    else:
        for one in dataclasses.fields(built):
            value = getattr(built, one.name)
            if one.name == "bytes":  # of the fake's own JSON
                value = value == built.path.stat().st_size
            shown = value if isinstance(value, list) else [value]
            lines += [f"{one.name}: {item}" for item in shown]
        for name, value in sorted(vars(config).items()):
            if name not in ("_profiles", "_initialised", "_cache"):
                lines.append(f"config {name.strip('_')}: {plain(value)}")
        for profile in config._profiles:
            lines += [f"profile: {plain(profile._shapes)} {plain(profile._values)}"]
        lines += [f"network flags {network._flags}, {network.num_layers} layers"]
        for name, tensors in (("input", network._inputs), ("output", network._outputs)):
            lines += [
                f"{name} {one.name}: {one.dtype.name} formats {one.allowed_formats}"
                for one in tensors
            ]
        for layer in network._layers:
            precision = plain(getattr(layer, "_value_precision", "-"))
            ranges = [
                getattr(one, "_value_dynamic_range", None)
                for one in (*layer._inputs, *layer._outputs)
            ]
            lines.append(
                f"layer {layer.name} {layer.type.name} {precision} {plain(layer._types)} "
                f"{plain(ranges) if any(ranges) else ''}"
            )
        lines += [f"plugins {trt.fake.registry._libraries}"]
    fixed = ("Preparing the model", "Writing the engine", "Casting layers to their precisions")
    for event in events:
        if isinstance(event, Log):
            lines.append(f"said {event.level.name}: {event.text}")
        elif isinstance(event, Progress) and event.stage in fixed:
            lines.append(f"progress: {event.stage}")
    log = path.with_suffix(".log")
    lines += ["log:", log.read_text()] if log.exists() else []
    return settled("\n".join(lines), path.parent)


def with_precisions(text: str, **precisions: str) -> bytes:
    model = models.parse(text)
    for node in model.graph.node:
        if precision := precisions.get(node.name or node.op_type):
            node.metadata_props.add(key=PRECISION_KEY, value=precision)
    return model.SerializeToString()


Change = Callable[[Any], None]


def on_fake(**changes: Any) -> Change:
    def change(trt: Any) -> None:
        for name, value in changes.items():
            setattr(trt.fake, name, value)

    return change


def no_builder(trt: Any) -> None:
    def fail(_: object) -> None:
        raise TypeError("pybind11::init(): factory function returned nullptr")

    trt.Builder = fail


SHAPES = {"min_shapes": ("x:1x4",), "opt_shapes": ("x:2x4",), "max_shapes": ("x:8x4",)}
TYPES = {"fp16": True, "bf16": True, "int8": True, "fp8": True, "int4": True}
SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    (WEAKLY_TYPED, {}),
    (WEAKLY_TYPED, {
        "fp16": True, "bf16": True, "tf32": False, "typing": "prefer", "sparsity": "enable",
        "refit": "strip", "version_compatible": True, "exclude_lean_runtime": True,
        "gpu_fallback": True, "weight_streaming": True, "strict_nans": True, "direct_io": True,
        "optimization_level": 5, "max_aux_streams": 2, "avg_timing": 4, "workspace": 64.5,
        "memory_pools": ("dlaSRAM:1M", "tacticDRAM:1.5G", "TACTIC_SHARED_MEMORY:3"),
        "hardware_compatible": "ampere_plus", "verbosity": "none", "tiling_level": 2,
        "tactic_sources": ("-CUDNN",), "max_tactics": 7, "l2_limit": 9, "verbose": True,
        "preview_features": ("+profile_sharing_0806", "-ALIASED_PLUGIN_IO_10_03"),
        "error_on_cache_miss": True, "editable_timing_cache": True,
        "runtime_platform": "windows_amd64", "no_compilation_cache": True,
    }),
    (WEAKLY_TYPED, {"refit": "refit", "verbosity": "layer_names", "typing": "obey", "fp16": True}),
    (WEAKLY_TYPED, {"typing": "strong", "fp16": True, "no_timing_cache": True}),
    (WEAKLY_TYPED, {"input_formats": ("fp16:chw+hwc8",), "output_formats": ("fp32",)}),
    (WEAKLY_TYPED, {"output_formats": ("fp16:dhwc8",)}),
    (WEAKLY_TYPED, {"layer_precision": tuple(f"gone{number}:fp16" for number in range(10))}),
    (WEAKLY_TYPED, {"typing": "prefer", "layer_precision": ("*:fp16", "last:fp32"),
                    "layer_output_type": ("s*d:fp16",)}),
    (WEAKLY_TYPED, {"layer_precision": ("gone\x1b[1m:fp16", "first:fp16")}),
    (WEAKLY_TYPED, {"sparsity": "force"}),
    (WEAKLY_TYPED, {"layer_precision": ("first:fp12",)}),
    (WEAKLY_TYPED, {"layer_output_type": ("first:fp12",)}),
    (WEAKLY_TYPED, {"input_formats": ("fp16:moon",)}),
    (WEAKLY_TYPED, {"input_formats": ("fp7:chw",)}),
    (WEAKLY_TYPED, {"output_formats": ("fp16", "fp16")}),
    (WEAKLY_TYPED, {"typing": "strong", "input_formats": ("fp16:chw",)}),
    (WEAKLY_TYPED, {"dla_core": 0}),
    (WEAKLY_TYPED, {"device": "1"}),
    (WEAKLY_TYPED, {"device": "2"}),
    (WEAKLY_TYPED, {"plugins": ("/gone.so",)}),
    (WEAKLY_TYPED, {"plugins": ("m.onnx",), "dynamic_plugins": ("./m.onnx",)}),
    (WEAKLY_TYPED, {"int8": True}),
    (WEAKLY_TYPED, {"int8": True, "calibration_cache": Path("/gone")}),
    (WEAKLY_TYPED, {"preview_features": ("moon",)}),
    (WEAKLY_TYPED, {"tactic_sources": ("moon",)}),
    (STRONGLY_TYPED, {}),
    (STRONGLY_TYPED, {"memory_pools": ("moon\x1b:1G",)}),
    (STRONGLY_TYPED, {"compute_capability": ("8.9",)}),
    (STRONGLY_TYPED, {"build_route": "-copy_ppg=[off]  -peep:max=4"}),
    (STRONGLY_TYPED, {"build_route": "-copy=off"}),
    (STRONGLY_TYPED, {"calibration_cache": Path("/gone")}),
    (RTX, {"compute_capability": ("8.9", "current")}),
    (RTX, {"compute_capability": ("3.5",)}),
    (RTX, {"max_tactics": 3, "tiling_level": 1, "runtime_platform": "windows_amd64"}),
    (RTX, {"no_compilation_cache": True, "no_timing_cache": True}),
    ("8.6.1", {"typing": "strong", "refit": "refit", **TYPES}),
)  # fmt: skip
MODELS: tuple[tuple[str, str, bytes | str, dict[str, Any], Change | None], ...] = (
    ("named precisions", WEAKLY_TYPED,
     with_precisions(FIXED.replace("[third] ", ""), first="fp16", second="fp16", Mul="bf16"),
     {"typing": "obey", "fp16": True, "layer_precision": ("second:fp32",)}, None),
    ("casts", STRONGLY_TYPED, with_precisions(FIXED, second="fp16"), {}, None),
    ("odd precision", WEAKLY_TYPED, with_precisions(FIXED, first="odd"), {}, None),
    ("no tactic", WEAKLY_TYPED, FIXED, {"typing": "obey", "layer_precision": ("first:fp16",)},
     on_fake(no_tactic={("ACTIVATION", "HALF")})),
    ("further outputs", WEAKLY_TYPED, CUT,
     {"typing": "obey", "layer_output_type": ("cut:fp16+fp32", "next:fp16+fp32", "*:int32")}, None),
    ("pattern and shapes", WEAKLY_TYPED, CUT,
     {"typing": "obey", "layer_precision": ("*:fp16",)}, None),
    ("shapes", WEAKLY_TYPED, models.CHAIN, SHAPES, None),
    ("no shapes", WEAKLY_TYPED, models.CHAIN, {}, None),
    ("shapes of one of two", WEAKLY_TYPED,
     models.CHAIN.replace("(float[N, 4] x)", "(float[2, 4] fixed, float[N, 4] x)"), SHAPES, None),
    ("made-up ranges", WEAKLY_TYPED, RANGES, {"int8": True, "placeholder_ranges": True}, None),
    ("out of memory", WEAKLY_TYPED, FIXED, {},
     on_fake(build_fails="Error Code 2: OutOfMemory (no further information)")),
    ("device too new", WEAKLY_TYPED, FIXED, {}, on_fake(build_fails="Unsupported SM: 0x900")),
    ("unsupported operator", WEAKLY_TYPED, FIXED, {}, on_fake(unsupported={"Mul"})),
    ("no builder", WEAKLY_TYPED, FIXED, {}, no_builder),
    ("no knobs", STRONGLY_TYPED, FIXED, {"build_route": "-copy_ppg=off"}, on_fake(knobs={})),
    ("DLA", WEAKLY_TYPED, FIXED,
     {"dla_core": 1, "gpu_fallback": True, "layer_device": ("first:GPU", "gone\x1b:DLA", "l*:DLA")},
     on_fake(dla_cores=2)),
    ("no such DLA core", WEAKLY_TYPED, FIXED, {"dla_core": 2}, on_fake(dla_cores=2)),
    ("parser for the DLA", "10.16.1.11", FIXED,
     {"dla_core": 0, "adjust_for_dla": True, "report_dla": True}, on_fake(dla_cores=1)),
    ("strong on the DLA", STRONGLY_TYPED, FIXED, {"dla_core": 0}, on_fake(dla_cores=1)),
    ("halves on the DLA", STRONGLY_TYPED, HALF, {"dla_core": 0}, on_fake(dla_cores=1)),
    *((f"opset {opset}", version, re.sub(r'"" *: *\d+', f'"" : {opset}', FIXED), {}, None)
      for version, opset in (("8.6.1", 18), (STRONGLY_TYPED, 24), (STRONGLY_TYPED, 25), (RTX, 25))),
)  # fmt: skip


@pytest.mark.usefixtures("_machine")
def test_whole_builds(tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """What differs from the first build of the version is recorded, and the first whole."""
    monkeypatch.setattr(tensorrt_builder, "_CHUNK", 100)
    texts: dict[str, str] = {}
    firsts: dict[str, list[str]] = {}
    cases: list[tuple[str, str, bytes | str, dict[str, Any], Change | None]] = [
        *(
            (str(settings).replace("PosixPath", "Path"), version, FIXED, settings, None)
            for version, settings in SETTINGS
        ),
        *MODELS,
    ]
    for number, (title, version, source, settings, change) in enumerate(cases):
        trt = fake_tensorrt(version)
        if change is not None:
            change(trt)
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "m.onnx"
        data = source if isinstance(source, bytes) else models.parse(source).SerializeToString()
        path.write_bytes(data)
        monkeypatch.setenv("NV_DLD_CACHE_DIR", str(folder / "cache"))
        monkeypatch.chdir(folder)
        lines = build_text(trt, path, settings).splitlines()
        first = firsts.setdefault(version, lines)
        if first is not lines and lines[0].startswith("path: "):  # an engine was built
            changes = difflib.unified_diff(first, lines, lineterm="", n=0)
            lines = [one for one in changes if not one.startswith(("---", "+++", "@@"))]
        texts[f"{version}, {title}"] = "\n".join(lines)
        assert path.read_bytes() == data
        assert not list(folder.glob(".dld-view-*"))
    recorded("tensorrt_builds", texts)


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


@pytest.mark.parametrize(
    ("words", "mask"),
    [(["-CUDNN"], 0b1), (["+jit", "-cublas"], 0b10100), (["JIT"], 0b10000), (["NONE"], 0)],
)
def test_tactic_sources(words: list[str], mask: int) -> None:
    numbers = {"CUBLAS": 0, "CUDNN": 2, "JIT": 4}
    assert tactic_mask(0b101, words, numbers) == mask
    with pytest.raises(UsageError, match="unknown tactic source MAGIC"):
        tactic_mask(0, [*words, "+magic"], numbers)


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
    assert config.get_flag(trt.BuilderFlag.DISABLE_TIMING_CACHE)

    with monkeypatch.context() as silent:  # a library that gives back none of a build
        silent.setattr(trt.IBuilderConfig, "get_timing_cache", lambda self: None)
        _, _, remarks = cache_of(timing_cache=tmp_path / "own2.timing")
    assert remarks == []
    assert (tmp_path / "own2.timing").exists()

    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(model))  # a file
    _, _, remarks = cache_of()
    assert "the timing cache cannot be kept" in remarks[0]


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


def test_older_libraries_call_stripping_otherwise() -> None:
    settings = BuildSettings(Path("m.onnx"), refit="strip")
    older = frozenset({"REFIT", "WEIGHTLESS"})
    assert flag_names(settings, False, older) == ["WEIGHTLESS", "REFIT"]
