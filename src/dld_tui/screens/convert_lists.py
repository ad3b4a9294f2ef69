"""What of a model can be ticked in a list for a setting of a conversion, rather than typed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.conversion.tensors import KINDS, Selection, candidates
from dld_tui.core.document import Document
from dld_tui.core.errors import DldError
from dld_tui.core.tensors.elements import element_type
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.widgets.dialogs.search import PickItem

Items: TypeAlias = "Callable[[Mapping[str, JSON]], Iterator[PickItem]]"
"""Makes the items of a list, for the values of the other fields."""


def lists_of(document: Document, activity: str) -> dict[str, Items]:
    """Return by setting of a conversion what can be ticked for it."""

    def tensors(values: Mapping[str, JSON]) -> Iterator[PickItem]:
        return _tensors(document, values)

    def nodes(_: Mapping[str, JSON]) -> Iterator[PickItem]:
        return _nodes(document)

    known: dict[str, dict[str, Items]] = {
        "convert_tensors": {"filter": tensors},
        "convert_quantize": {"exclude": nodes},
        "convert_fp16": {"node_block": nodes},
        "convert_bf16": {"node_block": nodes},
    }
    return known.get(activity, {})


def _tensors(document: Document, values: Mapping[str, JSON]) -> Iterator[PickItem]:
    """Yield the tensors that the other settings of the form let through, each name once."""
    try:
        dtype = element_type(str(values.get("to") or "float16"))
        types = tuple(element_type(name) for name in _texts(values.get("types")))
    except DldError:
        return  # the form says what is wrong with it
    kinds = tuple(kind for kind in _texts(values.get("kinds")) if kind in KINDS) or KINDS
    least = values.get("least_bytes")
    chosen = Selection((), types, least if isinstance(least, int) else 0, kinds)
    seen = set[str]()
    for found in candidates(document, dtype, chosen):
        if found.name in seen:
            continue
        seen.add(found.name)
        tensor = found.tensor
        about = f"  {tensor.dtype} {fmt.shape(tensor.shape)}  {fmt.size(tensor.nbytes or 0)}"
        name = visible(found.name)
        yield PickItem(found.name, [(name, ""), (about, "dim")], f"{name} {tensor.dtype}")


def _nodes(document: Document) -> Iterator[PickItem]:
    for node in document.main.nodes:
        if node.name:
            name, op_type = visible(node.name), visible(node.op_type)
            yield PickItem(node.name, [(name, ""), (f"  {op_type}", "type")], f"{name} {op_type}")


def _texts(value: JSON) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []
