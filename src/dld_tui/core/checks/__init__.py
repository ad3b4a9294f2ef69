"""Static checks of a document: all scopes, no payload is read, nothing is run.

A new rule is one function here or in a file of this folder, and one line in :func:`check`.
"""

from __future__ import annotations

from dld_tui.core.checks.findings import Finding, by_severity
from dld_tui.core.checks.header import check_functions, check_header
from dld_tui.core.checks.links import (
    check_initializers,
    check_order,
    check_sources,
    check_unused_nodes,
)
from dld_tui.core.checks.tensors import check_shapes, check_tensors
from dld_tui.core.document import Document
from dld_tui.core.errors import CancelledError
from dld_tui.core.types import CancelCheck

__all__ = ["Finding", "check"]

_SCOPE_RULES = (
    check_sources,
    check_order,
    check_initializers,
    check_unused_nodes,
    check_tensors,
    check_shapes,
)


def check(
    document: Document, *, operators: bool = True, cancelled: CancelCheck | None = None
) -> list[Finding]:
    """Return what is wrong or odd in a model, errors first.

    Args:
        document: The model.
        operators: Look at operators too, which loads the tables of all operator sets.
        cancelled: Asked for each rule and scope.

    Raises:
        CancelledError: `cancelled` said so.
    """
    findings = [*check_header(document), *check_functions(document)]
    for scope in document.scopes():
        for rule in _SCOPE_RULES:
            if cancelled is not None and cancelled():
                raise CancelledError
            findings += rule(scope)
    if operators:
        from dld_tui.core.checks.operators import check_operators

        for scope in document.scopes():
            findings += check_operators(document, scope)
    return by_severity(findings)
