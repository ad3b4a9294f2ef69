"""The collection of operators: what is in it, how it is grouped, what a search finds first."""

from __future__ import annotations

import pytest

from dld_tui.core.model.document.operator_listing import (
    Grouping,
    OperatorPalette,
    Origin,
    newest_opsets,
)
from dld_tui.core.model.operators.categories import CATEGORIES
from dld_tui.core.model.operators.schema import Formal, OperatorSchema


def signature(name: str, domain: str) -> OperatorSchema:
    return OperatorSchema(name, domain, 1, False, (Formal("x", "", (), ""),), (), (), (), "")


@pytest.fixture(scope="module")
def palette() -> OperatorPalette:
    return OperatorPalette(
        {"": 18, "local": 1, "ai.onnx.ml": 3},
        functions=[signature("Twice", "local")],
        custom=[signature("Plugin", "own"), signature("Relu6", "")],
        uses={("", "ConvTranspose"): 3, ("own", "Plugin"): 1},
    )


def names(palette: OperatorPalette, text: str) -> list[str]:
    return [item.name for item in palette.search(text)]


def test_it_has_every_kind_of_operator(palette: OperatorPalette) -> None:
    conv = palette.operator("Conv")
    assert conv is not None
    assert (conv.category, conv.available, conv.uses) == ("layer", True, 0)
    assert conv.schema.since_version == 11
    twice = palette.operator("Twice", "local")
    assert twice is not None
    assert (twice.origin, twice.category, twice.summary) == (
        Origin.FUNCTION, "custom", "Local function.",
    )  # fmt: skip
    plugin = palette.operator("Plugin", "own")
    assert plugin is not None
    assert (plugin.origin, plugin.available, plugin.uses) == (Origin.CUSTOM, True, 1)
    assert palette.operator("Scaler", "ai.onnx.ml") is not None


def test_what_needs_an_import_or_a_newer_opset_is_told(palette: OperatorPalette) -> None:
    gelu = palette.operator("Gelu")
    assert gelu is not None
    assert (gelu.too_new, gelu.available) == (20, False)
    contrib = palette.operator("Gelu", "com.microsoft")
    assert contrib is not None
    assert (contrib.imported, contrib.too_new, contrib.available) == (False, None, False)


def test_deprecated_ones_are_there_and_say_so(palette: OperatorPalette) -> None:
    upsample = palette.operator("Upsample")
    assert upsample is not None
    assert upsample.deprecated


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("conv", ["Conv", "ConvTranspose", "ConvInteger"]),  # one of them is used
        ("relu", ["Relu", "Relu6", "PRelu"]),
        ("twice", ["Twice"]),
        ("bn", ["BatchNormalization"]),
        ("normalization batch", ["BatchNormalization"]),
        ("onnx.ml scaler", ["Scaler"]),
        ("plug own", ["Plugin"]),
        ("qqq", []),
    ],
)
def test_search(palette: OperatorPalette, text: str, first: list[str]) -> None:
    assert names(palette, text)[: max(1, len(first))] == first


def test_what_can_be_added_comes_first(palette: OperatorPalette) -> None:
    found = palette.search("gelu")
    assert [item.available for item in found] == sorted(
        (item.available for item in found), reverse=True
    )
    assert found[-1].too_new == 20
    assert len(palette.search("")) == len(palette.operators)


def test_groups(palette: OperatorPalette) -> None:
    by_category = dict(palette.grouped(Grouping.CATEGORY))
    available = [title for title in by_category if title in CATEGORIES]
    assert available == [title for title in CATEGORIES if title in available]
    assert [item.name for item in by_category["custom"]] == ["Plugin", "Relu6", "Twice"]
    by_domain = [title for title, _ in palette.grouped(Grouping.COLLECTION)]
    assert by_domain[0] == "ai.onnx"
    assert {"local functions", "own", "newer opset of ai.onnx"} < set(by_domain)
    assert "not imported: com.microsoft" in by_domain
    by_name = palette.grouped(Grouping.NAME)
    assert by_name[0][0] == ""
    assert sum(len(items) for _, items in by_name) == len(palette.operators)
    by_version = [title for title, _ in palette.grouped(Grouping.VERSION)]
    assert by_version[:2] == ["ai.onnx 18", "ai.onnx 17"]
    found = palette.search("scaler")
    assert dict(palette.grouped(Grouping.COLLECTION, found))["ai.onnx.ml"] == found[:1]


def test_the_groupings_follow_each_other() -> None:
    assert [grouping.following for grouping in Grouping] == [
        Grouping.COLLECTION, Grouping.CATEGORY, Grouping.VERSION, Grouping.NAME
    ]  # fmt: skip


def test_without_a_model_everything_is_there() -> None:
    everything = OperatorPalette(newest_opsets())
    assert all(item.available for item in everything.operators)
    assert {item.domain for item in everything.operators} >= {"", "ai.onnx.ml", "com.microsoft"}


def test_a_function_hides_an_operator_of_its_name() -> None:
    mine = OperatorPalette({"": 18}, functions=[signature("Gelu", "")])
    gelu = mine.operator("Gelu")
    assert gelu is not None
    assert gelu.origin is Origin.FUNCTION
    assert gelu.available
