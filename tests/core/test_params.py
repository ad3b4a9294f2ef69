"""One declaration gives the settings, their checks and their JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dld_tui.activities.registry import load
from dld_tui.core.errors import UsageError
from dld_tui.core.params import (
    command_line,
    command_words,
    companion_files,
    deciding,
    from_json,
    is_same_file,
    like,
    output_path,
    param,
    placeholder_text,
    plain_default,
    problem_of_form,
    put_once,
    rerun_command,
    root_name,
    settings_of,
    split_pair,
    to_json,
    validate,
    value_of,
    when,
    whole_numbers,
    written_files,
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


def empty_text(values: Mapping[str, JSON]) -> str:
    return f"as {values.get('model')}"


@dataclass(frozen=True)
class Many:
    """A setting of every kind, in the order of a class whose first page is not first."""

    model: Path = param(label="Model", help="M.", positional=True, kind="file", metavar="MODEL")
    later: int = param(3, label="Later", help="L.", page="More", unit="ms", maximum=9)
    plain: int = 0
    more: tuple[Path, ...] = param((), label="More", help="M.", positional=True)
    is_good: bool = param(True, label="Good", help="G.", spellings=("--good", "--fine"))
    rate: float | None = param(None, label="Rate", help="R.", empty="by size", minimum=0.5)
    name: str = param("a", label="Name", help="N.", of_model=True)
    words: tuple[str, ...] = param((), label="Words", help="W.", empty=empty_text)
    either: int | str = param(1, label="Either", help="E.")
    folder: Path = param(Path("x"), label="Folder", help="F.", kind="folder")
    log: Path | None = param(
        None, label="Log", help="L.", kind="output",
        default_path=lambda request: request.model.with_suffix(".log"),
    )  # fmt: skip
    output: Path | None = param(
        None, label="Output", help="O.", kind="output", suffix=".onnx",
        beside=("{stem}.log", "{name}.data", "{root}.txt"),
    )  # fmt: skip
    seen: str | None = param(
        None, label="Seen", help="S.", kind="place", read_here=lambda request: request.name * 2
    )
    in_place: bool = param(False, label="In place", help="I.")


KNOWN = {setting.name: setting for setting in settings_of(Many)}


def test_settings_of_every_kind() -> None:
    assert [
        (one.name, one.flag, one.optional, one.of_model, one.decides, one.required)
        for one in settings_of(Many)
    ] == [
        ("model", "model", False, True, True, True),
        ("more", "more", False, True, True, False),
        ("is_good", "--good", False, False, True, False),
        ("rate", "--rate", True, False, True, False),
        ("name", "--name", False, True, True, False),
        ("words", "--words", False, True, True, False),
        ("either", "--either", False, False, True, False),
        ("folder", "--folder", False, True, True, False),
        ("log", "--log", True, True, False, False),
        ("output", "--output", True, True, False, False),
        ("seen", "--seen", True, True, True, False),
        ("in_place", "--in-place", False, False, True, False),
        ("later", "--later", False, False, True, False),
    ]
    assert KNOWN["either"].type == int | str
    model = {"model": "m/n.onnx"}
    assert {name: placeholder_text(one, model) for name, one in KNOWN.items()} == {
        "model": "MODEL", "more": "none", "is_good": "True", "rate": "by size", "name": "a",
        "words": "as m/n.onnx", "either": "1", "folder": "x", "log": "not written",
        "output": "n.onnx", "seen": "none", "in_place": "False", "later": "3",
    }  # fmt: skip
    assert placeholder_text(KNOWN["output"], {"model": ""}) == "model.onnx"
    assert placeholder_text(KNOWN["output"], {}) == "not written"
    assert [plain_default(KNOWN[name]) for name in ("model", "words", "folder", "later")] == [
        None, [], "x", 3,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "value", "problem"),
    [
        ("model", "", None, "needed"), ("model", " ", None, "needed"),
        ("model", " a b ", "a b", None),
        ("more", "", [], None), ("more", "a 'b c'", ["a", "b c"], None),
        ("words", "'", None, "No closing quotation"),
        ("words", "a'b " * 2501, ["a'b"] * 2501, None),
        ("words", "'a' " * 2499, ["a"] * 2499, None),
        ("rate", "", None, None), ("rate", "0.5", 0.5, None),
        ("rate", "0.4", 0.4, "0.4; the least is 0.5"), ("rate", "x", None, "x is not a number"),
        ("rate", "nan", math.nan, "nan; write a number"),
        ("later", "", 3, None), ("later", "9", 9, None),
        ("later", "10", 10, "10; the most is 9 ms"),
        ("later", "1.5", None, "1.5 is not a whole number"),
        ("later", "1,0_0", 100, "100; the most is 9 ms"),
        ("folder", "", "x", None), ("folder", "~root", str(Path("~root").expanduser()), None),
        ("name", " b ", "b", None), ("name", "", "a", None), ("seen", "", None, None),
    ],
)  # fmt: skip
def test_what_is_typed_into_a_field(name: str, text: str, value: JSON, problem: str | None) -> None:
    found = value_of(KNOWN[name], text)
    assert repr(found[0]) == repr(value)
    assert found[1] == problem


def test_the_command_of_a_request() -> None:
    request = Many(Path("m"), 4, 0, (Path("a b"),), False, 2.0, "a", ("c", "d"), log=Path("l"))
    words = [
        "m", "a b", "--no-good", "--rate", "2.0", "--words", "c", "--words", "d",
    ]  # fmt: skip
    values = to_json(request)
    last = ["--seen", "aa", "--later", "4"]
    assert command_words(["dld", "x"], Many, values) == ["dld", "x", *words, "--log", "l", *last]
    assert command_line(["dld"], Many, {"model": "a b", "is_good": None}) == "dld 'a b'"
    absolute = str(Path("m").absolute())
    assert rerun_command(["dld"], request) == ["dld", absolute, *words[1:], *last]
    assert command_words(["d"], Many, {"in_place": True}) == ["d", "--in-place"]


def test_files_that_are_written(tmp_path: Path) -> None:
    model, output = tmp_path / "m.onnx", tmp_path / "e.graph.json"
    request = Many(model=model, output=output)
    log = tmp_path / "m.log"
    assert output_path(request, "log") == log
    assert output_path(request, "output") == output
    assert output_path(Many(model=model), "output") is None
    beside = [tmp_path / name for name in ("e.graph.log", "e.graph.json.data", "e.txt")]
    assert companion_files(KNOWN["output"].param, output) == beside
    assert written_files(request) == [log, output, *beside[1:]]
    output.touch()
    assert written_files(request) == [log, output, *beside]
    model.touch()
    replaced = Many(model=model, output=model, in_place=True)
    assert written_files(replaced) == [log]
    assert written_files(replace(replaced, in_place=False))[:2] == [log, model]
    assert written_files(replace(replaced, output=output)) == [log, output, *beside]
    names = ["e.trt.json", "e.graph.json", "e.graph.trt.json", "e.json", "e.engine"]
    assert [root_name(Path(name)) for name in names] == ["e", "e", "e", "e", "e.engine"]


def test_texts_of_options() -> None:
    assert whole_numbers("1, 8,,99999999,1", "--batch") == [1, 8, 99_999_999]
    for wrong in ("0", "100000000", "x", "1.5", "-1"):
        with pytest.raises(UsageError, match="--batch is"):
            whole_numbers(f"1,{wrong}", "--batch")
    found: dict[str, int] = {}
    put_once(found, "a", 1, "--dim")
    put_once(found, "b", 2, "--dim")
    assert found == {"a": 1, "b": 2}
    with pytest.raises(UsageError, match="--dim names 'a' twice"):
        put_once(found, "a", 3, "--dim")
    names = {"a=b", "a", "=x"}
    texts = ("a=b", "a=b=c", "a=c=d", "q=r=s", "q", "=", "=x=y")
    assert [split_pair(text, names.__contains__) for text in texts] == [
        ("a=b", ""), ("a=b", "c"), ("a", "c=d"), ("q", "r=s"), ("q", ""), ("", ""), ("=x", "y"),
    ]  # fmt: skip
    assert when("mode", 1, "x")({"mode": "x"}) is True
    assert when("mode", 1, "x")({"other": 1}) is False


def test_a_setting_like_another(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Copy:
        needed: int = like(Request, "passes", required=True, kind="x")
        passes: int = like(Request, "passes", help="Others.")
        few: int = like(Request, "passes", 2)

    needed, passes, few = settings_of(Copy)
    assert (passes.default, few.default, needed.required) == (10, 2, True)
    assert (passes.param.help, few.param.help, needed.param.kind) == ("Others.", "How many.", "x")
    file, other = tmp_path / "a", tmp_path / "b"
    file.touch()
    other.hardlink_to(file)
    assert is_same_file(file, other)
    assert not is_same_file(file, tmp_path / "c")
    assert is_same_file(tmp_path / "c", tmp_path / "." / "c")
    (tmp_path / "d").touch()
    assert is_same_file(file, tmp_path / "d") is False
