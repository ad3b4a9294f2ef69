"""The documentation page, its version history, and whether types fit."""

from __future__ import annotations

from dld_tui.core.model.document.operator_listing import (
    OperatorPalette,
    newest_opsets,
    operator_page,
)
from dld_tui.core.model.operators.registry import history_of, schema_for, versions_of
from dld_tui.core.model.operators.schema import Formal, OperatorSchema


def schema(name: str, domain: str = "", version: int | None = None) -> OperatorSchema:
    found = schema_for(name, domain, version)
    assert found is not None
    return found


def test_a_page_has_all_parts_in_order() -> None:
    lines = operator_page(schema("Gemm", version=13), 60)
    assert lines[0] == ("title", "Gemm")
    assert lines[1] == ("note", "ai.onnx · since version 13 · layer")
    assert [text for role, text in lines if role == "head"] == [
        "Inputs", "Outputs", "Attributes", "Types", "Versions"
    ]  # fmt: skip
    terms = [text.strip() for role, text in lines if role == "term"]
    assert {"A  T", "C  T, optional", "alpha  float, default 1.0", "13  (this one)"} <= set(terms)
    assert max(len(text) for _, text in lines) <= 60


def test_every_page_can_be_made_and_has_no_markup() -> None:
    for item in OperatorPalette(newest_opsets()).operators:
        lines = operator_page(item.schema, 76)
        assert lines[0][1] == item.name
        assert all("</" not in text for role, text in lines if role == "head")


def test_a_deprecated_operator_and_a_hostile_one() -> None:
    assert "warning" in {role for role, _ in operator_page(schema("Upsample", version=18), 76)}
    name = "x\x1b[31m"
    hostile = OperatorSchema(
        name, name, 1, False, (Formal(name, name, (), ""),), (), (), (), name
    )  # fmt: skip
    assert all("\x1b" not in text for _, text in operator_page(hostile, 76))


def test_the_history_says_what_changed() -> None:
    history = dict(history_of("Reshape"))
    assert "new attribute allowzero" in history[14]
    assert history[1] == ["first"]
    assert "new input shape" in history[5]
    assert "takes bfloat16" in history[13]
    assert list(history) == sorted(history, reverse=True)
    assert dict(history_of("Upsample"))[10] == ["deprecated"]
    assert dict(history_of("Gemm"))[11] == ["input C is optional, was single"]
    assert dict(history_of("GRU"))[3] == [
        "output Y_h is optional, was single", "new attribute linear_before_reset",
        "attribute direction has another default",
    ]  # fmt: skip
    assert "no attribute axes any more" in dict(history_of("ReduceSum"))[13]
    assert history_of("Gelu", "com.microsoft") == [(1, ["first"])]
    assert history_of("Nobody") == []
    assert versions_of("Nobody", "com.microsoft") == ()
