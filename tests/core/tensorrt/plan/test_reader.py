"""Opening plans: what belongs together, what is wrong, and the real file sets."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.tensorrt.plan import json_text
from dld_tui.core.tensorrt.plan.export import plan_json
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.summary import GROUPINGS, summary_lines
from dld_tui.core.tensorrt.plan.tables import VIEWS, group_table, make_table

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


def test_the_file_sets_are_all_there_are(real_files: Path) -> None:
    graphs = [*(real_files / "engines").glob("trex/**/*.graph*.json")]
    assert len(graphs) == sum(map(len, TREX.values()))


def test_other_real_files_open(real_files: Path) -> None:
    engines = real_files / "engines"
    notebook = open_plan(engines / "trex/notebooks/layer_info.json")
    assert (len(notebook.layers), notebook.names_only, notebook.passes) == (86, True, 11)
    for path in engines.glob("cookbook/*.json"):
        assert open_plan(path).layers


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
