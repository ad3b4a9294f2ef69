"""Dimensions of inputs made dynamic or fixed, as one edit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dld_tui.core.errors import DldError, EditError
from dld_tui.core.model.document.edit_registry import edit, subject
from dld_tui.core.model.document.transactions import Transaction
from dld_tui.core.model.edits.model_swap import SwapModel

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


@edit
def change_dimensions(
    document: Document, transaction: Transaction, *, dims: Mapping[str, int | str]
) -> str:
    """Make dimensions of inputs dynamic or fixed, with the constants that hold their old size.

    Args:
        dims: ``{NAME: VALUE}``, where NAME is that of a dimension, ``INPUT:AXIS`` or ``batch``, the
            first axis. A size fixes it, a name makes it dynamic.

    Raises:
        EditError: There is no such dimension, or a node or a weight prevents it.
    """
    from dld_tui.core.conversion import changed_dimensions  # lazy: NumPy and the rules of shapes
    from dld_tui.core.model.inputs.guess import candidate_guesses, input_specs

    def shapes() -> Mapping[str, tuple[int, ...]]:
        guess = next(iter(candidate_guesses(input_specs(document), document)), None)
        if guess is None:
            raise EditError("the sizes of the inputs cannot be inferred")
        return guess.shapes

    if not dims:
        raise EditError("there are no dimensions to change")
    texts = [f"{name}={value}" for name, value in dims.items()]
    try:
        changed = changed_dimensions.change_dimensions(document, texts, shapes)
    except DldError as error:
        raise EditError(error.message, where=error.where, hint=error.hint) from None
    transaction.do(SwapModel(document, changed.model))
    return f"change {subject([*dims], 'dimension')}"
