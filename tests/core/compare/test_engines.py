"""What engines are compared by: tactics, precisions, inserted layers, speedup."""

from __future__ import annotations

from typing import Any

import pytest

from dld_tui.core.compare.comparison import GROUPINGS, MISMATCH, Comparison
from dld_tui.core.compare.engine_subject import plan_subject
from dld_tui.core.compare.export import comparison_csv, comparison_page
from dld_tui.core.compare.records import Subject
from dld_tui.core.tensorrt.plan.mapping import map_plan
from tests.support.compared import subject, timed
from tests.support.plans import layer, plan

COPY = "Reformatting CopyNode for Input Tensor 0 to a"


def engine(title: str, *layers: dict[str, Any]) -> Subject:
    """Return an engine; a layer needs a name."""
    made = plan([layer(index, **fields) for index, fields in enumerate(layers)], title=title)
    return plan_subject(made, map_plan(made))


def conv(name: str, of: str, tactic: str, time_ms: float | None = None) -> dict[str, Any]:
    return {"name": name, "of": of, "tactic": tactic, "time_ms": time_ms}


@pytest.fixture
def engines() -> Comparison:
    """Return a slow engine, one in fp16, and one in fp16 with a copy and other fusions."""
    return Comparison([
        engine("slow", conv("a", "fp32", "scudnn", 4.0), conv("b", "fp32", "scudnn", 2.0)),
        engine("fast", conv("a", "fp16", "hmma_1", 1.0), conv("b", "fp32", "scudnn", 2.0)),
        engine("fused", conv("a + b", "fp16", "hmma_2", 1.0),
               {"name": COPY, "type": "Reformat", "of": "fp32", "to": "fp16", "time_ms": 0.5}),
    ])  # fmt: skip


def test_mismatches(engines: Comparison) -> None:
    (found,) = engines.mismatches
    assert found.node == "a + b"
    assert found.precision == ("fp32", "fp16 + fp32", "fp16")
    assert found.tactic == ("scudnn", "scudnn", "hmma_2")
    assert found.what == "precision and tactic"
    assert found.row.cells[2].delta_ms == -5.0


def test_only_what_differs_is_a_mismatch() -> None:
    pair = Comparison([
        engine("x", conv("a", "fp16", "t1", 1.0), conv("b", "fp16", "t1"), conv("c", "int8", "t")),
        engine("y", conv("a", "fp16", "t2", 2.0), conv("b", "fp16", "t1"), conv("c", "fp16", "t")),
    ])  # fmt: skip
    assert {found.node: found.what for found in pair.mismatches} == {
        "a": "tactic",
        "c": "precision",
    }
    assert pair.rows(MISMATCH) == [found.row for found in pair.mismatches]


def test_an_unknown_precision_and_another_name_of_a_type_are_no_mismatch() -> None:
    half = engine("x", conv("a", "fp16", "t", 1.0))
    assert not Comparison([half, engine("y", conv("a", "", "", 1.0))]).mismatches
    report = subject(timed("a", 1.0, ["a"], precision="float16"))
    assert not Comparison([half, report]).mismatches


def test_speed_up(engines: Comparison) -> None:
    assert [engines.speed_up(index) for index in range(3)] == pytest.approx([1.0, 2.0, 4.0])
    assert engines.speed_up_row is engines.layer_sum
    assert "C has a speedup of 4.00× (all layers; not certain" in "\n".join(engines.explanation())
    assert engines.speed_up_bounds(2) is None


def test_inserted_layers(engines: Comparison) -> None:
    figures = engines.precisions
    assert [(one.inserted, one.inserted_ms) for one in figures] == [(0, 0), (0, 0), (1, 0.5)]
    text = "\n".join(engines.explanation())
    assert "Inserted to change a format or type: 0 layers, 0.000 ms in A; 1 layer, 0.500 ms" in text


def test_without_a_profile() -> None:
    pair = Comparison([
        engine("x", conv("a", "fp32", "t1"), conv("b", "fp32", "t1")),
        engine("y", conv("a", "fp16", "t2"), {"name": COPY, "type": "Reformat"}),
    ])  # fmt: skip
    assert (pair.speed_up(1), pair.speed_up_row) == (None, None)
    assert [row.key for row in pair.rows(MISMATCH)] == ["a"]
    states = {row.key: row.state(1, 0) for row in pair.rows()}
    assert states == {"a": "", "b": "removed", COPY: "added"}
    assert all(cell.delta_ms is None for row in pair.rows() for cell in row.cells)
    by_type = {row.key: [len(cell.layers) for cell in row.cells] for row in pair.rows("type")}
    assert by_type == {"Convolution": [2, 1], "Reformat": [0, 1]}
    text = "\n".join(pair.explanation())
    assert " ms" not in text
    assert "1 row runs in fp16 in B, in fp32 in A." in text
    assert sum("there are no times" in line for line in pair.doubts) == 2


def test_a_plan_without_a_profile_beside_one_with() -> None:
    pair = Comparison([
        engine("x", conv("a", "fp32", "t1", 2.0), conv("b", "fp32", "t1", 1.0)),
        engine("y", conv("a", "fp16", "t2")),
    ])  # fmt: skip
    rows = {row.key: row for row in pair.rows()}
    assert (rows["a"].cells[0].time_ms, rows["a"].cells[1].delta_ms) == (2.0, None)
    assert rows["a"].state(1, 0) == ""
    assert rows["b"].state(1, 0) == "removed"
    assert pair.explanation()


@pytest.mark.parametrize("by", GROUPINGS)
def test_every_view_works_with_and_without_times(engines: Comparison, by: str) -> None:
    bare = Comparison([engine("x", conv("a", "fp32", "t")), engine("y", conv("a", "fp16", "u"))])
    for comparison in (engines, bare):
        rows = comparison.rows(by)
        assert rows
        assert comparison_csv(comparison, rows)


def test_rows_of_two_pairs_are_joined_by_shape() -> None:
    engines = [
        engine(title, *(
            conv(f"{name}_{number}", of, "t", 1.0)
            | {"dims": (1, 16 * (1 + number // 2), 8, 8)} for number in range(4)
        ))
        for title, name, of in (
            ("a", "Conv", "fp32"), ("b", "Conv", "fp16"), ("c", "Q", "int8"), ("d", "Q", "int8"),
        )
    ]  # fmt: skip
    rows = Comparison(engines).rows()
    assert len(rows) == 4
    assert all(cell.layers for row in rows for cell in row.cells)
    for row in rows:  # the order within a shape is kept
        assert len({cell.layers for cell in row.cells}) == 1


def test_numbered_names_of_other_models_are_no_match() -> None:
    one = plan([layer(0, "w + Conv_3", dims=(1, 16, 8, 8)), layer(1, "Conv_4", dims=(1, 8, 4, 4))],
               model_path="one.onnx")  # fmt: skip
    two = plan([layer(0, "Conv_3 + Relu_4", dims=(1, 8, 4, 4))], model_path="two.onnx")
    pair = Comparison([plan_subject(made, map_plan(made)) for made in (one, two)])
    (found,) = [row for row in pair.rows() if all(cell.layers for cell in row.cells)]
    assert (found.key, found.match) == ("Conv_4", "order")


@pytest.mark.parametrize("models", [("one.onnx", "two.onnx"), ("", "")])
def test_nodes_whose_numbers_moved_are_joined_by_the_layers(models: tuple[str, str]) -> None:
    """QuantizeLinear moves the numbers of what comes behind it: here Conv_2 is another Conv."""
    names = (
        ("Conv_0 + Relu_1", "Conv_2 + Add_3 + Relu_4"),
        (
            "w.weight + QuantizeLinear_1 + Conv_2 + Relu_3",
            "v.weight + QuantizeLinear_5 + Conv_7 + Add_9",
        ),
    )
    pair = Comparison([
        plan_subject(made, map_plan(made))
        for title, (first, second), model in zip(("a", "b"), names, models, strict=True)
        for made in (
            plan([layer(0, first, dims=(1, 16, 8, 8), time_ms=3.0),
                  layer(1, second, dims=(1, 8, 4, 4), time_ms=2.0)],
                 title=title, model_path=model),
        )
    ])  # fmt: skip
    assert [row.match for row in pair.rows()] == ["order", "order"]
    joined = {row.key: tuple(bool(cell.layers) for cell in row.cells) for row in pair.rows("node")}
    both = {key for key, there in joined.items() if all(there)}
    assert both == {"Conv_0", "Relu_1", "Conv_2", "Add_3"}
    assert joined.keys() - both == {"Relu_4", "QuantizeLinear_1", "QuantizeLinear_5"}
    for index, total in enumerate((5.0, 5.0)):
        times = [row.cells[index].time_ms or 0.0 for row in pair.rows("node")]
        assert sum(times) == pytest.approx(total)


def test_an_unknown_device_is_no_other_device() -> None:
    known = plan([layer(0, "a")], device={"Device": "A100"})
    pair = [plan_subject(made, map_plan(made)) for made in (known, plan([layer(0, "a")]))]
    assert not any("Different devices" in line for line in Comparison(pair).unfair)


def test_page(engines: Comparison) -> None:
    text = comparison_page(engines)
    assert all(part in text for part in ("Other precisions and tactics", "hmma_2", "4.00×"))
    reports = Comparison([subject(timed("a", 1.0)), subject(timed("a", 2.0))])
    assert not reports.of_engines
    assert "Other precisions" not in comparison_page(reports)
    assert not any("Speedup" in line or "Inserted" in line for line in reports.explanation())


def test_instances_of_a_function_are_rows_of_their_own() -> None:
    def with_calls(title: str) -> Subject:
        texts = ["[ONNX Layer: act | one (F)]", "[ONNX Layer: act | two (F)]"]
        made = plan([
            layer(at, f"__myl_{at}", metadata=text, time_ms=1.0) for at, text in enumerate(texts)
        ], title=title)  # fmt: skip
        return plan_subject(made, map_plan(made))

    comparison = Comparison([with_calls("x"), with_calls("y")])
    assert len(comparison.rows()) == 2
    assert {row.key for row in comparison.rows("node")} == {"one › act", "two › act"}
