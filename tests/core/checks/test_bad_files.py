"""Malformed and hostile files give the finding that their description asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.checks import check
from dld_tui.core.errors import InputError
from dld_tui.core.model.document import Document
from dld_tui.core.text import visible

FOUND = {
    "10_cycle": ("graph-cycle", "Graph has a cycle: n0 -> n1 -> n0"),
    "11_self_loop": ("graph-cycle", "Graph has a cycle: selfloop -> selfloop"),
    "13_dangling_inputs": ("undefined-input", "Input ghost has no producer"),
    "14_output_without_producer": ("missing-output", "Graph output nowhere is never produced"),
    "15_not_topologically_sorted": ("unsorted-nodes", "Nodes are not topologically sorted"),
    "20_ext_traversal": ("external-data", "External data path leaves the model folder"),
    "22_ext_windows_traversal": ("external-data", "External data path leaves the model folder"),
    "25_ext_missing_file": ("external-data", "External data missing.bin not found"),
    "26_ext_bad_offset": ("external-data", "Invalid offset/length"),
    "28_ext_evil_keys": ("external-keys", "is ignored"),
    "31_huge_dims": ("shape", "element count overflows (about 2^126)"),
    "33_wrong_raw_data_length": ("tensor-data", "raw_data has 37 B, 4x4 float32 needs 64 B"),
    "34_two_data_fields": ("tensor-data", "has both raw_data and float_data"),
    "35_initializer_no_data": ("tensor-without-data", "has no data (weightless model?)"),
    "37_undefined_dtype": ("tensor-data", "data type UNDEFINED"),
    "40_non_utf8_name": ("odd-name", r"\xff\xfe\x80BAD"),
    "41_terminal_escape_names": ("odd-name", r"\x1b[2J"),
    "50_missing_opset": ("opset-missing", "No opset_import"),
    "51_future_opset": ("opset-future", "Opset 9999 is newer than this tool knows"),
    "53_future_ir": ("ir-unsupported", "IR version 99 unsupported"),
    "54_no_ir_version": ("ir-missing", "ir_version missing"),
    "55_unknown_op_and_wrong_arity": ("unknown-operator", "Unknown operator Reluu"),
    "62_recursive_function": ("recursive-function", "Function d::F calls itself"),
    "64_duplicate_unused_initializer": (
        "duplicate-initializer",
        "Initializer unused is defined twice and never used",
    ),
}
QUIET = ["00_good_control", "57_empty_graph", "60_if_nested_25", "65_nan_inf_weights"]


@pytest.mark.parametrize("name", FOUND)
def test_bad_file(real_files: Path, name: str) -> None:
    rule, message = FOUND[name]
    document = Document.open(real_files / "bad" / f"{name}.onnx")
    found = [finding for finding in check(document) if finding.rule == rule]
    document.close()
    assert any(message in finding.message for finding in found)


@pytest.mark.parametrize("name", QUIET)
def test_file_without_faults(real_files: Path, name: str) -> None:
    document = Document.open(real_files / "bad" / f"{name}.onnx")
    assert [f.message for f in check(document) if f.level != "info"] == []
    document.close()


def test_every_file_is_checked_or_refused(real_files: Path) -> None:
    for path in sorted((real_files / "bad").glob("*.onnx")):
        try:
            document = Document.open(path)
        except InputError:
            continue
        for finding in check(document):
            assert visible(finding.message) == finding.message, path
        document.close()
