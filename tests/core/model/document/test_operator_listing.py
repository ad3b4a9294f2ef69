"""The collection of operators: what is in it, how it is grouped, what a search finds first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document import Document, operator_listing
from dld_tui.core.model.document.operator_listing import (
    Grouping,
    OperatorPalette,
    Origin,
    newest_opsets,
    operator_page,
    operator_palette,
    used_operators,
)
from dld_tui.core.model.operators.categories import CATEGORIES
from dld_tui.core.model.operators.registry import schema_for
from dld_tui.core.model.operators.schema import Formal, OperatorSchema
from tests.support import models


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


MIXED = """
<ir_version: 10, opset_import: ["" : 18, "own" : 1, "local" : 1]>
mixed (float[N] x) => (float[N] y)
{
    a, b = own.Plugin<alpha = 1.5>(x)
    c = own.Plugin<mode = "fast">(a, b, x)
    d = Relu(c)
    e = Relu(d)
    y = local.blend<weight = 2.0>(e, x)
}
<domain: "local", opset_import: ["" : 13]>
blend <weight, bias: float = 0.5> (first, second) => (r)
{
    r = Add(first, second)
}
"""


def opened(folder: Path, text: str = MIXED) -> Document:
    return Document.open(models.write(folder, text))


def test_uses_are_counted_in_all_scopes(tmp_path: Path) -> None:
    assert used_operators(opened(tmp_path)) == {
        ("own", "Plugin"): 2, ("", "Relu"): 2, ("local", "blend"): 1, ("", "Add"): 1
    }  # fmt: skip


def test_functions_have_their_signature(tmp_path: Path) -> None:
    blend = operator_palette(opened(tmp_path).main).operator("blend", "local")
    assert blend is not None
    assert (blend.origin, blend.uses) == (Origin.FUNCTION, 1)
    assert [formal.name for formal in blend.schema.inputs] == ["first", "second"]
    assert [formal.name for formal in blend.schema.outputs] == ["r"]
    assert [(item.name, item.kind, item.required) for item in blend.schema.attributes] == [
        ("weight", "undefined", True), ("bias", "float", False)
    ]  # fmt: skip


def test_custom_operators_are_as_wide_as_they_were_seen(tmp_path: Path) -> None:
    plugin = operator_palette(opened(tmp_path).main).operator("Plugin", "own")
    assert plugin is not None
    assert (plugin.origin, plugin.uses) == (Origin.CUSTOM, 2)
    assert (len(plugin.schema.inputs), len(plugin.schema.outputs)) == (3, 2)
    assert [(item.name, item.kind) for item in plugin.schema.attributes] == [
        ("alpha", "float"), ("mode", "string")
    ]  # fmt: skip


def test_a_function_takes_what_it_imports_itself(tmp_path: Path) -> None:
    document = opened(tmp_path)
    inside = operator_palette(document.functions[0])
    resize = inside.operator("GroupNormalization")
    assert resize is not None
    assert resize.too_new == 18
    known = operator_palette(document.main, {("", "Relu"): 7}).operator("Relu")
    assert known is not None
    assert known.uses == 7


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
