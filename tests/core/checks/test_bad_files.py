"""Malformed and hostile files give the finding that their description asks for, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.checks import check
from dld_tui.core.errors import InputError
from dld_tui.core.model.document import Document
from dld_tui.core.text import visible

FOUND = {
    "11_self_loop": ("graph-cycle", "Graph has a cycle: selfloop -> selfloop"),
    "26_ext_bad_offset": ("external-data", "Invalid offset/length"),
    "33_wrong_raw_data_length": ("tensor-data", "raw_data has 37 B, 4x4 float32 needs 64 B"),
    "34_two_data_fields": ("tensor-data", "has both raw_data and float_data"),
    "37_undefined_dtype": ("tensor-data", "data type UNDEFINED"),
    "40_non_utf8_name": ("odd-name", r"\xff\xfe\x80BAD"),
}
QUIET = ["00_good_control", "57_empty_graph", "60_if_nested_25", "65_nan_inf_weights"]


@pytest.mark.parametrize("name", FOUND)
def test_bad_file(real_files: Path, name: str) -> None:
    rule, message = FOUND[name]
    document = Document.open(real_files / "bad" / f"{name}.onnx")
    found = [finding for finding in check(document) if finding.rule == rule]
    document.close()
    assert any(message in finding.message for finding in found)


def test_every_file_is_checked_or_refused(real_files: Path) -> None:
    for path in sorted((real_files / "bad").glob("*.onnx")):
        try:
            document = Document.open(path)
        except InputError:
            continue
        found = check(document)
        assert path.stem not in QUIET or not [f for f in found if f.level != "info"]
        for finding in found:
            assert visible(finding.message) == finding.message, path
        document.close()
