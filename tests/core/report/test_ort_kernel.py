from __future__ import annotations

from typing import Any

import pytest

from dld_tui.core.report.formats.ort_profile import kernel_from, may_hold_others, whole
from dld_tui.core.report.records import NOTHING_KNOWN

ARGUMENTS: dict[str, dict[str, Any]] = {
    "1.0": {"provider": "CPUExecutionProvider", "op_name": "Conv"},
    "1.8": {
        "thread_scheduling_stats": "", "activation_size": "602112", "parameter_size": "3584",
        "graph_index": "463", "output_size": "1605632", "provider": "CPUExecutionProvider",
        "exec_plan_index": "463", "op_name": "Conv",
    },
    "1.12": {
        "thread_scheduling_stats": "",
        "input_type_shape": [{"float": [1, 3, 224, 224]}, {"float": [32, 3, 3, 3]}],
        "activation_size": "602112", "parameter_size": "3584", "graph_index": "463",
        "output_size": "1605632", "provider": "CPUExecutionProvider",
        "output_type_shape": [{"float": [1, 32, 112, 112]}], "exec_plan_index": "463",
        "op_name": "Conv",
    },
    "1.16": {
        "thread_scheduling_stats": {"main_thread": {"core": 1}, "sub_threads": {}},
        "input_type_shape": [{"float16": [1, 3, 224, 224]}, {"int64": []}],
        "output_type_shape": [{"float16": [1, 32]}], "output_size": "1605632",
        "parameter_size": "3584", "activation_size": "602112", "node_index": "463",
        "provider": "CUDAExecutionProvider", "op_name": "Conv",
    },
    "1.31": {
        "mem_in_use_peak": "4290864", "node_index": "463", "op_name": "Conv",
        "input_type_shape": [{"double": [2]}], "output_type_shape": [{"double": [2]}],
        "provider": "CPUExecutionProvider", "output_size": "16",
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("version", "precision", "index", "output_bytes"),
    [
        ("1.0", None, None, None),
        ("1.8", None, 463, 1605632),
        ("1.12", "float32", 463, 1605632),
        ("1.16", "float16", 463, 1605632),
        ("1.31", "float64", 463, 16),
    ],
)
def test_each_versions_arguments(
    version: str, precision: str | None, index: int | None, output_bytes: int | None
) -> None:
    kernel = kernel_from("n0", ARGUMENTS[version])
    assert (kernel.name, kernel.op_type) == ("n0", "Conv")
    assert (kernel.precision, kernel.node_index) == (precision, index)
    assert kernel.cost.output_bytes == output_bytes


def test_shapes_and_provider() -> None:
    kernel = kernel_from("n0", ARGUMENTS["1.16"])
    assert kernel.input_dims == ((1, 3, 224, 224), ())
    assert kernel.input_types == ("float16", "int64")
    assert kernel.provider == "CUDAExecutionProvider"


def test_wrong_types_are_left_out() -> None:
    kernel = kernel_from(
        "n0",
        {
            "op_name": 5, "provider": [], "node_index": {}, "output_size": "many",
            "input_type_shape": [{"float": "big"}, 7, {}, {"int64": [1.5, "2", None]}],
            "output_type_shape": "none",
        },
    )  # fmt: skip
    assert (kernel.op_type, kernel.provider, kernel.node_index) == ("n0", None, None)
    assert kernel.input_dims == (None, (None, 2, None))
    assert kernel.cost == NOTHING_KNOWN


def test_numbers_in_strings() -> None:
    assert [whole(v) for v in ("12", 12, True, 1.5, "x", "9" * 21, None, "9" * 20)] == [
        12, 12, None, None, None, None, None, 10**20 - 1,
    ]  # fmt: skip


def test_operators_that_run_others() -> None:
    assert may_hold_others("Loop")
    assert may_hold_others("WhisperBeamSearch")
    assert not may_hold_others("Conv")
