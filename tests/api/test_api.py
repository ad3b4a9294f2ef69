"""The library: its examples run, its names are complete, its errors are in words of Python."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui import api
from dld_tui.activities import registry
from dld_tui.api import commands, inference, soundness
from dld_tui.api.requests import file_of, python_words, request_of, settings_from
from dld_tui.core.events import Event, Log, Metric, Progress
from dld_tui.core.model.edits import renaming
from dld_tui.core.params import param, settings_of
from dld_tui.targets import registry as targets
from scripts.library_stubs import STUBS, stubs
from tests.support import models
from tests.support.models import write
from tests.support.recorded import Recorded
from tests.support.runtime import session_of

MODEL = """<ir_version: 8, opset_import: ["": 17]> g (float[1,4] x) => (float[1,4] y) {
  [conv] t = Relu(x)
  [act] y = Relu(t)
}"""
PAGE = Path(__file__).parents[2] / "docs/reference/library.md"
BY_HAND = {"profile", "score", "search_precision", "doctor"}
"""Functions that are not called like the words of their command."""


NETWORK = """<ir_version: 8, opset_import: ["": 17]> net (float[n,3] x) => (float[n,3] y)
<float[3] w = {1, -2, 3}, float[3] v = {2, 1, -1}> {
  [stem] a = Mul(x, w)
  [relu] b = Relu(a)
  [head] y = Mul(b, v)
}"""


@pytest.fixture
def network(tmp_path: Path) -> Path:
    return write(tmp_path, NETWORK, "net.onnx")


@pytest.mark.parametrize("name", ["models", "requests", "rows", "runs"])
def test_the_examples_are_true(name: str, tmp_path: Path) -> None:
    module = importlib.import_module(f"dld_tui.api.{name}")
    names = {"path": write(tmp_path, MODEL)}
    done = doctest.testmod(module, extraglobs=names, raise_on_error=False)
    assert (done.failed, done.attempted > 1) == (0, True)


def test_the_page_names_all_there_is() -> None:
    """Its examples run in ``tests/test_pages.py``."""
    text = PAGE.read_text(encoding="utf-8")
    assert {name for name in api.__all__ if f"`{name}`" not in text} == set()
    assert text.count(">>> ") > 25


def test_each_command_that_runs_a_job_is_a_function() -> None:
    words = {
        "_".join(about.command.words)
        for about in registry.activities()
        if about.command is not None
        and about.id not in ("gate", "profile_onnxruntime", "score", "search_precision")
    }
    assert words <= set(api.__all__) == set(dir(api))
    assert set(commands.activities()) - words == BY_HAND
    for name, activity in commands.activities().items():
        function = getattr(commands, name)
        assert (function.__name__, function.__qualname__) == (name, name)
        assert function.__doc__ == commands.documentation(registry.load(activity))
        assert inspect.signature(function) == commands.signature_of(registry.load(activity))


def test_an_activity_of_another_package_is_a_function_of_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doctor = registry.find("doctor")
    known = registry.find("profile_tensorrt")
    assert known.command is not None
    other = replace(known, id="theirs", command=replace(known.command, words=("run", "their-job")))
    monkeypatch.setattr(registry, "activities", lambda: [doctor, other])
    assert commands.activities() == {"doctor": "doctor", "their_job": "theirs"}


@dataclass
class Plan:
    """All kinds of settings."""

    model: Path = param(label="", help="The model.", positional=True)
    second: Path | None = param(None, label="", help="Another one.", positional=True)
    third: Path | None = param(None, label="", help="One more.", positional=True)
    data: Path | None = param(
        None, label="", help="A folder of sets.", kind="folder", metavar="A=B"
    )
    shape: tuple[str, ...] = param((), label="", help="Sizes.", metavar="NAME:DIMS")
    values: tuple[str, ...] = param(
        ("a", "b"), label="", help="Values of names.", metavar="NAME=VALUE"
    )
    names: tuple[str, ...] = param((), label="", help="Names.", metavar="NAME")
    paths: tuple[Path, ...] = param((), label="", help="Files.")
    kind: str = param("fast", label="", help="How.", choices=("fast", "full"))
    other_kind: str | None = param(None, label="", help="How else.", choices=("no", "yes"))
    text: str = param(
        "", label="", help="What is said of it, in " + 7 * "so many words " + "that it wraps."
    )
    word: str = param("x", label="", help="A word.", unit="letters")
    count: int = param(0, label="", help="How many.", unit="MB")
    share: float | None = param(None, label="", help="How much.", unit="%")
    is_quick: bool = param(False, label="", help="Whether to be quick.")
    secret: int = param(1, label="", help="Of the program.", internal=True)


@dataclass
class Reporting:
    """Settings that write a report."""

    last: str = param(label="", help="The last.", positional=True)
    output: Path | None = param(
        None, label="", help="The report.", kind="output", suffix=".dldprof"
    )


def test_functions_have_the_settings_of_their_requests(recorded: Recorded) -> None:
    texts = {}
    for request, result in ((Plan, Log | registry.load("doctor").result), (Reporting, Log)):
        made = registry.Activity("plan", "Plan", "Plans.", request, None, result=result)
        about = [str(commands.signature_of(made)), commands.documentation(made)]
        texts[request.__name__] = "\n".join(about)
    recorded("functions_of_requests", texts)


def test_the_stubs_are_those_of_the_requests() -> None:
    told = "run python -m scripts.library_stubs"
    assert STUBS.read_text(encoding="utf-8") == stubs(), told


@pytest.mark.parametrize(
    ("kind", "settings", "error", "message"),
    [
        ("profile", {"iterations": 0}, api.DldError, "iterations is 0; the least is 1"),
        ("profile", {"iterations": "3"}, api.DldError, "'3', which is not a whole number"),
        ("profile", {"iterations": True}, api.DldError, "True, which is not a whole number"),
        ("profile", {"iteration": 3}, TypeError, "no argument 'iteration'; did you mean 'iter"),
        ("profile", {"zzz": 3}, TypeError, r"no argument 'zzz'; help\(profile\) lists all"),
        ("profile", {"shape": {"x": (3, 5)}}, api.DldError, "does not fit input x"),
        ("profile", {"shape": {"q": (3, 5)}}, api.DldError, "q"),
        ("profile", {"inputs": {"q": [1]}}, api.DldError, "'q', which is no input .* are 'x'"),
        ("profile", {"inputs": {"x": object()}}, api.DldError, "is no array"),
        ("profile", {"inputs": {"x": np.zeros((2, 9), np.float32)}}, api.DldError, "x"),
        ("profile", {"output": 3}, api.DldError, "output is 3, which is not a path"),
        ("convert_fp16", {}, TypeError, "missing a required .*'output'"),
        ("convert_opset", {"output": "taken.onnx", "to": 18}, api.DldError, "force=True"),
    ],
)
def test_errors_name_arguments(
    kind: str, settings: dict[str, object], error: type[Exception], message: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, MODEL)
    (tmp_path / "taken.onnx").write_text("mine")
    with pytest.raises(error, match=message) as caught:
        getattr(api, kind)(path, **settings)
    assert "--" not in str(caught.value)
    assert (tmp_path / "taken.onnx").read_text() == "mine"


@pytest.mark.parametrize(
    ("kind", "settings", "made"),
    [
        ("profile_tensorrt", {"typing": "none"}, {"typing": "default"}),
        ("profile_tensorrt", {"typing": None}, {"typing": "default"}),
        ("profile_tensorrt", {"percentile": [50, 99]}, {"percentile": "50,99"}),
        ("profile_tensorrt", {"percentile": np.array([5.5, 9])}, {"percentile": "5.5,9.0"}),
        ("profile_tensorrt", {"percentile": 90}, {"percentile": "90"}),
        ("profile_tensorrt", {"compute_capability": 8.6}, {"compute_capability": ("8.6",)}),
        ("profile_tensorrt", {"duration": 3, "fp16": True}, {"duration": 3.0, "fp16": True}),
        ("profile_tensorrt", {"iterations": np.int64(3)}, {"iterations": 3}),
        ("profile_tensorrt", {"inputs": "data"}, {"inputs": Path("data")}),
        ("profile_tensorrt", {"plugins": "a.so"}, {"plugins": ("a.so",)}),
        ("profile_tensorrt", {"shape": {"x": np.array([1, 3])}}, {"shape": ("x:1x3",)}),
        ("profile_tensorrt", {"shape": {"x": "2x3"}}, {"shape": ("x:2x3",)}),
        ("profile_tensorrt", {"memory_pools": {"dla": 1}}, {"memory_pools": ("dla:1",)}),
        ("accuracy", {"provider_option": {"a": 1}}, {"provider_option": ("a=1",)}),
        ("sweep", {"dim": {"N": [1, 2]}}, {"dim": ("N=1,2",)}),
        ("reduce", {"fail_codes": [1, 2]}, {"fail_codes": ("1", "2")}),
        ("profile_tensorrt", {"typing": 3}, "typing is 3, which is not text"),
        ("profile_tensorrt", {"typing": [3]}, "typing is [3], which is not text"),
        ("profile_tensorrt", {"percentile": True}, "percentile is True, which is not text"),
        ("profile_tensorrt", {"percentile": {1: 2}}, "percentile is {1: 2}, which is not text"),
        ("profile_tensorrt", {"fp16": 1}, "fp16 is 1, which is not True or False"),
        ("profile_tensorrt", {"duration": "1"}, "duration is '1', which is not a number"),
        ("reduce", {"fail_codes": [True]}, "fail_codes is True, which is not text"),
    ],
)
def test_values_of_python_as_a_request_has_them(
    kind: str, settings: dict[str, Any], made: dict[str, Any] | str
) -> None:
    request = registry.load(kind).request
    with ExitStack() as stack:
        if isinstance(made, str):
            with pytest.raises(api.DldError, match=re.escape(made)):
                settings_from(request, settings, stack)
            return
        got = settings_from(request, settings, stack)
        assert {name: (type(value), value) for name, value in got.items()} == {
            name: (type(value), value) for name, value in made.items()
        }


def test_settings_that_do_not_go_together_make_no_request(network: Path) -> None:
    settings = {"model": network, "inputs": "data", "shape": {"x": (1, 3)}}
    with (
        pytest.raises(api.DldError, match="--inputs"),
        request_of(registry.load("profile_onnxruntime").request, settings),
    ):
        pass


def test_what_a_job_says_is_told_once_and_in_words_of_python(
    network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Told(SimpleNamespace):
        def __enter__(self) -> Told:
            return self

        def __exit__(self, *_: object) -> None: ...

        def result(self, tell: Callable[[Event], None]) -> dict[str, str]:
            for event in (
                Progress(0), Progress(1, stage="loading"), Progress(2, stage="loading"),
                Log("--fp16 is on"), Metric("ms", 1.0, "ms"), Progress(3, stage="loading"),
            ):  # fmt: skip
                tell(event)
            return {}

    local = SimpleNamespace(start=lambda *_: Told())
    monkeypatch.setattr(targets, "get", lambda name: local)
    monkeypatch.setattr(registry, "decode_result", lambda *_: "done")
    said: list[str] = []
    output = network.with_name("half.onnx")
    result: Any = api.convert_fp16(network, output=output, progress=said.append)
    assert result == "done"
    assert said == ["loading", "--fp16 is on", "loading"]


class Kind(Enum):
    FAST = "fast"


@dataclass
class Size:
    bytes: int
    file: Path


@dataclass
class Row:
    name: str
    size: Size
    parts: list[Size]
    kinds: dict[str, Kind]

    @property
    def mib(self) -> float:
        return self.size.bytes / 2**20

    @property
    def nothing(self) -> None:
        return None

    @property
    def listed(self) -> list[str]:
        return [self.name]

    @property
    def _own(self) -> int:
        return 1


def test_rows_of_results_are_flat() -> None:
    size = Size(2**20, Path("a"))
    assert api.records([Row("x", size, [size], {"k": Kind.FAST})]) == [
        {
            "name": "x", "size.bytes": 2**20, "size.file": "a", "kinds": {"k": "fast"},
            "parts": [{"bytes": 2**20, "file": "a"}], "mib": 1.0, "nothing": None,
        }
    ]  # fmt: skip
    for row in ("x", Row):
        with pytest.raises(TypeError, match="is not a row of a result"):
            api.records([row])


@pytest.mark.parametrize("name", sorted(commands.activities()))
def test_every_option_of_a_message_becomes_an_argument(name: str) -> None:
    settings = settings_of(registry.load(commands.activities()[name]).request)
    for setting in settings:
        for flag in setting.param.spellings:
            text = python_words(f"Add {flag} here, or {flag}", settings)
            assert flag not in text.replace(setting.name, ""), text
            assert setting.name in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("`dld build m.onnx --fp16` does", "`dld build m.onnx --fp16` does"),
        ("--device GPU too, and --warp", "device=… too, and --warp"),
        ("an unknown --warp speed, or --no-warp 3", "an unknown --warp speed, or --no-warp 3"),
        ("--force, or --no-fp16 then", "force=True, or fp16=False then"),
        ("--noTF32 is off, --strongly-typed on", "tf32=False is off, typing='strong' on"),
        ("--typing=strong or --typing none", "typing='strong' or typing none"),
    ],
)
def test_a_message_in_the_words_of_python(text: str, words: str) -> None:
    settings = settings_of(registry.load("build_tensorrt").request)
    assert python_words(text, settings) == words


@pytest.mark.broad
def test_a_document_is_measured_as_it_is(network: Path) -> None:
    with api.open_model(network) as model:
        model.edit.set_operator(nodes=["relu"], op_type="Neg")
        assert model.dirty
        report = api.profile(model, iterations=3, layer_passes=1, optimization_level="disabled")
        types = {layer.type for layer in report.layers}
        report.close()
        assert "Neg" in types
        assert "Relu" not in types
        x = np.array([[1, -1, 2]], np.float32)
        assert not api.accuracy(model, against=network, inputs={"x": x}).is_good
        assert "proto" not in repr(model.undo())
        assert api.accuracy(model, against=network, inputs={"x": x}).is_good


def test_arrays_are_the_inputs_of_the_run(network: Path) -> None:
    arrays = {"x": np.arange(3, dtype=np.float32).reshape(1, 3)}
    request = registry.load("profile_onnxruntime").request
    with request_of(request, {"model": network, "inputs": arrays}) as made:
        (file,) = made.inputs.iterdir()
        tensor = onnx.TensorProto.FromString(file.read_bytes())
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), arrays["x"])
        assert (file.name, tensor.name) == ("input_0.pb", "x")
    assert not made.inputs.exists()


def test_a_document_is_its_own_file_until_it_is_edited(network: Path) -> None:
    with api.open_model(network) as model:
        with file_of(model) as path:
            assert path == network
        model.edit.rename_node(node="relu", name="new")
        with file_of(model) as path:
            assert path != network
            assert onnx.load(path).graph.node[1].name == "new"


def test_a_closed_document_says_so(network: Path) -> None:
    model = api.open_model(network)
    model.close()
    model.close()
    assert "closed" in repr(model)
    with pytest.raises(api.DldError, match="the model is closed"):
        model.edit.rename_node(node="relu", name="act")
    with pytest.raises((api.DldError, ValueError), match="closed"):
        model.save(network.with_name("other.onnx"))
    assert not network.with_name("other.onnx").exists()


def test_nodes_as_objects_know_their_graph(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (bool c, float[4] x) => (float[4] y) {
      [choice] y = If(c) <
        then_branch = a () => (float[4] p) { [one] p = Relu(x) },
        else_branch = b () => (float[4] q) { [two] q = Neg(x) }
      >
    }"""
    with api.open_model(write(tmp_path, text)) as model:
        (inner,) = model.find("Relu")
        model.edit.rename_node(node=inner, name="renamed")
        assert [node.name for node in model.find("Relu")] == ["renamed"]
        model.edit.delete_many(nodes=model.find("Neg"))
        assert model.find("Neg") == []
        model.edit.set_metadata(key="owner", value="me")
        assert {entry.key for entry in model.model.metadata_props} == {"owner"}


def test_values_and_counts_for_notebooks(network: Path) -> None:
    with api.open_model(network) as model:
        assert model.array("w").tolist() == [1, -2, 3]
        with pytest.raises(api.DldError, match="no initializer 'q'"):
            model.array("q")
        html = model._repr_html_()
        assert "<td>x</td>" in html
        assert html.count("<tr>") == 3
    with api.new_model(opset=17, inputs={"a<b": "float32[1, 3]"}) as model:
        assert "a&lt;b" in model._repr_html_()
        assert list(model.main.inputs) == ["a<b"]


def test_edits_learn_the_types_that_they_need(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 18]> g (float[2,3] x) => (float[2] y)
        <int64[1] axes = {1}> {
        [pair] s = SequenceConstruct(x, x)
        [at] i = Constant <value = int64 {1}> ()
        [take] t = SequenceAt(s, i)
        [sum] y = ReduceMax <keepdims = 0> (t, axes) }"""
    with api.open_model(write(tmp_path, text)) as document:
        assert document.array("i").tolist() == 1
        document.edit.cut_off(nodes=["take"], outputs={"s": "pairs"})
        assert document.save(tmp_path / "cut.onnx") == []
        assert document.undo() is not None  # saving is no edit
        assert not document.history.done
        document.edit.extract(outputs={"t": "taken"})
        document.save(tmp_path / "part.onnx")
        document.undo()
        document.edit.extract(outputs=["axes"])
        document.save(tmp_path / "weight.onnx")
    for name in ("cut", "part", "weight"):
        onnx.checker.check_model(onnx.load(tmp_path / f"{name}.onnx"), full_check=True)
    x = np.array([[1, 5, 2], [7, 3, 4]], np.float32)
    (pairs,) = session_of(onnx.load(tmp_path / "cut.onnx")).run(["pairs"], {"x": x})
    assert all(np.array_equal(one, x) for one in pairs)
    (taken,) = session_of(onnx.load(tmp_path / "part.onnx")).run(None, {"x": x})
    assert np.array_equal(taken, x)
    assert session_of(onnx.load(tmp_path / "weight.onnx")).run(None, {})[0].tolist() == [1]


def test_types_are_inferred_where_some_are_missing(
    network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for declared, inferred in (("float[n, 3] a", True), ("float[n, 3] a, float[n, 3] b", False)):
        text = NETWORK.replace("<float[3] w", f"<{declared}, float[3] w")
        write(network.parent, text, network.name)
        with api.open_model(network) as model:
            inference.infer_missing(model, network)
            assert bool(model.main.inferred) is inferred
        with api.open_model(network) as model:
            assert len(model.find("* where rank = 2")) == 3
            assert bool(model.main.inferred) is inferred
            assert len(model.find("Mul")) == 2
    with api.open_model(network) as model:
        assert inference.infer(model, network)
        monkeypatch.setattr(inference, "LIMIT_S", 0)
        told: list[str] = []
        assert inference.infer(model, network, told.append), "those of before stay"
        assert told == [f"{network}: inference was stopped after 0 s"]
        (finding,) = inference.inference_findings(model, network)
        assert not model.main.inferred, "those of before are forgotten"
    assert finding.message == "shapes are not known: inference was stopped after 0 s"


def test_numbers_in_texts_are_lists(tmp_path: Path) -> None:
    model = models.write(tmp_path, "<ir_version: 10, opset_import: [\"\": 18]> g "
                         "(float[1,3,4,4] x) => (float[1,3,4,4] y) { y = Neg(x) }")  # fmt: skip
    api.prepend(model, output=tmp_path / "out.onnx", mean=[0.5, 0.25, 0], scale=1 / 255,
                resize=(4, 4))  # fmt: skip
    image = np.arange(48, dtype=np.uint8).reshape(1, 3, 4, 4)
    (y,) = session_of(onnx.load(tmp_path / "out.onnx")).run(None, {"x": image})
    mean = np.array([0.5, 0.25, 0], np.float32).reshape(3, 1, 1)
    np.testing.assert_allclose(y, mean - image / np.float32(255), rtol=1e-5, atol=1e-6)


def test_a_finding_has_the_edit_that_repairs_it(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN.replace("float[N, 4] y)", "y)"))
    with api.open_model(path) as document:
        assert {one.rule for one in api.check(path)} == {"missing-type", "unused-initializer"}
        assert api.check(document) == document.check()
        document.infer_types()
        fixes = {one.rule: one.fix for one in document.check() if one.fix is not None}
        assert set(fixes) == {"missing-type", "unused-initializer"}
        for fix in fixes.values():
            document.apply(fix)
        assert document.check() == []


def test_a_script_that_is_no_text_is_refused(network: Path) -> None:
    script = network.with_name("edits.jsonl")
    script.write_bytes(b"\xff\xfe")
    with api.open_model(network) as model, pytest.raises(api.DldError, match="is not UTF-8"):
        model.run_script(script)


def test_operators_are_listed_by_name_and_opset() -> None:
    (conv,) = api.operators("Conv", opset=17)
    assert (conv.domain, conv.since_version, conv.category != "") == ("ai.onnx", 11, True)
    assert {one.name for one in api.operators(domain="ai.onnx.ml")} >= {"Scaler", "TreeEnsemble"}
    with pytest.raises(api.DldError, match="Convv"):
        api.operators("Convv")


def test_only_a_model_that_an_edit_changes_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soundness, "unsound", lambda *_: "wrong")
    path = write(tmp_path, MODEL)
    for name, problem in (("conv", ""), ("new", "wrong")):
        out, script = tmp_path / f"{name}.onnx", tmp_path / f"{name}.jsonl"
        with api.open_model(path) as model:
            edit = renaming.rename_node(scope=[], node="conv", name=name)
            assert soundness.write_edited(model, path, out, edit, script) == problem
        assert onnx.load(out).graph.node[0].name == name
        assert json.loads(script.read_text())["name"] == name
