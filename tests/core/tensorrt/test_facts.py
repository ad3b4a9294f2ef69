from __future__ import annotations

import json

from dld_tui.core.codec import decode, encode
from dld_tui.core.tensorrt.facts import LibraryFacts


def test_facts_come_back_from_json() -> None:
    facts = LibraryFacts(
        "/opt/trt",
        "tensorrt",
        "10.13.0.35",
        "/opt/trt/tensorrt",
        "weak",
        frozenset({"FP16", "TF32"}),
        frozenset({"WORKSPACE"}),
        frozenset({"CUBLAS"}),
        frozenset({"ILayer.precision"}),
        ("8.9",),
        no_driver="there is no NVIDIA driver",
        extra={"parser": 3},
    )
    assert decode(LibraryFacts, json.loads(json.dumps(encode(facts)))) == facts
    assert facts.usable
    assert facts.title == "TensorRT 10.13.0.35"
    assert facts.version_numbers == (10, 13, 0, 35)


def test_a_reason_makes_it_unusable() -> None:
    facts = LibraryFacts("tensorrt", "tensorrt", why="not installed")
    assert not facts.usable
    assert facts.title == "TensorRT"
    assert facts.version_numbers == ()
    assert LibraryFacts("x", "x", "10.1rc").version_numbers == ()
