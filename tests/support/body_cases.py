"""One case of every edit of subgraphs and functions: model, edit and arguments."""

from __future__ import annotations

from dld_tui.core.types import JSON

_THEN: list[JSON] = ["choose:then_branch"]
_LEAKY: list[JSON] = ["function local:leaky"]
_CASES: dict[str, JSON] = {"scope": [], "node": "pick", "attribute": "cases"}

BODY_CASES: list[tuple[str, str, dict[str, JSON]]] = [
    ("LOOP", "add_subgraph", {"scope": [], "node": "scan", "attribute": "other"}),
    ("SWITCH", "add_subgraph", {**_CASES, "index": 1}),
    ("BRANCHES", "copy_subgraph",
     {"scope": [], "node": "choose", "attribute": "third", "source": _THEN}),
    ("BRANCHES", "add_subgraph",
     {"scope": [], "node": "choose", "attribute": "else_branch", "replace": True}),
    ("SWITCH", "copy_subgraph", {**_CASES, "source": ["pick:cases[1]"]}),
    ("LOOP", "delete_subgraph", {"scope": [], "node": "repeat", "attribute": "body"}),
    ("SWITCH", "delete_subgraph", {**_CASES, "index": 0}),
    ("SWITCH", "move_subgraph", {**_CASES, "index": 0, "to": 2}),
    ("CHAIN", "add_function", {"name": "f", "inputs": ["v"], "outputs": ["r"]}),
    ("SHAPES", "duplicate_function", {"scope": _LEAKY, "name": "copy", "overload": "o"}),
    ("SHAPES", "rename_function", {"scope": _LEAKY, "name": "soft", "domain": "d"}),
    ("SHAPES", "delete_function", {"scope": _LEAKY}),
    ("SHAPES", "remove_input", {"scope": _LEAKY, "name": "x"}),
    ("SHAPES", "set_function_attribute",
     {"scope": _LEAKY, "attribute": "slope", "kind": "float", "value": 2.0}),
    ("SHAPES", "set_function_attribute", {"scope": _LEAKY, "attribute": "mode"}),
    ("UNUSED_ATTRIBUTE", "remove_function_attribute", {"scope": _LEAKY, "attribute": "unused"}),
    ("SHAPES", "set_attribute_reference",
     {"scope": _LEAKY, "node": "sub", "attribute": "p", "reference": "slope"}),
    ("BRANCHES", "make_function",
     {"scope": [], "nodes": ["pre", "choose"], "name": "All", "constants": True}),
    ("CHAIN", "make_function",
     {"scope": [], "nodes": ["second"], "name": "Bias", "constants": True}),
    ("SHAPES", "inline_function", {"nodes": [[[], "second"], [["function local:outer"], "inner"]]}),
]  # fmt: skip
