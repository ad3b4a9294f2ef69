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
from tests.support.recorded import Recorded

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


HEAD = "&&&& RUNNING TensorRT.trtexec [TensorRT v110100] [b11] # trtexec --onnx=m.onnx"
COMMANDS = (
    "trtexec --onnx=m.onnx --best", "trtexec --onnx=m.onnx --best --noInt8 --int8=off",
    "trtexec --onnx=m.onnx --stripWeights --refit", "trtexec --onnx=m.onnx --refit",
    "trtexec --onnx=m.onnx --noTF32", "polygraphy run m.onnx --trt --no-tf32",
    "trtexec --onnx=m.onnx --no-workspace=3", "trtexec --onnx=m.onnx --workspace=4096",
    "trtexec --onnx=m.onnx --useCudaGraph", "trtexec --onnx=m.onnx --pi",
    "trtexec --onnx=m.onnx --useDLACore=1 --allowGPUFallback", "trtexec --onnx=m.onnx --batch=4",
    "polygraphy run m.onnx --trt --batch=4", "trtexec --onnx=m.onnx --fp16=false --no-fp16",
    'trtexec --onnx=m.onnx --setBuildRoute="-a=on -b:c=[2]" --adjustForDLA',
    "trtexec --onnx=m.onnx --hardwareCompatibilityLevel=ampere+",
    "trtexec --onnx=m.onnx --profile=0 --optShapes=x:1 --profile=1 --optShapes=x:2",
    "polygraphy convert m.onnx -o m.engine --fp16 --pool-limit workspace:1G"
    " --trt-min-shapes x:[1,3] y:[1] -v",
    "polygraphy run --trt m.onnx --precision-constraints prefer --tactic-sources cublas"
    " --tiling-optimization-level full --use-dla --convert-to trt --model-type onnx m2.onnx",
    "polygraphy run m.onnx --trt --save-inputs=x --data-loader-script",
    "polygraphy run m.onnx --trt --tactic-sources", "trtexec --onnx=m.onnx -o out stray",
    "$ CUDA_VISIBLE_DEVICES=1 /usr/src/trtexec --onnx=m.onnx \\\n  --int8 | tee log",
    "/opt/trtexec.exe --onnx=m.onnx \\\r\n --int8 2>&1", "--onnx=m.onnx --fp16",
    "trtexec --onnx=m.onnx && rm -rf x", "trtexec m2 m.onnx - --fp16",
    "trtexec --loadEngine=e.plan", "trtexec --onnx=m.onnx --loadEngine=e.plan",
    "trtexec --onnx=m.onnx --saveEngine=m.engine --skipInference",
    "trtexec --onnx=m.onnx --saveEngine=m.engine --buildOnly",
    "trtexec --onnx=m.onnx --saveEngine=m.engine",
    "trtexec --onnx=m.onnx --saveEngine=n --buildOnly",
    "trtexec --onnx=m.onnx --shapes=x:1x3 --iterations=5 --warmUp 10 --duration=0 --spinWait",
    "trtexec --onnx=m.onnx --shapes=x:1x3 --optShapes=x:2x3", HEAD, HEAD.replace("110100", "8601"),
    HEAD.replace("110100", "101601"), "trtexec --onnx=m.onnx --noSpinWait",
    "trtexec --onnx=m.onnx --sleepTime=3 --nonsense --exportTimes=t stray --dumpProfile --atol=1",
    "trtexec --onnx=m.onnx --tuningSearch=full --continue --independentWeightLayouts",
    "trtexec --onnx=m.onnx # trtexec 11 has no: --fp16 --no-tf32", "trtexec --onnx=m.onnx # other",
    "trtexec --onnx=m.onnx --plugins=a.so,b.so --memPoolSize=workspace:1G,dlaSRAM:1M",
    "ls -l", "polygraphy inspect model m.onnx", "polygraphy", "trtexec '--onnx=m",
    "trtexec --duration=x", "trtexec --sparsity=some", "trtexec --builderOptimizationLevel=9",
    "trtexec --profile=x", "trtexec --iterations", "trtexec --iterations --fp16",
    "x" * 200_001, "",
)  # fmt: skip


def test_whole_commands(recorded: Recorded) -> None:
    told = {}
    for text in COMMANDS:
        try:
            parsed = parse_command(text)
        except UsageError as error:
            told[text[:99]] = f"{error} {error.hint}"
            continue
        lines = [f"{name}: {value}" for name, value in parsed.values.items()]
        build = for_build(parsed)
        lines += [*parsed.notes, f"to build: {build.values}", *build.notes[len(parsed.notes) :]]
        for version in ("8.6", "10.3", "11.1"):
            lines.append(f"{version}: {parse_command(text, version).values == parsed.values}")
            lines += [f"  {one.option} {one.status} {one.text}" for one in explain(text, version)]
        if "model" in parsed.values:
            request = from_json(ProfileRequest, parsed.values)
            lines += [f"{v}: {print_command(request, v)}" for v in ("8.6", "10.3", "11.1")]
            lines.append(print_command(from_json(BuildRequest, build.values)))
        told[text] = "\n".join(lines)
    recorded("whole_commands", {name.replace("\n", "|"): text for name, text in told.items()})


def test_printed_settings(recorded: Recorded) -> None:
    requests_ = {
        "types": BuildRequest(Path("m.onnx"), fp16=True, typing="strong"),
        "quotes": BuildRequest(Path("a b/m$.onnx"), opt_shapes=("x:0:1x3", "y z:scalar")),
        "profiles": BuildRequest(Path("m.onnx"), min_shapes=("x:1",), opt_shapes=("x:2", "x:3")),
        "pools": BuildRequest(Path("m.onnx"), workspace=1.5, memory_pools=("dlaSRAM:1M",)),
        "sources": BuildRequest(Path("m.onnx"), tactic_sources=("+CUBLAS", "-CUDNN")),
        "plain sources": BuildRequest(Path("m.onnx"), tactic_sources=("CUBLAS",), tf32=False),
        "plugins": BuildRequest(Path("m.onnx"), plugins=("a.so", "b.so")),
        "measured": ProfileRequest(Path("m.onnx"), layer_passes=0, use_cuda_graph=True),
        "engine": ProfileRequest(Path("m.plan"), spin_wait=True, no_data_transfers=True),
        "two engines": ProfileRequest(Path("m.onnx"), engine=Path("e.plan")),
    }
    recorded("whole_printed", {
        name: "\n".join(print_command(one, version) for version in ("8.6", "10.16", "11.5"))
        for name, one in requests_.items()
    })  # fmt: skip


def test_sizes_of_polygraphy_are_bytes() -> None:
    found = parse_command("polygraphy convert m.onnx --pool-limit workspace:1048576").values
    assert from_json(BuildRequest, found).workspace == 1.0


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
