"""Edits that put another model in the place of the whole document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dld_tui.core.document.edits.registry import edit
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.model_swap import SwapModel, read_model
from dld_tui.core.errors import EditError
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@edit
def replace_model(
    document: Document,
    transaction: Transaction,
    *,
    model: JSON,
    title: str = "replace the whole model",
) -> str:
    """Put another model, such as the result of a conversion, in the place of this one.

    Args:
        document: The document; it stays that of its file.
        transaction: Takes in the change.
        model: The whole file of the model as a payload; ``{"file": PATH}`` will do. See
            :func:`~dld_tui.core.document.model_swap.keep_model`.
        title: What is done, for people.

    Raises:
        EditError: The file cannot be read or is no ONNX model.
    """
    if not isinstance(title, str):
        raise EditError("title must be text")
    transaction.do(SwapModel(document, read_model(document, model)))
    return title
