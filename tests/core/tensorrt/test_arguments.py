"""Arguments and values in the ways of trtexec and Polygraphy."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.tensorrt.run_settings import RunSettings
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.tensorrt.trtexec_arguments import (
    mebibytes,
    named_value,
    plain_arguments,
    split_items,
)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (["--onnx=m.onnx", "--fp16"], ["m.onnx", "--fp16"]),
        (["--onnx", "m.onnx"], ["m.onnx"]),
        (["--minShapes", "x:1"], ["--minShapes=x:1"]),
        (
            ["--profile=1", "--minShapes=x:1", "--fp16", "--optShapes=x:2"],
            ["--minShapes=profile=1;x:1", "--fp16", "--optShapes=profile=1;x:2"],
        ),
        (
            ["--trt-min-shapes", "x:[1]", "y:[2]", "m.onnx"],
            ["--trt-min-shapes=x:[1]", "--trt-min-shapes=y:[2]", "m.onnx"],
        ),
        (["--pool-limit", "workspace:1e9"], ["--pool-limit=workspace:1e9B"]),
        (["--workspace=1G"], ["--workspace=1024.0"]),
        (["--tactic-sources", "-o", "e"], ["--tactic-sources=NONE", "-o", "e"]),
        (["--tactic-sources=-CUDNN"], ["--tactic-sources=-CUDNN"]),
        (
            ["--plugins", "a.so", "b.so.1", "m.onnx"],
            ["--plugins=a.so", "--plugins=b.so.1", "m.onnx"],
        ),
        (["--", "--onnx=m"], ["--", "--onnx=m"]),
    ],
)
def test_one_value_an_option(given: list[str], plain: list[str]) -> None:
    assert plain_arguments(given) == plain
    if "--" not in plain and "--profile=1" not in given:
        assert plain_arguments(plain) == plain


@pytest.mark.parametrize("number", ["", "x", "-1", "256", "99999"])
def test_profiles_have_numbers(number: str) -> None:
    with pytest.raises(UsageError, match="--profile"):
        plain_arguments([f"--profile={number}", "--minShapes=x:1"])


@pytest.mark.parametrize(
    ("text", "size"),
    [("1024", 1024.0), ("1G", 1024.0), ("512K", 0.5), ("1048576B", 1.0), ("0.5MiB", 0.5)],
)
def test_sizes(text: str, size: float) -> None:
    assert mebibytes(text) == size


@pytest.mark.parametrize("text", ["", "x", "-1", "1T", "1 2", "nan"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        mebibytes(text)


def test_lists_and_names_keep_what_brackets_quotes_and_colons_hold() -> None:
    assert split_items("a:[1,2],'b,c':fp16, d,,") == ["a:[1,2]", "'b,c':fp16", "d"]
    assert named_value("'a,b':fp16") == ("a,b", "fp16")
    assert named_value("scope::x:0:fp16") == ("scope::x:0", "fp16")
    for text in ("fp16", ":fp16"):
        with pytest.raises(UsageError, match="NAME:VALUE"):
            named_value(text)


def test_settings_have_one_plain_form() -> None:
    built = BuildSettings(
        Path("d/m.onnx"),
        memory_pools=("workspace:1G,dlaSRAM:1M",),
        tactic_sources=("-cudnn,+cublas",),
        opt_shapes=("x:[1,3],y:2", "x:[4,3]"),
    )
    assert (built.workspace, built.memory_pools) == (1024.0, ("dlaSRAM:1M",))
    assert built.tactic_sources == ("-CUDNN", "+CUBLAS")
    assert built.opt_shapes == ("profile=0;x:1x3", "profile=0;y:2", "profile=1;x:4x3")
    assert built.shape_profiles == [
        {"opt_shapes": ("x:1x3", "y:2")},
        {"opt_shapes": ("x:4x3",)},
    ]
    assert built.engine_path == Path("m.engine")
    assert built.layer_info_path == Path("m.trt.json")


def test_an_engine_may_stand_in_place_of_the_model() -> None:
    alone = RunSettings(Path("m.plan"))
    assert (alone.prebuilt, alone.onnx) == (Path("m.plan"), None)
    both = RunSettings(Path("m.onnx"), engine=Path("e"))
    assert (both.prebuilt, both.onnx) == (Path("e"), Path("m.onnx"))
    assert RunSettings(Path("m.onnx")).prebuilt is None
