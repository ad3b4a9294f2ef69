"""The dialog for path, offset and length of a tensor's values in a data file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dld_tui.core.errors import UsageError
from dld_tui.core.text import visible
from dld_tui.screens.tensors.tensor_place import TensorPlace
from dld_tui.screens.workspace.editing import name_editor
from dld_tui.widgets.dialogs.fields import FieldsDialog, FieldSpec


def external_entries_dialog(place: TensorPlace, edit: Callable[..., Any]) -> FieldsDialog | None:
    """Return the dialog, None where a tensor's values are in no data file.

    Args:
        place: The initializer.
        edit: Makes an edit; what is wrong with the entries it raises.
    """
    tensor = place.tensor
    if tensor is None or place.node is not None or not tensor.is_external:
        return None
    entries = tensor.external_entries
    location, read = name_editor(entries.get("location", ""))
    needed = tensor.nbytes
    length = entries.get("length", "" if needed is None else str(needed))

    def accept(texts: list[str]) -> None:
        edit(
            "set_external_entries",
            scope=place.path,
            name=place.name,
            location=read(texts[0].strip()),
            offset=_bytes("offset", texts[1]),
            length=_bytes("length", texts[2]),
        )

    about = f"Where the values of {place.title} are read from. No data file is changed."
    fields = [
        FieldSpec("path", location, "relative to the model"),
        FieldSpec("offset", visible(entries.get("offset", "0")), "bytes"),
        FieldSpec("length", visible(length), "bytes"),
    ]
    return FieldsDialog("Data file", about, fields, accept)


def _bytes(name: str, text: str) -> int:
    digits = text.strip().replace(",", "")
    if not digits.isascii() or not digits.isdecimal():
        raise UsageError(f"{name} is a number of bytes, 0 or more")
    return int(digits)
