"""What a document can take, defines itself, and uses."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.operator_listing import Origin, operator_palette, used_operators
from tests.support import models

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
