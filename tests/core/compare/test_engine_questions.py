"""What two engines are compared for: which precision pays, where, and whether it was the engine."""

from __future__ import annotations

from dataclasses import replace

from dld_tui.core.compare.comparison import Comparison
from dld_tui.core.compare.conditions import batch_sizes
from dld_tui.core.compare.engine_subject import plan_subject
from dld_tui.core.compare.export import comparison_page
from dld_tui.core.compare.matching import match_layers
from dld_tui.core.compare.records import KIND, MEANS, PER_ITEM, Subject
from tests.support.plans import layer, plan

IMAGE, HALF, QUARTER = (4, 3, 64, 64), (4, 8, 32, 32), (4, 8, 16, 16)


def engine(*layers: tuple[str, str, str, float], batch: int = 4, title: str = "net") -> Subject:
    """Return an engine of (name, type, precision, milliseconds) a layer."""
    made = [
        layer(i, name, type=kind, subtype="", of=of, dims=(batch, 16, 8, 8), time_ms=ms, percent=1)
        for i, (name, kind, of, ms) in enumerate(layers)
    ]
    return plan_subject(plan(made, title=title), {})


def shaped(title: str, *layers: tuple[str, str, tuple[int, ...], tuple[int, ...]]) -> Subject:
    made = []
    for index, (name, kind, read, written) in enumerate(layers):
        one = layer(index, name, type=kind, subtype=kind, of="fp16", dims=read, time_ms=1.0)
        made.append(replace(one, outputs=(replace(one.outputs[0], dims=written),)))
    return plan_subject(plan(made, title=title), {})


def matched(*subjects: Subject) -> set[tuple[tuple[str, ...], ...]]:
    return {
        tuple(
            tuple(one.layers[index].name for index in members)
            for one, members in zip(subjects, match.members, strict=True)
        )
        for match in match_layers(subjects, same_model=False)
    }


def test_a_convolution_and_its_pooling_pair_with_both_in_one_layer() -> None:
    apart = shaped(
        "a",
        ("Conv_0 + Relu_1", "Convolution", IMAGE, HALF),
        ("MaxPool_2", "Pooling", HALF, QUARTER),
    )
    fused = shaped("b", ("conv1 + MaxPool_9", "ConvActPool", IMAGE, QUARTER))
    assert matched(apart, fused) == {(("Conv_0 + Relu_1", "MaxPool_2"), ("conv1 + MaxPool_9",))}
    assert matched(fused, apart) == {(("conv1 + MaxPool_9",), ("Conv_0 + Relu_1", "MaxPool_2"))}
    other = shaped("b", ("conv1 + MaxPool_9", "ConvActPool", IMAGE, HALF))
    assert len(matched(apart, other)) == 3


def test_times_are_for_one_item_where_only_the_batch_differs() -> None:
    def of(batch: int, ms: float) -> Subject:
        found = engine(("conv", "Convolution", "fp16", ms), batch=batch)
        return replace(found, settings={"input_shapes": {f"x{batch}": [batch, 3, 8, 8]}},
                       latencies_ms=[ms] * 10)  # fmt: skip

    comparison = Comparison([of(1, 2.0), of(8, 8.0)])
    [row] = comparison.rows("layer")
    assert [cell.time_ms for cell in row.cells] == [2.0, 1.0]
    assert comparison.end_to_end.cells[1].time_ms == 1.0
    assert comparison.warnings[0] == (
        "Different batch sizes (1 / 8): all times are for one item of the batch."
    )
    assert sum("batch" in line for line in comparison.warnings) == 1
    assert comparison.subjects[1].properties[PER_ITEM] == 8
    assert batch_sizes([{"x": [1, 3]}, {"y": [8, 3]}]) == [1, 8]
    assert batch_sizes([{"x": [1, 3]}, {"x": [8, 4]}]) is None
    assert batch_sizes([{"x": [1, 3]}, None]) is None


def test_the_time_of_an_engines_layer_is_its_mean() -> None:
    one = layer(0, "conv", type="Convolution", of="fp16", time_ms=5.0, median_ms=2.0)
    subject = plan_subject(plan([one]), {})
    assert subject.properties[KIND] == MEANS
    assert Comparison([subject, subject]).rows("layer")[0].cells[1].time_ms == 5.0


def test_which_precision_pays_is_said_first() -> None:
    half = engine(("c1", "Convolution", "fp16", 2.0), ("p", "Pooling", "fp16", 1.0))
    eighth = engine(
        ("c1", "Convolution", "int8", 1.0),
        ("p", "Pooling", "fp16", 1.0),
        ("q", "Reformat", "fp16", 0.5),
    )
    comparison = Comparison([half, eighth])
    assert comparison.explanation()[:4] == [
        "int8 against fp16: B has a speedup of 1.20× (all layers; not certain: nothing tells noise"
        " from change) over A, B mainly in int8, A in fp16.",
        "Layers by precision: A 2 fp16; B 2 fp16, 1 int8.",
        "The layers of B against those of A: convolutions and products -1.000 ms, not certain,"
        " conversions and Q/DQ +0.500 ms, not certain, all else +0.000 ms, not certain.",
        "Converting and quantizing takes back 50.0 % of what int8 gains in B, not certain.",
    ]
    assert comparison.precisions[1].counts == {"fp16": 2, "int8": 1}
    page = comparison_page(comparison)
    first, second = page.index('id="answer"'), page.index('id="differs"')
    assert "int8 against fp16" in page[first:second]
    assert "<svg" in page[first:second]


def test_layers_that_all_slowed_alike_are_of_the_machine() -> None:
    layers = [(f"c{i}", "Convolution", "fp16", 1.0 + i / 10) for i in range(10)]
    slow = [(name, kind, of, ms * 1.2) for name, kind, of, ms in layers]
    said = Comparison([engine(*layers), engine(*slow)]).explanation()
    [line] = [line for line in said if "common factor" in line and "not of single" in line]
    assert line.startswith("All but 0 of 10 rows take 1.2× the time of A in B")
    uneven = [*slow[:-3], *layers[-3:]]
    said = Comparison([engine(*layers), engine(*uneven)]).explanation()
    assert not any("common factor" in line for line in said)
    # Another precision is another engine.
    other = [(name, kind, "int8", ms) for name, kind, _, ms in slow]
    said = Comparison([engine(*layers), engine(*other)]).explanation()
    assert not any("common factor" in line for line in said)
