"""What the product asks of TensorRT, held against the real bindings of every recorded version.

The fake raises where a name, an argument or a type is not what the bindings have, so a setting that
can be used with a version builds here, and one that cannot is refused with its reason beforehand.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities import refit
from dld_tui.activities.profile import tensorrt as profile_tensorrt
from dld_tui.backends.tensorrt import cuda, library, profiling
from dld_tui.backends.tensorrt.library import capabilities_of, use
from dld_tui.core.errors import UnavailableError
from dld_tui.core.events import Finished
from dld_tui.core.tensorrt.availability import reasons, refused
from dld_tui.core.tensorrt.settings import BuildSettings, CommonSettings
from dld_tui.core.tensorrt.tactics import CACHE, reason_against
from scripts import tensorrt_bindings
from tests.support.engines import FIXED, model_of, write_model
from tests.support.fake_builds import fake_build
from tests.support.fake_tensorrt import fake_tensorrt
from tests.support.fake_tensorrt_classes import bindings, recorded_versions

OFTEN = ("1.7.1.116", "8.6.1", "10.13.0.35", "11.4.0.106")
"""The last of TensorRT-RTX, and each world of TensorRT; the others are between them."""
VERSIONS = pytest.mark.parametrize(
    "version",
    [
        version if version in OFTEN else pytest.param(version, marks=pytest.mark.exhaustive)
        for version in recorded_versions()
    ],
)
USES: dict[str, Any] = {
    "min_shapes": ("image:1x3x4x4",),
    "opt_shapes": ("image:1x3x4x4",),
    "max_shapes": ("image:1x3x4x4",),
    "batch": 1,
    "input_formats": ("fp32:chw",),
    "output_formats": ("fp32:chw",),
    "hardware_compatible": "ampere_plus",
    "compute_capability": ("8.9",),
    "dla_core": 0,
    "gpu_fallback": True,
    "layer_device": ("first:GPU",),
    "adjust_for_dla": True,
    "report_dla": True,
    "dla_uint8": True,
    "runtime_platform": "windows_amd64",
    "optimization_level": 4,
    "max_aux_streams": 1,
    "avg_timing": 2,
    "max_tactics": 3,
    "tiling_level": 1,
    "timing_cache": Path("timing.cache"),
    "no_timing_cache": True,
    "editable_timing_cache": True,
    "error_on_cache_miss": True,
    "no_compilation_cache": True,
    "workspace": 64.0,
    "memory_pools": ("workspace:1M",),
    "weight_streaming": True,
    "l2_limit": 1 << 20,
    "refit": "refit",
    "version_compatible": True,
    "exclude_lean_runtime": True,
    "typing": "strong",
    "tf32": False,
    "fp16": True,
    "bf16": True,
    "int8": True,
    "fp8": True,
    "int4": True,
    "layer_precision": ("first:fp16",),
    "layer_output_type": ("first:fp16",),
    "calibration_cache": Path("ranges.cache"),
    "strict_nans": True,
    "placeholder_ranges": True,
    "sparsity": "enable",
    "tactic_sources": (),  # by version, as the next
    "native_instance_norm": True,
    "direct_io": True,
    "plugin_override": True,
    "distributive_independence": True,
    "build_route": "-copy_ppg=off",
    "tactic_replay": Path("tactics.json"),
    "save_tactics": Path("saved.json"),
    "preview_features": (),
}
"""A use of each setting of a build."""
WITH: dict[str, dict[str, Any]] = {
    "editable_timing_cache": {"timing_cache": Path("timing.cache")},
    "error_on_cache_miss": {"timing_cache": Path("timing.cache")},
    "exclude_lean_runtime": {"version_compatible": True},
    "weight_streaming": {"typing": "strong"},
    "calibration_cache": {"int8": True},
    "int8": {"calibration_cache": Path("ranges.cache")},
    "dla_core": {"gpu_fallback": True},
    "gpu_fallback": {"dla_core": 0},
    "adjust_for_dla": {"dla_core": 0},
    "report_dla": {"dla_core": 0},
    "dla_uint8": {"dla_core": 0},
    "placeholder_ranges": {"int8": True},
}
"""What a setting means something with."""
BY_VALUE = {"typing", "weight_streaming"}  # 8.6 has no strong typing, and other types
ELSEWHERE = {"calibration_inputs"}  # test_tensorrt_calibration.py: it needs a GPU

pytestmark = pytest.mark.usefixtures("replaces_all")


def test_every_setting_of_a_build_is_tried() -> None:
    general = {field.name for field in fields(CommonSettings)} | {"device"}
    assert {field.name for field in fields(BuildSettings)} - general == {*USES, *ELSEWHERE}


@VERSIONS
def test_what_is_offered_builds_and_what_is_not_says_why(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))
    model = write_model(tmp_path / "small.onnx")
    trt = fake_tensorrt(version)
    trt.fake.dla_cores = 1
    facts = capabilities_of(trt)
    greyed = reasons(facts)
    built = []
    Path("ranges.cache").write_bytes(b"TRT-101300-EntropyCalibration2\nimage: 3c010a14\n")
    Path("tactics.json").write_text('{"replay": {}}')
    for name, value in USES.items():
        if name in ("preview_features", "tactic_sources"):
            kind = trt.PreviewFeature if name == "preview_features" else trt.TacticSource
            value = tuple(f"-{member.name}" for member in list(kind)[-1:])
        settings = {**WITH.get(name, {}), name: value}
        problems = refused(BuildSettings(model, **settings), facts)
        assert bool(greyed.get(name)) <= bool(problems) or name in ("typing", "hardware_compatible")
        if not problems:
            fake_build(trt, model, **settings)
            built.append(name)
    missing = {name for name in USES if name not in built}
    assert missing - set(greyed) <= BY_VALUE, "refused without being greyed"
    known = _names(version)
    assert trt.fake.used <= known
    sys.stdout.write(  # for `make conformance`
        f"{facts.title}: {len(built)} settings build, {len(missing)} are refused with a reason,"
        f" {len(trt.fake.used)} names used, all among the {len(known):,} of its bindings\n"
    )


def _names(version: str) -> set[str]:
    classes = bindings(version)["classes"]
    return {
        f"{name}.{member}"
        for name, record in classes.items()
        for kind in ("methods", "statics", "properties")
        for member in record.get(kind, ())
    }


@VERSIONS
def test_an_engine_is_built_measured_and_refitted(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    trt = fake_tensorrt(version)
    monkeypatch.setattr(library, "find_library", lambda choice: use(trt))
    for module in (cuda, profiling):
        monkeypatch.setattr(module, "Cuda", lambda device, spin=False: trt.fake.cuda)
    model = write_model(tmp_path / "small.onnx")
    engine = tmp_path / "small.engine"
    quick: dict[str, Any] = {"iterations": 3, "duration": 0.0, "warm_up_ms": 0.0}
    request = profile_tensorrt.Request(
        model=model, **quick, gpu_counters="off", refit="refit", output=engine
    )
    assert isinstance(list(profile_tensorrt.run(request))[-1], Finished)

    other = write_model(tmp_path / "other.onnx", FIXED.replace("0.6", "0.7"))
    refit_request = refit.Request(engine, other, trust=True)
    if "OnnxParserRefitter" not in capabilities_of(trt).has:
        with pytest.raises(UnavailableError, match=r"10\.0 or later can"):
            list(refit.run(refit_request))
    else:
        assert isinstance(list(refit.run(refit_request))[-1], Finished)
    assert trt.fake.used <= _names(version)
    assert len(trt.fake.used) > 30


@VERSIONS
def test_tactics_are_chosen_by_what_a_version_has(version: str) -> None:
    facts = capabilities_of(fake_tensorrt(version))
    editable = "ITimingCache.update" in facts.has and "ITimingCache.queryKeys" in facts.has
    assert (reason_against(CACHE, facts) == "") == (editable and not version.startswith("1."))


@pytest.mark.slow
@VERSIONS
def test_the_records_are_what_the_bindings_have(version: str, tmp_path: Path) -> None:
    try:
        found = tensorrt_bindings.record(version, tmp_path)
    except tensorrt_bindings.NotRecordedError as error:
        pytest.skip(f"the bindings of TensorRT {version} cannot be read here: {error}")
    assert found == bindings(version)


@pytest.fixture
def trt() -> Any:
    return fake_tensorrt()


def test_unknown_names_and_arguments_raise(trt: Any) -> None:
    builder = trt.Builder(trt.Logger())
    config = builder.create_builder_config()

    with pytest.raises(AttributeError):
        _ = builder.build_cuda_engine
    with pytest.raises(AttributeError, match="no attribute 'max_workspace_size'"):
        config.max_workspace_size = 1
    with pytest.raises(TypeError, match="incompatible function arguments"):
        config.set_flag("FP16")
    with pytest.raises(TypeError, match="incompatible function arguments"):
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE)
    with pytest.raises(TypeError, match="No constructor defined"):
        trt.INetworkDefinition()
    with pytest.raises(AttributeError):
        builder.num_DLA_cores = 2
    with pytest.raises(TypeError, match="is a int"):
        config.max_aux_streams = "two"


def test_a_class_of_the_program_must_fit_and_be_initialised(trt: Any) -> None:
    with pytest.raises(TypeError):

        class Wrong(trt.IProfiler):  # type: ignore[misc]
            def report_layer_time(self, name: str) -> None: ...

    class Lazy(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            pass

    with pytest.raises(TypeError, match="incompatible function arguments"):
        trt.Builder(Lazy())


def test_constraints_count_only_where_flags_say_so(trt: Any) -> None:
    def precision(*flags: str) -> str:
        logger = trt.Logger()
        builder = trt.Builder(logger)
        network = builder.create_network(0)
        trt.OnnxParser(network, logger).parse(model_of().SerializeToString())
        network.get_layer(1).precision = trt.float16
        config = builder.create_builder_config()
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
        for flag in flags:
            config.set_flag(trt.BuilderFlag[flag])
        plan = builder.build_serialized_network(network, config)
        engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
        text = engine.create_engine_inspector().get_layer_information(
            1, trt.LayerInformationFormat.JSON
        )
        return "Half" if '"Half"' in text else "Float"

    assert precision("FP16", "OBEY_PRECISION_CONSTRAINTS") == "Half"
    assert precision("TF32") == "Float"
