"""The collection of operators: what is in it, how it is grouped, what a search finds first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
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
from dld_tui.core.model.operators.schema import (
    AttributeSchema,
    Formal,
    OperatorSchema,
    TypeConstraint,
)
from tests.support import models
from tests.support.recorded import Recorded, table_text


def signature(name: str, domain: str) -> OperatorSchema:
    return OperatorSchema(name, domain, 1, False, (Formal("x", "", (), ""),), (), (), (), "")


@pytest.fixture(scope="module")
def palette() -> OperatorPalette:
    return OperatorPalette(
        {"": 18, "local": 1, "ai.onnx.ml": 3},
        functions=[signature("Twice", "local")],
        custom=[signature("Plugin", "own"), signature("Relu6", "")],
        uses={("", "ConvTranspose"): 3, ("own", "Plugin"): 1},
        invents=True,
    )


def names(palette: OperatorPalette, text: str) -> list[str]:
    return [item.name for item in palette.search(text)]


CHOSEN = (
    ("Abs", ""), ("Conv", ""), ("ConvTranspose", ""), ("Gelu", ""), ("Gelu", "com.microsoft"),
    ("LayerNormalization", ""), ("Plugin", "own"), ("Relu6", ""), ("Scaler", "ai.onnx.ml"),
    ("Twice", "local"), ("Upsample", ""),
)  # fmt: skip
ASKED = (
    "trt.EfficientNMS_TRT",
    "own.New",
    "New",
    "NewThing",
    "Conv",
    "own.Plugin",
    "a b.C",
    "x.2y",
)


def test_the_palette(palette: OperatorPalette, recorded: Recorded) -> None:
    found = []
    for name, domain in CHOSEN:
        item = palette.operator(name, domain)
        assert item is not None
        found.append(item)
    assert palette.operators == sorted(
        palette.operators, key=lambda item: (item.name.lower(), item.domain)
    )
    lines = [
        f"{item.key} {item.origin.value} {item.place!r} imported {item.imported} newer"
        f" {item.too_new} uses {item.uses} deprecated {item.deprecated} available {item.available}"
        f" {'' if item.origin is Origin.SCHEMA else item.summary}"
        for item in found
    ]
    groups = []
    for grouping in Grouping:
        groups.append(f"{grouping.value}, then {grouping.following.value}")
        for title, items in palette.grouped(grouping, found):
            groups.append(f"  {title}: {', '.join(item.name for item in items)}")
    assert sum(len(items) for _, items in palette.grouped(Grouping.NAME)) == len(palette.operators)
    invented = [
        f"{text}: {item.imported} {item.origin.value} {item.schema}"
        for text in ASKED
        for item in palette.search(text)
        if item not in palette.operators
    ]
    recorded(
        "palette",
        {
            "operators": "\n".join(lines),
            "groups": "\n".join(groups),
            "invented": "\n".join(invented),
        },
    )


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
        ("qqq", ["qqq"]),  # a new one
    ],
)
def test_search(palette: OperatorPalette, text: str, first: list[str]) -> None:
    assert names(palette, text)[: len(first)] == first


def test_what_can_be_added_comes_first(palette: OperatorPalette) -> None:
    found = palette.search("gelu")
    assert [item.available for item in found] == sorted(
        (item.available for item in found), reverse=True
    )
    assert found[-1].too_new == 20
    assert len(palette.search("")) == len(palette.operators)


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
blend <bias: float = 0.5, weight> (first, second) => (r)
{
    r = Add(first, second)
}
"""
LOCAL = ("local", "own")


def opened(folder: Path, text: str = MIXED) -> Document:
    return Document.open(models.write(folder, text))


def test_uses_are_counted_in_all_scopes(tmp_path: Path) -> None:
    assert used_operators(opened(tmp_path)) == {
        ("own", "Plugin"): 2, ("", "Relu"): 2, ("local", "blend"): 1, ("", "Add"): 1
    }  # fmt: skip


def test_signatures_are_those_of_functions_and_nodes(tmp_path: Path, recorded: Recorded) -> None:
    document = opened(tmp_path)
    found = operator_palette(document.main)
    assert [item.key for item in found.operators if item.origin is not Origin.SCHEMA] == [
        ("local", "blend"), ("own", "Plugin"),
    ]  # fmt: skip
    lines = [f"{one.schema}\n{one.uses}" for one in found.operators if one.key[0] in LOCAL]
    inside = operator_palette(document.functions[0]).operator("GroupNormalization")
    known = operator_palette(document.main, {("", "Relu"): 7}).operator("Relu")
    assert inside is not None
    assert known is not None
    assert (inside.too_new, known.uses) == (18, 7)
    recorded("signatures", {"": "\n".join(lines)})


def test_every_operator_has_a_row_cells_and_a_document() -> None:
    everything = operator_listing.all_operators()
    assert {schema.domain for schema in everything} >= {"", "ai.onnx.ml", "com.microsoft"}
    table = operator_listing.operator_table(everything)
    for schema in everything:
        assert len(table.values(schema)) == 5
        document: Any = operator_listing.document(schema)
        assert json.loads(json.dumps(document)) == document
        assert document["name"] == schema.name


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


FLOATS = ("tensor(float)", "tensor(float16)", "tensor(int8)")
HOSTILE = "x\x1b[31m"
RICH = OperatorSchema(
    "Upsample", "", 9, True,
    (
        Formal("X", "The *input*.\n\n    code(x)\n", FLOATS, "T"),
        Formal("scales", "", ("tensor(int64)",), "tensor(int64)", "optional"),
        Formal(HOSTILE, HOSTILE, (), "", "variadic"),
    ),
    (Formal("Y", "", FLOATS, "T"), Formal("Z", "", FLOATS, "U", "optional")),
    (
        AttributeSchema("mode", "string", True, None, "One of many words that do not fit a line."),
        AttributeSchema("axis", "int", False, -1, ""),
        AttributeSchema("dtype", "int", False, 10, ""),
        AttributeSchema("limit", "float", False, 0.5, ""),
        AttributeSchema("pads", "ints", False, [1, 2], ""),
        AttributeSchema("texts", "strings", False, [b"a", b"\xff"], ""),
        AttributeSchema("name", "string", False, b"long " * 20, ""),
        AttributeSchema("table", "tensor", False, np.arange(3), HOSTILE),
    ),
    (
        TypeConstraint("T", FLOATS, "What is taken."),
        TypeConstraint("U", tuple(f"tensor({name})" for name in ("uint8", "bool", "int4")), ""),
    ),
    "Makes it larger. See [there](https://example.org/a).\n\n    y = f(x)\n",
)  # fmt: skip
PLAIN = OperatorSchema(HOSTILE, HOSTILE, 1, False, (), (), (), (), HOSTILE)


def test_a_page_a_row_and_a_document(recorded: Recorded) -> None:
    made = {
        "table": table_text(operator_listing.operator_table([RICH, signature("Plugin", "own")]))
    }
    for title, item in (("rich", RICH), ("plain", PLAIN)):
        for width in (60, 10):
            lines = [f"{role:8}{text}" for role, text in operator_page(item, width)]
            made[f"{title} {width}"] = "\n".join(lines)
            assert operator_listing.text(item, width) == [line[8:] for line in lines]
        made[f"{title} document"] = json.dumps(operator_listing.document(item), indent=1)
    recorded("operator_pages", made)


def test_every_page_can_be_made_and_has_no_markup() -> None:
    for item in OperatorPalette(newest_opsets()).operators:
        lines = operator_page(item.schema, 76)
        assert lines[0][1] == item.name
        assert all("</" not in text for role, text in lines if role == "head")
