"""Models: opened, edited, checked, compared.

>>> model = open_model(path)
>>> [node.op_type for node in model.main.nodes]
['Relu', 'Relu']
>>> _ = model.apply("rename_node", scope=[], node="act", name="activation")
>>> [node.name for node in model.main.nodes]
['conv', 'activation']
>>> [finding.rule for finding in check(model)]
[]
>>> changed = diff(path, model)
>>> changed.same, [change.name for _, change in changed.all_changes()]
(False, ['activation'])
>>> _ = model.undo()
>>> diff(path, model).same
True
>>> edits()["rename_node"]
'Give a node another name; nothing refers to nodes by name inside the model.'
>>> model.close()
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from pathlib import Path

from dld_tui.core.checks import check as _check
from dld_tui.core.checks.findings import Finding
from dld_tui.core.compare.diff import ModelDiff, diff_documents
from dld_tui.core.document import Document

__all__ = ["Document", "check", "diff", "edits", "open_model"]


def open_model(path: str | Path) -> Document:
    """Open an ONNX model; its weights stay in the file until they are needed.

    Raises:
        InputError: It cannot be read, or is no model.
    """
    return Document.open(path)


def edits() -> dict[str, str]:
    """Return all edits that :meth:`Document.apply` takes, with the first sentence of each."""
    from dld_tui.core.document.edits.registry import EDITS, run_edit  # registers them all

    assert run_edit is not None
    return {
        name: (inspect.getdoc(function) or "").partition("\n")[0]
        for name, function in sorted(EDITS.items())
    }


def check(model: Document | str | Path) -> list[Finding]:
    """Return errors and oddities of a model, errors first; nothing is run.

    Raises:
        InputError: The file cannot be read, or is no model.
    """
    with _opened(model) as document:
        return _check(document)


def diff(
    old: Document | str | Path, new: Document | str | Path, *, weights: bool = True
) -> ModelDiff:
    """Return the differences of two models; nodes are matched by name, then by structure.

    Args:
        old: A model, or its file.
        new: The other model, or its file.
        weights: Compare the values of initializers as well.

    Raises:
        InputError: A file cannot be read, or is no model.
    """
    with _opened(old) as first, _opened(new) as second:
        return diff_documents(first, second, weights=weights)


@contextlib.contextmanager
def _opened(model: Document | str | Path) -> Iterator[Document]:
    """Yield a model; one that was given by its file is closed again."""
    if isinstance(model, Document):
        yield model
        return
    with contextlib.closing(Document.open(model)) as document:
        yield document
