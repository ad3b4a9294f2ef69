"""One declaration gives the settings, their checks and their JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from dld_tui.activities.registry import load
from dld_tui.core.errors import UsageError
from dld_tui.core.params import (
    deciding,
    from_json,
    param,
    problem_of_form,
    settings_of,
    to_json,
    validate,
    value_of,
)
from dld_tui.core.types import JSON


@dataclass(frozen=True)
class Request:
    model: Path = param(label="Model", help="The model.", positional=True)
    passes: int = param(
        10, label="Passes", help="How many.", minimum=1, maximum=100, unit="passes",
        spellings=("--passes",),
    )  # fmt: skip
    mode: str = param("fast", label="Mode", help="Which.", choices=("fast", "slow"))
    shapes: tuple[str, ...] = param((), label="Shapes", help="Shapes.")
    limit: float | None = param(None, label="Limit", help="The limit.")


def test_settings_say_type_default_and_whether_required() -> None:
    model, passes, _, shapes, limit = settings_of(Request)
    assert (model.type, model.required, model.param.positional) == (Path, True, True)
    assert (passes.type, passes.default, passes.required) == (int, 10, False)
    assert shapes.type == tuple[str, ...]
    assert (limit.type, limit.optional) == (float, True)


def test_outputs_and_what_says_so_decide_nothing() -> None:
    @dataclass(frozen=True)
    class Search:
        seed: int = param(0, label="Seed", help="Random seed.")
        output: Path | None = param(None, label="Output", help="Where.", kind="output")
        tactics: Path | None = param(
            None, label="Tactics", help="What.", kind="output", decides=True
        )
        limit: float | None = param(None, label="Limit", help="How long.", decides=False)
        shapes: tuple[str, ...] = param((), label="Shapes", help="Shapes.")

    request = Search(3, Path("a"), Path("b"), 2.0, ("x:1",))
    assert deciding(request) == {"seed": 3, "tactics": "b", "shapes": ["x:1"]}
    assert deciding(request, ("tactics",)) == {"seed": 3, "shapes": ["x:1"]}


def test_json_round_trip() -> None:
    request = Request(Path("m.onnx"), 5, "slow", ("a:1",), 2.5)
    data = to_json(request)
    assert data["model"] == "m.onnx"
    assert from_json(Request, data) == request
    assert from_json(Request, {"model": "m.onnx"}) == Request(Path("m.onnx"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"passes": 0}, "--passes is 0; the least is 1 passes"),
        ({"passes": 101}, "the most is 100"),
        ({"passes": "many"}, "--passes is 'many'"),
        ({"mode": "odd"}, "mode is 'odd'; choose one of fast, slow"),
        ({"colour": 1}, "unknown setting 'colour'"),
    ],
)
def test_wrong_values_are_refused_by_name(change: dict[str, JSON], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_json(Request, {"model": "m", **change})


@pytest.mark.parametrize(
    ("activity", "values", "says"),
    [
        ("convert_quantize", {}, "static quantization needs Calibration. Or add dynamic or"),
        ("convert_quantize", {"dynamic": True, "output": None}, "an output is needed: Output, or"),
        ("convert_quantize", {"dynamic": True}, ""),
        ("convert_shape", {"dim": []}, "needed in Dimensions: batch=N or INPUT:AXIS=4"),
        ("convert_restore", {}, "Weights must name the model that has them"),
        ("convert_tensors", {"types": ["strange"]}, "no element type 'strange'"),
        ("convert_fp16", {"repair": True, "values": "never"}, "Repair needs the values"),
        ("convert_opset", {"to": 18, "tolerance": ["atol=high"]}, "tolerance atol"),
        ("convert_opset", {"to": None}, ""),
        ("search_precision", {"precision": "int8"}, "Precision int8 needs Calibration"),
    ],
)
def test_what_does_not_go_together_is_said_in_the_words_of_the_form(
    activity: str, values: dict[str, JSON], says: str
) -> None:
    request = load(activity).request
    every = {"model": "m.onnx", "output": "o.onnx"}
    known = {setting.name for setting in settings_of(request)}
    found = problem_of_form(request, {n: every[n] for n in every if n in known} | values)
    assert says in found
    assert bool(says) == bool(found)


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(UsageError, match="'model' is missing"):
        from_json(Request, {})


def test_validate_checks_requests_made_in_code() -> None:
    with pytest.raises(UsageError):
        validate(Request(Path("m"), passes=-1))


@dataclass(frozen=True)
class Made:
    model: Path = param(label="Model", help="The model.", kind="file")
    report: Path | None = param(None, label="Report", help="R.", kind="output", suffix=".dldprof")
    copy: Path | None = param(None, label="Copy", help="C.", kind="output")
    runs: int = param(1, label="Runs", help="R.", minimum=1)


def test_a_result_does_not_replace_what_it_is_made_from(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.touch()
    link = tmp_path / "other.dldprof"
    link.symlink_to(model)
    validate(Made(model, report=tmp_path / "m.dldprof", copy=model))
    for path in (model, link, tmp_path / "." / "m.onnx"):
        with pytest.raises(UsageError, match="would replace the file that it is made from"):
            validate(Made(model, report=path))
    with pytest.raises(UsageError, match="--runs"):  # what follows an output is checked, too
        validate(Made(model, report=tmp_path / "m.dldprof", runs=0))


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_within_no_limits(limit: float) -> None:
    with pytest.raises(UsageError, match="write a number"):
        validate(Request(Path("m.onnx"), limit=limit))


@pytest.mark.parametrize(("text", "number"), [("1,000", 1000), ("1_000", 1000), ("-7", -7)])
def test_whole_numbers_may_be_grouped(text: str, number: int) -> None:
    passes = settings_of(Request)[1]
    assert value_of(passes, text)[0] == number
