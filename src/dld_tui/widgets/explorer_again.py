"""The explorer's rows made again when another model has taken the place of the document's."""

from __future__ import annotations

from dld_tui.widgets.explorer_model import ExplorerModel


def model_anew(old: ExplorerModel) -> ExplorerModel:
    """Return the rows of the same scope, listed and filtered as before; no node is read yet."""
    new = ExplorerModel(old.document, old.root)
    new.view, new.sort = old.view, old.sort
    new.set_show_constants(old.show_constants)
    new.set_text(old.text)
    new.set_condition(old.condition)
    return new
