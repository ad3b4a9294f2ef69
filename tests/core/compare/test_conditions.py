"""What differs between runs, and what makes comparing them unfair."""

from __future__ import annotations

from typing import Any

import pytest

from dld_tui.core.compare.conditions import (
    differences,
    doubts,
    fairness_warnings,
    flattened,
    relevant_differences,
    same_model,
)
from dld_tui.core.compare.records import Subject
from tests.support.compared import noisy, subject, timed

MODEL = {"sha256": "0" * 64, "bytes": 10, "path": "/m/net.onnx"}
PROPERTIES = {"network": "net.onnx", "backend": "ORT 1", "device": "cpu", "status": "complete"}
SETTINGS = {"provider": "CPU", "threads": 0, "input_shapes": {"x": [1, 3]}, "percentile": "90"}


def run(passes: int = 10, **changes: Any) -> Subject:
    fields: dict[str, Any] = {
        "model": MODEL,
        "properties": PROPERTIES,
        "settings": SETTINGS,
        "environment": {"python": "3"},
    }
    more = {name: {**fields[name], **value} for name, value in changes.items() if name in fields}
    rest = {name: value for name, value in changes.items() if name not in fields}
    return subject(timed("x", noisy(1.0, 1, passes, 0.001)), **{**fields, **more, **rest})


def found(*subjects: Subject) -> list[tuple[str, tuple[str, ...]]]:
    return [(difference.name, difference.values) for difference in differences(subjects)]


def test_what_is_no_difference() -> None:
    assert same_model([run(), run()]) is True
    assert found(run(), run(settings={"percentile": "99"})) == []
    assert fairness_warnings([run(), run()]) == []
    assert doubts([run(), run()]) == []
    pair = [
        run(settings={"duration": None, "iterations": 5}),
        run(settings={"duration": 3.0, "iterations": 9}),
    ]
    assert {difference.name for difference in differences(pair)} == {"duration", "iterations"}
    assert relevant_differences(pair) == []


def test_differences_are_listed_the_telling_ones_first() -> None:
    other = run(
        properties={"backend": "ORT 2"},
        settings={"warm_up": 3, "threads": 2, "provider": "CUDA"},
        environment={"python": "3.1", "load_average": [9.0], "gpu_temperature_c": 40},
    )
    assert found(run(), other) == [
        ("backend", ("ORT 1", "ORT 2")),
        ("provider", ("CPU", "CUDA")),
        ("threads", ("0", "2")),
        ("python", ("3", "3.1")),
    ]


def test_a_profile_without_settings_does_not_differ_in_them() -> None:
    properties = {"network": "p.json", "backend": "ORT 0", "device": ""}
    imported = Subject("p.json", "/p.json", run().layers, properties=properties)
    assert [name for name, _ in found(run(), imported)] == ["backend", "device"]
    assert same_model([run(), imported]) is None
    assert (
        fairness_warnings([run(), imported])[0] == "Whether the model is the same is not recorded."
    )


def test_models_are_told_apart_by_digest_or_size() -> None:
    changed = run(model={"sha256": "1" * 64})
    assert same_model([run(), changed]) is False
    assert fairness_warnings([run(), changed])[0] == (
        "The model is not the same: net.onnx was changed between the reports."
    )
    assert ("model sha256", ("000000000000", "111111111111")) in found(run(), changed)
    other = run(model={"sha256": "1" * 64}, properties={"network": "other.onnx"})
    assert "Different models: net.onnx, other.onnx." in fairness_warnings([run(), other])[0]
    plain, larger = ({"sha256": None, "bytes": size} for size in (10, 11))
    assert same_model([run(model=plain), run(model=larger)]) is False
    assert same_model([run(model=plain), run(model=plain)]) is None
    evil = run(model={"sha256": "1" * 64}, properties={"network": "\x1b[31mred"})
    assert "\x1b" not in " ".join(fairness_warnings([run(), evil]))


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({"x": [8, 3]}, "Different batch sizes (1 / 8)"),
        ({"x": [1, 5]}, "Different input shapes"),
        ({"y": [1, 3]}, "Different input shapes"),
    ],
)
def test_other_shapes(shapes: dict[str, Any], said: str) -> None:
    assert said in fairness_warnings([run(), run(settings={"input_shapes": shapes})])[0]


def test_devices_clocks_and_missing_latency_loops() -> None:
    base = run(environment={"cpu_mhz": 2000.0, "gpu_sm_mhz": 1980}, latencies=[1.0] * 10)
    near = run(environment={"cpu_mhz": 2050.0, "gpu_sm_mhz": 1980}, latencies=[1.0] * 10)
    assert fairness_warnings([base, near]) == []
    other = run(environment={"cpu_mhz": 3000.0, "gpu_sm_mhz": 1200}, properties={"device": "gpu"})
    lines = fairness_warnings([base, other])
    assert "B has no latency loop" in lines[0]
    assert "Different devices: cpu, gpu." in lines[1]
    assert lines[2:] == [
        "Clocks: cpu_mhz was 2000.0 / 3000.0.",
        "Clocks: gpu_sm_mhz was 1980 / 1200.",
    ]


def test_doubts_about_one_report() -> None:
    bad = run(
        passes=3,
        properties={"status": "partial"},
        environment={
            "load_average": [7.5, 1, 1],
            "cpu_threads": 4,
            "gpu_throttling": "power cap",
        },
        latencies=noisy(1.0, 5, 20, 0.2),
    )
    lines = doubts([run(), bad])
    assert all(line.startswith("B: ") for line in lines)
    text = " ".join(lines)
    for part in (
        "report is partial",
        "busy (machine load 7.5 on 4 threads before the run)",
        "held back: power cap",
        "latency varies by",
        "3 profiled passes: too few",
    ):
        assert part in text


def test_averages_tell_nothing_about_noise() -> None:
    averages = subject(timed("x", 1.0), by_pass=False)
    assert doubts([averages]) == [
        "A: only averages over passes are recorded: nothing tells noise from change."
    ]


def test_nested_values_get_one_name() -> None:
    assert flattened({"clocks": {"locked": True, "a": {"b": 1}}, "x": [1]}) == {
        "clocks.locked": True,
        "clocks.a.b": 1,
        "x": [1],
    }


def test_other_prompts_of_decoders_are_other_work() -> None:
    short, long = run(prompt=16), run(prompt=1024)
    said = "Different prompts (16 / 1,024 tokens): the reports did not do the same work."
    assert said in fairness_warnings([short, long])
    assert not fairness_warnings([short, short, run()])
