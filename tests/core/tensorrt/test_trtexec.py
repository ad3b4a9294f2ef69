"""Commands of trtexec and Polygraphy: printed, read, explained."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from dld_tui.activities.build import Request as BuildRequest
from dld_tui.activities.profile.tensorrt import Request as ProfileRequest
from dld_tui.core.errors import UsageError
from dld_tui.core.params import Setting, from_json, settings_of
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.tensorrt.trtexec import explain, for_build, parse_command, print_command

WORDS = st.text("abz_/.* '#$", min_size=1, max_size=6).map(str.strip).filter(bool)
NAMES = st.from_regex(r"[a-z][a-z0-9_/.]{0,6}", fullmatch=True)
SIZES = st.integers(1, 4096)
SHAPES = st.lists(
    st.dictionaries(NAMES, st.lists(SIZES, max_size=4), min_size=1, max_size=3), max_size=3
)
LISTS = {
    "input_formats": st.sampled_from(["fp16:chw", "fp32:chw+hwc8"]),
    "output_formats": st.sampled_from(["fp16:chw", "int8:chw32"]),
    "layer_precision": st.sampled_from(["conv*:fp16", "'a,b':fp32", "/x/y:int8"]),
    "layer_output_type": st.sampled_from(["a:fp16+fp32", "b:int8"]),
    "layer_device": st.sampled_from(["a:DLA", "b:GPU"]),
    "tactic_sources": st.sampled_from(["+CUBLAS", "-CUDNN", "CUBLAS_LT"]),
    "memory_pools": st.sampled_from(["dlaSRAM:1M", "tacticSharedMem:0.5M"]),
    "preview_features": st.sampled_from(["+profileSharing0806"]),
    "compute_capability": st.sampled_from(["8.9", "7.5"]),
    "load_inputs": st.sampled_from(["a:a.bin", "b:x/b.bin"]),
}


def shape_texts(profiles: list[dict[str, list[int]]]) -> tuple[str, ...]:
    return tuple(
        f"profile={number};{name}:{'x'.join(map(str, dims)) or 'scalar'}"
        for number, shapes in enumerate(profiles)
        for name, dims in shapes.items()
    )


def value_of(setting: Setting) -> st.SearchStrategy[Any]:
    kind, about = setting.type, setting.param
    if setting.name in ("min_shapes", "opt_shapes", "max_shapes"):
        return SHAPES.map(shape_texts)
    if setting.name == "shape":
        return st.dictionaries(NAMES, st.lists(SIZES, max_size=3), max_size=2).map(
            lambda shapes: tuple(
                f"{n}:{'x'.join(map(str, d)) or 'scalar'}" for n, d in shapes.items()
            )
        )
    if setting.name == "device":
        return st.sampled_from(["0", "3", "MIG-11c29e81-e611-50b5-b5ef-609c0a0fe58b"])
    if about.choices:
        return st.sampled_from(about.choices)
    if typing.get_origin(kind) is tuple:
        return st.lists(LISTS.get(setting.name, WORDS), max_size=3).map(tuple)
    if kind is bool:
        return st.booleans()
    if kind is int:
        return st.integers(int(about.minimum or 0), int(about.maximum or 10**6))
    if kind is float:
        return st.floats(about.minimum or 0, about.maximum or 1e6, allow_nan=False)
    if kind is Path:
        # A result may not be the file that it is made from, so no two settings draw the same path.
        return WORDS.map(lambda word: Path(f"{word}.{setting.name}"))
    return WORDS


def requests(request: type[BuildSettings]) -> st.SearchStrategy[BuildSettings]:
    fields = {
        s.name: value_of(s) if not s.optional else st.none() | value_of(s)
        for s in settings_of(request)
        if s.name != "model"
    }
    return st.builds(
        lambda model, values: request(model=model, **values),
        WORDS.map(lambda word: Path(f"{word}.onnx")),
        st.fixed_dictionaries({}, optional=fields),
    )


def read(text: str, request: type[BuildSettings], version: str = "") -> BuildSettings:
    parsed = parse_command(text, version)
    if request is BuildRequest:
        parsed = for_build(parsed)
    assert parsed.notes == ()
    return from_json(request, parsed.values)


@pytest.mark.parametrize("request_class", [BuildRequest, ProfileRequest])
@limits(max_examples=12, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_printed_command_reads_as_the_same_settings(
    request_class: type[BuildSettings], data: st.DataObject
) -> None:
    version = data.draw(st.sampled_from(["8.6", "10.16", "11.5"]))
    settings = data.draw(requests(request_class))
    text = print_command(settings, version)
    assert read(text, request_class, version) == settings, text


def test_printed_for_11() -> None:
    text = print_command(BuildRequest(Path("m.onnx"), fp16=True, typing="strong"), "11")
    assert text.endswith("--stronglyTyped --skipInference # trtexec 11 has no: --fp16")
    text = print_command(BuildRequest(Path("m.onnx"), opt_shapes=("x:0:1x3",)))
    assert """ "--optShapes='x:0':1x3" """ in text
    text = print_command(ProfileRequest(Path("m.onnx")), "11.1")
    assert "--noCudaGraph --noSpinWait --includeDataTransfers" in text
    text = print_command(ProfileRequest(Path("m.onnx"), use_cuda_graph=True), "10.3")
    assert "--useCudaGraph --dumpProfile --separateProfileRun" in text


def values(text: str, version: str = "") -> dict[str, Any]:
    return dict(parse_command(text, version).values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("trtexec --onnx=m.onnx --best", {"fp16": True, "bf16": True, "int8": True}),
        ("trtexec --onnx=m.onnx --stripWeights --refit", {"refit": "strip"}),
        ("trtexec --onnx=m.onnx --refit", {"refit": "refit"}),
        ("trtexec --onnx=m.onnx --noTF32", {"tf32": False}),
        ("polygraphy run m.onnx --trt --no-tf32", {"tf32": False}),
        ("trtexec --onnx=m.onnx --no-workspace=3", {}),
        ("trtexec --onnx=m.onnx --workspace=4096", {"workspace": 4096.0}),
        ("trtexec --onnx=m.onnx --useCudaGraph", {"use_cuda_graph": True}),
        ("trtexec --onnx=m.onnx --pi", {"native_instance_norm": False}),
        ("trtexec --onnx=m.onnx --useDLACore=1", {"dla_core": 1}),
        (
            'trtexec --onnx=m.onnx --setBuildRoute="-a=on -b:c=[2]" --adjustForDLA',
            {"build_route": "-a=on -b:c=[2]", "adjust_for_dla": True},
        ),
        (
            "trtexec --onnx=m.onnx --hardwareCompatibilityLevel=ampere+",
            {"hardware_compatible": "ampere_plus"},
        ),
        (
            "trtexec --onnx=m.onnx --profile=0 --optShapes=x:1 --profile=1 --optShapes=x:2",
            {"opt_shapes": ["profile=0;x:1", "profile=1;x:2"]},
        ),
        (
            "polygraphy convert m.onnx -o m.engine --fp16 --pool-limit workspace:1G"
            " --trt-min-shapes x:[1,3] y:[1]",
            {
                "output": "m.engine",
                "fp16": True,
                "memory_pools": ["workspace:1G"],
                "min_shapes": ["x:[1,3]", "y:[1]"],
            },
        ),
        (
            "polygraphy run --trt m.onnx --precision-constraints prefer --tactic-sources cublas"
            " --tiling-optimization-level full --use-dla",
            {"typing": "prefer", "tactic_sources": ["cublas"], "tiling_level": 3, "dla_core": 0},
        ),
        ("polygraphy run m.onnx --trt --tactic-sources", {"tactic_sources": ["NONE"]}),
        (
            "$ CUDA_VISIBLE_DEVICES=1 /usr/src/trtexec --onnx=m.onnx \\\n  --int8 | tee log",
            {"int8": True},
        ),
    ],
)
def test_settings_of_commands(text: str, expected: dict[str, Any]) -> None:
    assert values(text) == {"model": "m.onnx", **expected}


def test_the_head_of_a_log_says_the_version() -> None:
    line = "&&&& RUNNING TensorRT.trtexec [TensorRT v110100] [b11] # trtexec --onnx=m.onnx"
    found = values(line)
    assert (found["use_cuda_graph"], found["spin_wait"]) == (True, True)
    assert values(line.replace("110100", "8601")) == {"model": "m.onnx"}


def test_sizes_of_polygraphy_are_bytes() -> None:
    found = values("polygraphy convert m.onnx --pool-limit workspace:1048576")
    assert from_json(BuildRequest, found).workspace == 1.0


def test_what_is_no_setting_is_noted() -> None:
    parsed = parse_command("trtexec --onnx=m.onnx --sleepTime=3 --nonsense --exportTimes=t stray")
    assert [note.split(":")[0] for note in parsed.notes] == [
        "--sleepTime",
        "--nonsense",
        "--exportTimes",
        "'stray' is not an option, left out",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ls -l", "not a command"),
        ("polygraphy inspect model m.onnx", "only polygraphy convert"),
        ("trtexec '--onnx=m", "cannot be read"),
        ("trtexec --duration=x", "not a number"),
        ("trtexec --sparsity=some", "choose one of"),
        ("trtexec --builderOptimizationLevel=9", "the most is 5"),
        ("trtexec --profile=x", "not a number"),
        ("trtexec --iterations", "has no value"),
        ("x" * 300_000, "longer"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_command(text)


def test_options_of_11_5() -> None:
    lines = explain("trtexec --independentWeightLayouts --tuneBuildRoutes=-a=[0|1]", "11.4")
    assert [(line.option, line.status, line.text) for line in lines[:2]] == [
        ("--independentWeightLayouts", "newer", "only since 11.5"),
        ("--tuneBuildRoutes", "kept", ""),
    ]
    assert explain("trtexec --saveEngineSo=x", "11.5")[0].status == "kept"
    parsed = parse_command("trtexec --onnx=m.onnx --tuningSearch=full --continue")
    assert [note.split(":")[0] for note in parsed.notes] == ["--tuningSearch", "--continue"]
    assert "dld routes" in parsed.notes[0]


def test_every_option_that_11_lacks_says_what_to_do() -> None:
    from dld_tui.core.tensorrt.trtexec import LAST

    for option in LAST:
        line = explain(f"trtexec {option}=1")[0]
        assert line.status in ("removed", "renamed")
        assert line.text


def test_commands_of_collected_logs(real_files: Path) -> None:
    found = 0
    for path in sorted((real_files / "engines" / "cookbook").glob("trtexec-*")):
        head = path.read_text(errors="replace")[:2000].splitlines()
        for line in head:
            if "RUNNING TensorRT.trtexec" in line and "--onnx" in line:
                parsed = parse_command(line)
                from_json(ProfileRequest, parsed.values)
                found += 1
    assert found > 5


def test_what_a_command_declares() -> None:
    for request in (BuildRequest, ProfileRequest):
        spellings = [s for setting in settings_of(request) for s in setting.param.spellings]
        assert len(spellings) == len(set(spellings))
        flags = {flag for setting in settings_of(request) for flag, _ in setting.param.flags}
        assert not flags & set(spellings)
    for request in (BuildRequest, ProfileRequest):
        assert {f.name for f in dataclasses.fields(request)} == {
            s.name for s in settings_of(request)
        }
