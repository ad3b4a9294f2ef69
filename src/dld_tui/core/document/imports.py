"""The operator sets that a model imports, and how much of each it uses."""

from __future__ import annotations

from dataclasses import dataclass

from dld_tui.core.document.document import Document
from dld_tui.core.document.proto_text import text_of
from dld_tui.core.operators.registry import newest_opset
from dld_tui.core.types import plain_domain


@dataclass(frozen=True)
class OpsetImport:
    """One imported operator set. The domain is foreign text."""

    domain: str
    """``""`` for ai.onnx."""
    version: int | None
    """None when nodes use it and the model does not import it."""
    newest: int | None
    """The newest version that is known here; None for an unknown set."""
    used_by: int
    """Nodes that use it, in all graphs and functions."""


def opset_imports(document: Document) -> list[OpsetImport]:
    """Return the imported operator sets in the order of the file, then those only used."""
    counts: dict[str, int] = {}
    for scope in document.scopes():
        for node in scope.nodes:
            domain = node.domain
            counts[domain] = counts.get(domain, 0) + 1
    imports = document.opset_imports
    in_functions = {
        plain_domain(text_of(entry.domain))
        for function in document.functions
        for entry in function.proto.opset_import  # type: ignore[union-attr]
    }
    missing = [domain for domain in counts if domain not in imports and domain not in in_functions]
    return [
        OpsetImport(domain, imports.get(domain), newest_opset(domain), counts.get(domain, 0))
        for domain in (*imports, *missing)
    ]
