from __future__ import annotations

from dataclasses import replace

from dld_tui.core.report.startup import (
    NodePlacement,
    SessionStartup,
    Stage,
    node_table,
    stage_table,
    startup_lines,
)
from dld_tui.core.tables.table import json_of

FOUND = SessionStartup(
    "m.onnx", "ONNX Runtime 1.31.1", (Stage("reading", 2.0), Stage("packing of weights", 6.0)),
    8.0, 5.0, 1.0, 3,
    (
        NodePlacement("a", "Conv", "CUDA"),
        NodePlacement("b", "NonZero", "CPU", "CUDA has no kernel of NonZero")),
)  # fmt: skip


def test_what_takes_the_time_and_where_nodes_go_is_told() -> None:
    session, most, places = startup_lines(FOUND)
    assert "8.000 ms, the first pass 5.000 ms, later ones 1.000 ms; medians of 3" in session
    assert most == "The longest stage is packing of weights: 6.000 ms, 75 %."
    assert places == "Providers of the nodes before any run: 1 on CUDA, 1 on CPU."
    stages = (Stage("reading", 9.0), Stage("layout optimisation", -1.0))
    lines = startup_lines(replace(FOUND, stages=stages))
    assert (
        lines[2] == "A negative stage saves others more time than it takes, or is within the noise."
    )
    assert [row["node"] for row in json_of(node_table(FOUND))] == ["b", "a"]
    assert [one.node for one in FOUND.elsewhere] == ["b"]
    assert len(json_of(stage_table(FOUND))) == 2


def test_the_longest_stage_is_told_where_it_is_longer_by_more_than_the_noise() -> None:
    """A busy machine left -25.6 ms to a stage, and called another one of 62.6 ms the longest."""
    names = ("parsing", "basic optimisation", "layout optimisation")
    for last_ms, line in (
        (62.6, "Which stage is the longest is not certain: they are off by 25.600 ms or more."),
        (70.0, "The longest stage is layout optimisation: 70.000 ms, 82 %."),
    ):
        times = (37.9, -25.6, last_ms)
        stages = tuple(Stage(name, ms) for name, ms in zip(names, times, strict=True))
        assert startup_lines(replace(FOUND, stages=stages, session_ms=85.0))[1] == line


def test_a_stage_that_is_not_the_longest_of_each_repeat_is_not_told_as_the_longest() -> None:
    """Of three sessions on a busy machine, another stage was the longest in the next run."""
    kept = (Stage("reading", 2.0, (1.0, 2.0, 5.0)), Stage("packing of weights", 6.0, (6.0,) * 3))
    assert "longest stage is packing" in startup_lines(replace(FOUND, stages=kept))[1]
    mixed = (replace(kept[0], repeats_ms=(1.0, 2.0, 7.0)), kept[1])
    assert startup_lines(replace(FOUND, stages=mixed))[1] == (
        "Which stage is the longest is not certain: in single repeats it is packing of weights or"
        " reading."
    )
