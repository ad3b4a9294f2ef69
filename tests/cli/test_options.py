"""Options made from a request class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from dld_tui.activities.accuracy.search import Request as PrecisionRequest
from dld_tui.cli.options import Measure, click_type, parameters_of, request_from
from dld_tui.core.conversion.request import QuantizationSettings as QuantizeRequest
from dld_tui.core.params import param, settings_of


@dataclass(frozen=True)
class Request:
    model: Path = param(label="Model", help="The model.", positional=True)
    output: Path | None = param(
        None, label="Report", help="The report.", kind="output", spellings=("-o", "--output")
    )
    iterations: int = param(
        100, label="Iterations", help="How often.", unit="passes", spellings=("--iterations",)
    )
    shapes: tuple[str, ...] = param(
        (), label="Shapes", help="Dimensions.", spellings=("--shape", "--minShapes")
    )
    level: str = param("all", label="Level", help="How far.", choices=("none", "all"))
    tf32: bool = param(True, label="TF32", help="Allow it.")
    share: float = param(0.5, label="Share", help="A part.")


def parse(*arguments: str) -> Request:
    command = click.Command("x", params=parameters_of(Request))
    values: dict[str, Any] = command.make_context("x", list(arguments)).params
    built = request_from(Request, values)
    assert isinstance(built, Request)
    assert values == {}
    return built


def test_what_is_not_given_is_left_to_the_request() -> None:
    assert parse("m.onnx") == Request(model=Path("m.onnx"))


def test_every_type_is_parsed() -> None:
    given = ["m.onnx", "-o", "r", "--iterations=7", "--level=NONE", "--no-tf32", "--share=0.25"]
    assert parse(*given) == Request(
        Path("m.onnx"), Path("r"), 7, (), "none", tf32=False, share=0.25
    )


def test_other_spellings_and_repetition() -> None:
    request = parse("m.onnx", "--minShapes=x:1x3", "--shape", "y:[2,2]")
    assert request.shapes == ("x:1x3", "y:[2,2]")


@pytest.mark.parametrize(
    "arguments", [[], ["m", "--iterations", "many"], ["m", "--level", "some"], ["m", "n"]]
)
def test_wrong_values_are_usage_errors(arguments: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parse(*arguments)


def test_help_has_unit_and_default() -> None:
    command = click.Command("x", params=parameters_of(Request))
    shown = " ".join(command.get_help(click.Context(command)).split())
    assert "How often. [passes; default: 100]" in shown
    assert "--tf32 / --no-tf32 Allow it. [default: on]" in shown
    assert "-o, --output" in shown


@dataclass(frozen=True)
class Flagged:
    mode: str = param(
        "off", label="Mode", help="How.", choices=("off", "plain", "full"),
        words=(("ALL", "full"),), spellings=("--mode",),
        flags=(("--plain", "plain"), ("--full", "full"), ("--best", "full")),
    )  # fmt: skip
    fast: bool = param(True, label="F", help="H", flags=(("--slow", False), ("--best", False)))
    no_cache: bool = param(False, label="C", help="H", spellings=("--no-cache",))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], Flagged()),
        (["--plain"], Flagged("plain")),
        (["--full", "--plain"], Flagged("full")),
        (["--full", "--mode=off"], Flagged("off")),
        (["--mode", "all"], Flagged("full")),
        (["--best", "--no-cache"], Flagged("full", fast=False, no_cache=True)),
        (["--best", "--fast"], Flagged("full")),
        (["--slow"], Flagged(fast=False)),
    ],
)
def test_flags_that_set_a_value(arguments: list[str], expected: Flagged) -> None:
    command = click.Command("x", params=parameters_of(Flagged))
    values: dict[str, Any] = command.make_context("x", arguments).params
    assert request_from(Flagged, values) == expected
    assert values == {}
    assert "--plain" in command.get_help(click.Context(command))


def test_a_number_may_be_written_with_its_unit() -> None:
    percent = Measure("%", 0, open=True)
    assert [percent.convert(text, None, None) for text in ("3%", " 3 %", "0.5", "1e1%")] == [
        3, 3, 0.5, 10,
    ]  # fmt: skip
    assert Measure("").convert("2", None, None) == 2
    for wrong in ("3s", "%", "0%", "-1 %"):
        with pytest.raises(click.BadParameter):
            percent.convert(wrong, None, None)


@pytest.mark.parametrize(
    ("word", "runtime"), [("cpu", "onnxruntime"), ("ORT", "onnxruntime"), ("trt", "tensorrt")]
)
def test_the_runtime_of_a_quantized_model_has_its_short_names(word: str, runtime: str) -> None:
    for request in (QuantizeRequest, PrecisionRequest):
        (setting,) = (one for one in settings_of(request) if one.name == "runtime")
        assert click_type(setting).convert(word, None, None) == runtime
