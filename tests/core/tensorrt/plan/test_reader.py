"""Opening plans: what belongs together, what is wrong, and the real file sets."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.tensorrt.plan import json_text
from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
from dld_tui.core.tensorrt.plan.export import plan_json
from dld_tui.core.tensorrt.plan.file_set import write_trex
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.summary import GROUPINGS, summary_lines, summary_of, weights_text
from dld_tui.core.tensorrt.plan.tables import VIEWS, group_table, make_table
from tests.support.plans import write_layers, write_profile


def test_a_set(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "net.graph.json", [{"Name": "a"}, {"Name": "b", "of": "Half"}])
    write_profile(tmp_path / "net.profile.json", [("a", 1.0), ("b", 3.0)], count=7)
    metadata = {"performance_summary": {"GPU Compute Time": [3, 5, 4, 4, 5]}}
    (tmp_path / "net.profile.metadata.json").write_text(json.dumps(metadata))
    plan = open_plan(path)
    assert (plan.title, plan.total_ms, plan.passes) == ("net", 4.0, 7)
    assert [layer.percent for layer in plan.layers] == [25.0, 75.0]
    assert plan.timing is not None
    assert plan.timing.compute is not None
    assert (plan.timing.compute.mean, plan.timing.source) == (4, "metadata")
    assert [(tensor.name, tensor.mode) for tensor in plan.bindings] == [
        ("in", "input"), ("out", "output")
    ]  # fmt: skip
    assert set(plan.files) == {"graph", "profile", "profile.metadata"}
    alone = open_plan(path, beside=False)
    assert (alone.total_ms, alone.timing, set(alone.files)) == (None, None, {"graph"})
    # Any file of the set opens it.
    assert open_plan(tmp_path / "net.profile.json").total_ms == 4.0


def test_files_given_by_name(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "net.graph.json", [{"Name": "a"}])
    write_profile(tmp_path / "net.profile.json", [("a", 1.0)])
    other = write_profile(tmp_path / "second", [("a", 5.0)])
    assert open_plan(path, profile=other).total_ms == 5.0
    with pytest.raises(InputError):
        open_plan(path, profile=tmp_path / "absent")
    (tmp_path / "m.json").write_text("[]")
    with pytest.raises(InputError, match="is not the metadata"):
        open_plan(path, metadata=[tmp_path / "m.json"])


def test_damage_beside_is_a_note(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "net.graph.json", [{"Name": "a"}])
    (tmp_path / "net.metadata.json").write_text("[]")
    assert any("is not the metadata" in note for note in open_plan(path).notes)


def test_of_several_profiles_the_fitting_one(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "net.graph.json", [{"Name": "a"}, {"Name": "b"}])
    write_profile(tmp_path / "net.profile.aaaaaa.json", [("a", 1.0), ("x", 1.0)])
    write_profile(tmp_path / "net.profile.bbbbbb.json", [("a", 1.0), ("b", 2.0)])
    plan = open_plan(path)
    assert plan.total_ms == 3.0
    assert plan.notes == (
        "2 profile files lie beside it: net.profile.bbbbbb.json was taken; --profile takes another",
    )


def test_names_only(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    path.write_text('{"Layers": ["conv1","relu1"],"Bindings": ["x","y"]}')
    profile = write_profile(tmp_path / "p.json", [("conv1", 1.0), ("relu1", 3.0)])
    plan = open_plan(path, profile=profile)
    assert plan.names_only
    assert "--profilingVerbosity=detailed" in plan.notes[0]
    assert [layer.time_ms for layer in plan.layers] == [1.0, 3.0]
    assert plan.layers[0].footprint is None
    assert not summary_of(plan).activations_complete


def test_an_engine_needs_its_layers_beside_it(tmp_path: Path) -> None:
    engine = tmp_path / "net.engine"
    engine.write_bytes(struct.pack("<4sI16x4B8x", b"ftrt", 0, 10, 3, 0, 26) + bytes(64))
    with pytest.raises(InputError) as caught:
        open_plan(engine)
    assert "engine written by TensorRT 10.3.0.26" in str(caught.value)
    write_layers(tmp_path / "net.trt.json", [{"Name": "a"}])
    assert "the engine was written by TensorRT 10.3.0.26" in open_plan(engine).notes


def test_optimization_profiles(tmp_path: Path) -> None:
    path = write_layers(
        tmp_path / "net.json", [{"Name": "a"}, {"Name": "b"}, {"Name": "a [profile 1]"}]
    )
    plan = open_plan(path)
    assert ([layer.name for layer in plan.layers], plan.profile_count) == (["a", "b"], 2)
    assert [layer.name for layer in open_plan(path, profile_index=1).layers] == ["a [profile 1]"]
    timed = write_profile(tmp_path / "p.json", [("a [profile 1]", 1.0)])
    assert open_plan(path, profile=timed).profile_index == 1
    with pytest.raises(InputError, match="no optimization profile 5: they are 0 to 1"):
        open_plan(path, profile_index=5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"hello": 1}', "No Layers list: not a TensorRT engine graph"),
        ("[" * 99_999, "JSON is nested too deep"),
        ("", "File is empty (0 bytes)"),
        ("\x00\x01binary", "is neither layer information nor a log of trtexec"),
        ('[{"cat": "Node", "ph": "X"}]', "is an ONNX Runtime profile, not layer information"),
        ('[{"count": 3}]', "the layer profile has no layer"),
    ],
)
def test_what_is_no_plan(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "f.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        open_plan(path)
    assert caught.value.message == message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "Name",
                    "LayerType",
                    "Inputs",
                    "Outputs",
                    "Dimensions",
                    "Format/Datatype",
                    "Kernel",
                    "Weights",
                    "Type",
                    "Count",
                    "ParameterType",
                    "StreamId",
                    "Groups",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


@pytest.mark.broad
@given(layers=st.lists(JSON, min_size=1, max_size=4), bindings=JSON)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_hostile_json_is_a_plan_or_one_error(
    tmp_path: Path, layers: list[object], bindings: object
) -> None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps({"Layers": layers, "Bindings": bindings}))
    try:
        plan = open_plan(path)
    except CorruptFileError:
        return
    plan_json(plan)
    list(summary_lines(plan))
    for view in VIEWS:
        make_table(plan, view)
    for by in GROUPINGS:
        group_table(plan, by)


TREX = {
    "examples/pytorch/resnet/A100": ("qat", "fp16", "fp32", "qat-residual", "qat-residual-qgap"),
    "examples/tensorflow/resnet/RTX-3090": ("fp16", "fp32", "qat"),
    "tests/inputs": ("mobilenet.qat.onnx.engine.graph.6b63a31", "mobilenet.qat*.afa7a12",
                     "mobilenet_v2*.a7707e1", "mobilenet_v2*.f6422c3"),
}  # fmt: skip
"""File sets of TREx. Every run takes the first of each folder, and one whose timings are alike."""


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        pytest.param(
            folder, name,
            marks=[pytest.mark.exhaustive] if at and "a7707e1" not in name else [],
        )
        for folder, names in TREX.items() for at, name in enumerate(names)
    ],
)  # fmt: skip
def test_every_real_file_set_opens_and_is_written_as_it_was(
    real_files: Path, tmp_path: Path, folder: str, name: str
) -> None:
    where = real_files / "engines" / "trex" / folder
    pattern = f"{name}.json" if folder == "tests/inputs" else f"{name}/*.graph.json"
    (path,) = where.glob(pattern)
    plan = open_plan(path)
    assert plan.layers
    assert not plan.names_only
    assert plan.total_ms
    assert plan.passes
    assert all(layer.time_ms is not None for layer in plan.layers)
    assert summary_of(plan).activations_complete
    assert {tensor.mode for tensor in plan.bindings} == {"input", "output"}
    if "v2_residuals" in path.name:  # two timing files that nothing tells apart
        assert plan.timing is None
        assert any("nothing tells which belong together" in note for note in plan.notes)
        return
    assert plan.timing is not None
    assert plan.timing.source == "timing file"
    if "A100" in path.parts:
        _agree_with_their_own_metadata(plan, path.parent)
        write_trex(plan, tmp_path / "net", overwrite=True)
        again = open_plan(tmp_path / "net.graph.json")
        assert (again.layers, again.timing) == (plan.layers, plan.timing)


def test_the_file_sets_are_all_there_are(real_files: Path) -> None:
    graphs = [*(real_files / "engines").glob("trex/**/*.graph*.json")]
    assert len(graphs) == sum(map(len, TREX.values()))


def _agree_with_their_own_metadata(plan: EnginePlan, folder: Path) -> None:
    summary = json.loads(next(folder.glob("*.profile.metadata.json")).read_text())
    told = summary["performance_summary"]["GPU Compute Time"]
    assert plan.timing is not None
    assert plan.timing.compute is not None
    found = plan.timing.compute
    # Six significant digits are written, of more inferences than were averaged by one or two.
    assert (found.min, found.max) == tuple(told[:2])
    assert found.mean == pytest.approx(told[2], rel=3e-5)
    assert found.median == pytest.approx(told[3], rel=3e-5)
    rows = json.loads(next(folder.glob("*.engine.profile.json")).read_text())[1:]
    assert plan.total_ms == pytest.approx(sum(row["averageMs"] for row in rows), rel=1e-6)
    by_file = {row["name"]: row["percentage"] for row in rows}
    for layer in plan.all_layers:
        assert layer.percent == pytest.approx(by_file[layer.name], abs=1e-3)


def test_other_real_files_open(real_files: Path) -> None:
    engines = real_files / "engines"
    notebook = open_plan(engines / "trex/notebooks/layer_info.json")
    assert (len(notebook.layers), notebook.names_only, notebook.passes) == (86, True, 11)
    for path in engines.glob("cookbook/*.json"):
        assert open_plan(path).layers


def test_what_is_about_an_engine_without_its_layers(tmp_path: Path) -> None:
    path = tmp_path / "net.build.json"
    path.write_text('{"format": "dld-tui engine build"}')
    with pytest.raises(InputError) as caught:
        open_plan(path)
    assert "tells how an engine was built" in caught.value.message
    assert caught.value.where == str(path)
    write_layers(tmp_path / "net.trt.json", [{"Name": "a"}])
    log = tmp_path / "net.build.log"
    log.write_text("[I] Total Activation Memory: 1048576 bytes\n")
    for one in (path, log):
        assert [layer.name for layer in open_plan(one).layers] == ["a"]


def test_of_two_logs_the_first_that_can_be_read_counts_and_both_are_doubted(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "net.graph.json", [{"Name": "a"}])
    assert open_plan(path).log is None
    run, at = (
        "&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec",
        "[07/07/2026-02:11:43] [I]",
    )
    doubt = "the time of the build is not a valid number in the log: left out"
    profile, build = tmp_path / "net.profile.log", tmp_path / "net.build.log"
    build.write_text(f"{run} --fp16\n{at} Engine built in x sec\n")
    times = f"{at} === Profile (4 iterations ) ===\n{at} Time(ms) Avg.(ms) Time(%) Layer\n"
    times += f"{at} 4.0 1.0 100.0 a\n"
    for text, option, first in (
        ("", "--fp16", build),
        (f"{run} --int8\n{times}", "--int8", profile),
    ):
        profile.write_text(text)
        plan = open_plan(path)
        assert plan.log is not None
        assert (plan.log.command, plan.files["log"]) == (f"trtexec {option}", str(first))
        assert plan.notes.count(doubt) == 1
        assert any("empty" in note for note in plan.notes) == (not text)
    plan = open_plan(profile)  # it is not read twice, and the other one is read
    assert plan.notes.count("the table of layer times has no total: it was cut") == 1
    assert ([layer.name for layer in plan.layers], plan.notes.count(doubt)) == (["a"], 1)


def test_mere_names_have_types_and_the_terminals_that_are_certain(tmp_path: Path) -> None:
    path = tmp_path / "names.graph.json"
    path.write_text(
        '{"Layers": ["Conv-1 + ReLU-2", "MaxPool-3", "q"], "Bindings": ["x", "mid", "y"]}'
    )
    plan = open_plan(path)
    assert [layer.kind for layer in plan.layers] == ["Conv + Relu", "MaxPool", ""]
    assert [tensor.mode for tensor in plan.bindings] == ["input", "", "output"]


def test_layers_of_several_engines_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "two.graph.json"
    path.write_text('{"Layers": ["a", "b"]}\n{"Layers": ["c"], "Bindings": ["x", "y"]}\n')
    plan = open_plan(path)
    assert [layer.name for layer in plan.layers] == ["c"]
    assert "the file has the layers of 2 engines: the last is shown" in plan.notes


@pytest.mark.parametrize("kind", ["{}", "1"])
def test_more_layers_than_an_engine_has_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "many.graph.json"
    path.write_text('{"Layers": [' + ",".join([kind] * 100_001) + "]}")
    with pytest.raises(InputError, match="no engine has more than 100,000"):
        open_plan(path)


@pytest.mark.parametrize(("count", "is_refused"), [(1_000, False), (100_000, True)])
def test_an_archive_that_unpacks_to_too_many_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, is_refused: bool
) -> None:
    monkeypatch.setattr(json_text, "_MOST_VALUES", 50_000)
    path = tmp_path / "bomb.tea"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        layers = '{"Name":"a"},' * (count - 1)
        archive.writestr("x.engine.graph.json", f'{{"Layers":[{layers}{{"Name":"b"}}]}}')
    if not is_refused:
        assert len(open_plan(path).layers) == count
        return
    with pytest.raises(InputError, match="more than 50,000 values"):
        open_plan(path)


def test_figures_that_cannot_be_are_dashes_and_one_line_each(tmp_path: Path) -> None:
    path = write_layers(
        tmp_path / "net.graph.json",
        [
            {"Name": "a", "Weights": {"Type": "Half", "Count": -5}},
            {"Name": "b", "Bias": {"Type": "Mystery", "Count": 4}},
            {"Name": "c", "Weights": {"Type": "Half", "Count": "many"}},
            {"Name": "d", "Inputs": [{"Name": "in", "Dimensions": [1 << 30, 1 << 30, 4, 4]}]},
            {"Name": "e", "Weights": {"Type": "Half", "Count": 3}},
        ],
    )
    (tmp_path / "net.profile.json").write_text(
        '[{"count": 10}, {"name": "a", "timeMs": 10, "averageMs": 1},'
        ' {"name": "b", "timeMs": 90, "averageMs": 1}, {"name": "c", "averageMs": -1},'
        ' {"name": "d", "averageMs": NaN}, {"name": "e", "averageMs": "1"}]'
    )
    plan = open_plan(path)
    assert [layer.weights_from for layer in plan.layers] == ["unknown"] * 4 + ["file"]
    assert [layer.footprint is None for layer in plan.layers] == [True] * 4 + [False]
    assert [layer.time_ms for layer in plan.layers] == [1, None, None, None, None]
    assert plan.total_ms == 1
    assert list(plan.notes) == [
        "the weights of 3 layers are not valid numbers: shown as unknown",
        "tensors of 1 layer are larger than any memory: their sizes are shown as unknown",
        "3 rows of the profile without a valid time: shown as unknown",
        "1 row of the profile whose mean and total contradict each other: shown as unknown",
    ]
    assert "at least" in weights_text(summary_of(plan))


def test_a_summary_whose_figures_contradict_each_other_is_left_out(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "net.graph.json", [{"Name": "a"}])
    for times in ([1, 2, 9, 1.5, 2], [2, 1, 1.5, 1.5, 2], [1, -2, 1, 1, 1]):
        (tmp_path / "net.profile.metadata.json").write_text(
            json.dumps({"performance_summary": {"GPU Compute Time": times}})
        )
        found = open_plan(path)
        assert found.timing is None
        assert [note for note in found.notes if "GPU Compute Time" in note] == [
            "no valid numbers in the performance summary: GPU Compute Time"
        ]
