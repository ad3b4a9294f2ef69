"""Which nodes a gate names: how often innocent ones, and how nodes of two versions are matched."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest

from dld_tui.core.compare.gate import (
    Pair,
    RunFigures,
    gate_result,
    input_notes,
    junit,
    listed_nodes,
    markdown,
)
from dld_tui.core.compare.node_changes import SEPARATOR, changed, node_runs, partners_of

if TYPE_CHECKING:
    from dld_tui.core.report.measurement import FloatArray


def ratios(dice: np.random.Generator, nodes: int, pairs: int, kind: str) -> FloatArray:
    """Return logarithms of ratios of equal versions; nodes of a pair are disturbed together."""
    common = 0.03 * dice.standard_t(3, pairs)
    if kind == "two speeds":  # sessions that are slow or fast for their whole life
        own = 0.3 * (dice.integers(0, 2, (nodes, pairs)) - dice.integers(0, 2, (nodes, pairs)))
    else:
        own = 0.05 * dice.standard_t(2, (nodes, pairs))
    return np.asarray(common + own + 0.001 * dice.normal(size=(nodes, pairs)))


@pytest.mark.parametrize("kind", ["heavy tails", "two speeds"])
def test_few_gates_of_equal_models_name_a_node(kind: str) -> None:
    dice = np.random.default_rng(10)
    alarms = sum(any(changed(ratios(dice, 300, 10, kind))) for _ in range(100))
    assert alarms <= 12  # of 5 expected at most, 12 or more are seen in 0.4 %


def test_the_share_of_swaps_is_that_of_all_swaps_of_whole_pairs() -> None:
    """The definition, written out: any swap of versions of pairs is as likely."""
    dice = np.random.default_rng(3)
    for _ in range(20):
        log_ratios = ratios(dice, 4, 6, "heavy tails") + 0.15 * (np.arange(4) == 1)[:, None]
        scale = np.sqrt((log_ratios**2).mean(axis=1) + 0.005**2)

        def statistics(signs: tuple[int, ...], of: FloatArray, by: FloatArray) -> FloatArray:
            return np.asarray(np.abs((of * signs).mean(axis=1)) / by)

        seen = statistics((1,) * 6, log_ratios, scale)
        named: set[int] = set()
        while True:
            rest = [node for node in range(4) if node not in named]
            most = [
                max(statistics(signs, log_ratios, scale)[rest])
                for signs in itertools.product((1, -1), repeat=6)
            ]
            more = {
                node for node in rest
                if np.mean([value >= seen[node] - 1e-9 for value in most]) <= 0.05
            }  # fmt: skip
            if not more:
                break
            named |= more
        assert {at for at, is_named in enumerate(changed(log_ratios)) if is_named} == named


@pytest.mark.parametrize(("pairs", "nodes"), [(6, 40), (8, 200), (10, 1500), (12, 5000)])
def test_a_node_that_takes_twice_as_long_is_named_among_many(pairs: int, nodes: int) -> None:
    dice = np.random.default_rng(4)
    log_ratios = 0.03 * dice.normal(size=(nodes, pairs))
    log_ratios[7] += np.log(2)
    assert [at for at, is_named in enumerate(changed(log_ratios)) if is_named] == [7]


def test_what_does_not_vary_is_named_only_if_it_differs() -> None:
    log_ratios = np.zeros((3, 6))
    log_ratios[1] = 0.5
    assert changed(log_ratios) == [False, True, False]
    assert changed(np.zeros((0, 6))) == []


def test_nodes_that_share_a_layer_in_one_version_are_compared_together() -> None:
    base = [{f"conv{SEPARATOR}relu": 1.0, "add": 2.0, "gone": 0.5}] * 6
    new = [{"conv": 0.9, "relu": 0.4, "add": 2.0, "more": 0.7}] * 6
    found = {node.title: node for node in node_runs(base, new)}
    assert found["conv + relu"].base == (1.0,) * 6
    assert found["conv + relu"].new == pytest.approx((1.3,) * 6)
    assert found["add"].new == (2.0,) * 6
    assert (found["gone"].new, found["more"].base) == ((), ())
    fused = {SEPARATOR.join(f"n{at}" for at in range(9)): 1.0}
    assert node_runs([fused], [fused])[0].title == "n0 + n1 + n2 + 6 more"


def test_nodes_of_some_runs_only_are_not_compared() -> None:
    runs = [{"a": 1.0}] * 5
    found = node_runs([*runs, {"a": 1.0, "b": 1.0}], [*runs, {"a": 1.0}])
    assert [node.title for node in found] == ["a"]


CHAIN = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x, bool c) => (float[4] y) {{
    [{0}first] a = Exp (x)
    [{0}if] b = If (c) <
        then_branch = t () => (float[4] p) {{ [{0}inner] p = Erf (a) }},
        else_branch = e () => (float[4] q) {{ [{0}other] q = Neg (a) }}
    >
    [{0}last] y = Tanh (b)
}}"""


def test_renamed_nodes_are_matched_by_structure(tmp_path: Path) -> None:
    old_path, new_path = tmp_path / "base.onnx", tmp_path / "new.onnx"
    for path, prefix in ((old_path, ""), (new_path, "new_")):
        onnx.save(onnx.parser.parse_model(CHAIN.format(prefix)), path)
    base = {"first": 1.0, "if": 1.0, "if:then_branch › inner": 1.0, "last": 1.0}
    new = {"new_first": 1.0, "new_if": 1.0, "new_if:then_branch › new_inner": 1.0, "new_last": 1.0}
    partners = partners_of(old_path, new_path, [base], [new])
    assert partners == dict(zip(new, base, strict=True))
    assert partners_of(old_path, new_path, [base], [base]) == {}
    assert partners_of(old_path, tmp_path / "none.onnx", [base], [new]) == {}
    pairs = [
        Pair(RunFigures(4.0, base), RunFigures(4.0, {**new, "new_last": 1.5 + at / 100}), 1.0)
        for at in range(6)
    ]
    found = gate_result("b", "n", pairs, partners=partners)
    assert ([row.key for row in found.nodes], found.lone_nodes) == (["last"], ())
    assert found.nodes_compared == 4


def test_a_node_that_one_version_lacks_is_listed_if_it_takes_time() -> None:
    base = {"a": 1.0, "old": 0.3, "tiny": 0.0001}
    new = {"a": 1.0, "added": 0.5}
    pairs = [Pair(RunFigures(1.3, base), RunFigures(1.5, new), 1.15)] * 6
    found = gate_result("b", "n", pairs)
    assert [(node.key, node.base_ms, node.new_ms) for node in found.lone_nodes] == [
        ("added", None, 0.5), ("old", 0.3, None), ("tiny", 0.0001, None),
    ]  # fmt: skip
    assert [(row.key, row.verdict) for row in listed_nodes(found)] == [
        ("added", "added"), ("old", "removed"),
    ]  # fmt: skip
    assert "| `added` | – | 0.500 | only in the new version | added |" in markdown(found)
    assert 'tests="3"' in junit(found)


def test_a_step_of_the_clock_is_no_change_of_a_node() -> None:
    """ONNX Runtime writes whole microseconds: 1 or 2 of them may be 1.4 and 1.6."""
    pairs = [
        Pair(RunFigures(1.0, {"short": 0.001, "long": 0.01}),
             RunFigures(1.0, {"short": 0.002, "long": 0.02}), 1.0)
    ] * 6  # fmt: skip
    assert [row.key for row in gate_result("b", "n", pairs).nodes] == ["long"]


def test_side_effects_of_a_slow_node_are_not_named() -> None:
    base = {"slow": 1.0, "neighbour": 0.1, "other": 0.1}
    new = {"slow": 3.0, "neighbour": 0.11, "other": 0.2}
    pairs = [Pair(RunFigures(1.2, base), RunFigures(3.3, new), 2.75)] * 6
    assert [row.key for row in gate_result("b", "n", pairs).nodes] == ["slow", "other"]


def test_the_node_that_changed_most_comes_first() -> None:
    base = {"long": 9.0, "short": 0.2, "other": 0.2}
    new = {"long": 9.5, "short": 0.9, "other": 0.3}
    pairs = [Pair(RunFigures(9.4, base), RunFigures(10.7, new), 1.14)] * 6
    assert [row.key for row in gate_result("b", "n", pairs).nodes] == ["short", "long", "other"]


def test_a_gate_notes_inputs_that_differ_but_for_names(tmp_path: Path) -> None:
    def model(name: str, declared: str) -> Path:
        text = f"""<ir_version: 8, opset_import: ["" : 17]>
        g ({declared}) => (float[N] y) {{ y = Identity ({declared.split()[-1]}) }}"""
        path = tmp_path / name
        onnx.save(onnx.parser.parse_model(text), path)
        return path

    base = model("base.onnx", "float[4] x")
    assert input_notes(base, base) == ()
    assert input_notes(base, model("other.onnx", "float[4] z")) == ()
    assert input_notes(base, tmp_path / "none.onnx") == ()
    (note,) = notes = input_notes(base, model("new.onnx", "float[8] x"))
    assert note == (
        "the inputs differ: x float32[4] in the baseline, x float32[8] in the new version"
    )
    found = replace(gate_result("b", "n", []), notes=notes)
    assert "\n\nNote: the inputs differ: x float32\\[4\\] in" in markdown(found)
