"""Versions of operator sets, and what they need."""

from __future__ import annotations

import pytest

from dld_tui.core.model.operators.registry import (
    DEFAULT_OPSET,
    importable_version,
    known_versions,
    least_ir_version,
    newest_opset,
    runtimes_for,
)


def test_known_versions_end_with_the_newest() -> None:
    assert known_versions()[0] == 7
    assert known_versions()[-1] == newest_opset()
    assert known_versions("com.microsoft") == (1,)
    assert known_versions("nobody's") == ()
    assert DEFAULT_OPSET in known_versions()


@pytest.mark.parametrize(
    ("imports", "least"),
    [({}, 3), ({"": 18}, 8), ({"": 18, "ai.onnx.ml": 5}, 10), ({"own": 1, "": 21}, 10)],
)
def test_the_file_version_that_imports_need(imports: dict[str, int], least: int) -> None:
    assert least_ir_version(imports) == least


@pytest.mark.parametrize(
    ("domain", "ir_version", "version"),
    [("ai.onnx.ml", 8, 3), ("ai.onnx.ml", 10, 5), ("ai.onnx.ml", 1, 1), ("com.microsoft", 3, 1),
     ("nobody's", 3, 1)],
)  # fmt: skip
def test_what_can_be_imported_into_a_file(domain: str, ir_version: int, version: int) -> None:
    assert importable_version(domain, ir_version) == version


def test_runtimes_that_take_a_version() -> None:
    assert runtimes_for(DEFAULT_OPSET) == ["TensorRT 10.0", "TensorRT 10.15", "TensorRT 11"]
    assert runtimes_for(24) == ["TensorRT 10.15", "TensorRT 11"]
    assert runtimes_for(7) == []
