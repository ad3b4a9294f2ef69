"""Operators as rows and documents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document import operator_listing


def test_every_operator_has_a_row_cells_and_a_document() -> None:
    everything = operator_listing.all_operators()
    assert {schema.domain for schema in everything} >= {"", "ai.onnx.ml", "com.microsoft"}
    table = operator_listing.operator_table(everything)
    for schema in everything:
        assert len(table.values(schema)) == 5
        document: Any = operator_listing.document(schema)
        assert json.loads(json.dumps(document)) == document
        assert document["name"] == schema.name


def test_a_version_of_one_set() -> None:
    names = {schema.name: schema for schema in operator_listing.all_operators("ai.onnx", 10)}
    assert names["Upsample"].deprecated
    assert "Gelu" not in names
    assert {schema.domain for schema in operator_listing.all_operators("ai.onnx.ml")} == {
        "ai.onnx.ml"
    }


def test_a_name_in_any_case_and_domain() -> None:
    assert [(s.name, s.domain) for s in operator_listing.find("gelu")] == [
        ("Gelu", ""), ("Gelu", "com.microsoft")
    ]  # fmt: skip
    assert [schema.since_version for schema in operator_listing.find("Reshape", "ai.onnx", 13)] == [
        13
    ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("Rellu",), "did you mean Relu"),
        (("?",), "no operator '\\?'$"),
        (("Gelu", "nobody"), "known are ai.onnx"),
        (("Gelu", "ai.onnx", 13), "no Gelu in opset 13"),
        (("Gelu", "ai.onnx", 9999), "the newest of ai.onnx is"),
    ],
)
def test_what_is_not_there_is_told(arguments: tuple[str, ...], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        operator_listing.find(*arguments)  # type: ignore[arg-type]
