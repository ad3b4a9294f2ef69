"""Static checks of a document, of all scopes: nothing is run, and only small tensors are read.

A new rule is a line in :mod:`.findings`, a few lines in the file for what it is about
(``rules.py``, ``operands.py``, ``kernel_rules.py`` …), and a paragraph in docs/reference/checks.md.
"""

from __future__ import annotations

from dld_tui.core.checks.findings import RULES, Finding, Level
from dld_tui.core.model.document import Document
from dld_tui.core.process.interpreter import collector_paused

__all__ = ["RULES", "Finding", "Level", "check"]


def check(document: Document, *, operators: bool = True) -> list[Finding]:
    """Return the findings on a model, errors first.

    Args:
        document: The model.
        operators: Look at operators too, which loads the tables of all operator sets.
    """
    from dld_tui.core.checks.checker import Checker  # with all rules: a tenth of a second

    checker = Checker(document, operators=operators)
    with collector_paused():
        for _ in checker.steps():
            pass
    return checker.findings()
