"""Transcripts of what is done to models: ``tests/core/model/transcripts/*.txt``.

``model NAME`` or ``model`` with ONNX text below says what the next lines are about: NAME is a text
of :mod:`tests.support.models` or :mod:`tests.support.body_models`. ``> NAME {ARGUMENTS}`` makes an
edit of that model, ``>> …`` one of the model as the line before left it. Below stands its title,
then the lines of the model that it took away and added (:mod:`tests.support.model_lines`), or
behind ``! `` why it is refused. ``> check`` lists findings and what their fixes do, ``> types``
what inference tells. ``pytest tests/core/model/test_transcripts.py --write-transcripts`` writes
what is done now, to be read as a diff.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import onnx

from dld_tui.core.checks import check
from dld_tui.core.errors import DldError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.transactions import Edit
from dld_tui.core.model.shapes.inference import infer, infer_types, store_types
from tests.support import body_models, models
from tests.support.model_lines import changes
from tests.support.sessions import bytes_of

FOLDER = Path(__file__).resolve().parents[1] / "core" / "model" / "transcripts"
_MODEL, _TEXT, _FRESH, _MORE, _ABOUT = "model", "  | ", "> ", ">> ", "## "


def written(path: Path, folder: Path) -> str:
    """Return a transcript with what is done now.

    Args:
        path: The transcript.
        folder: An empty folder, for the files of the models.
    """
    given, printed, text, file = path.read_text("utf-8").splitlines(), [], "", folder / "m.onnx"
    document = None
    for line in given:
        if line.startswith(_ABOUT):
            printed += ["", line]
        elif line.split(" ")[0] == _MODEL:
            name = line[len(_MODEL) + 1 :]
            text = str(getattr(body_models, name, "") or getattr(models, name)) if name else ""
            printed += ["", line]
        elif line.startswith(_TEXT):
            text += line.removeprefix(_TEXT) + "\n"
            printed.append(line)
        elif line.startswith((_FRESH, _MORE)):
            if document is None or line.startswith(_FRESH):
                if document is not None:
                    document.close()
                file.write_bytes(models.parse(text).SerializeToString())
                document = Document.open(file)
            printed += ["", line]
            name, _, arguments = line.split(" ", 1)[1].partition(" ")
            printed += _done(document, name, json.loads(arguments or "{}"))
    if document is not None:
        document.close()
    return "\n".join(printed).strip() + "\n"


def _done(document: Document, name: str, arguments: dict[str, Any]) -> Iterator[str]:
    try:
        yield from _LOOKS[name](document) if name in _LOOKS else _edited(document, name, arguments)
    except DldError as error:
        where = f"{error.where}: " if error.where else ""
        yield f"! {where}{error.message}"
        if error.hint:
            yield f"!   {error.hint}"


def _edited(document: Document, name: str, arguments: dict[str, Any]) -> list[str]:
    before = bytes_of(document)
    try:
        done = document.apply(name, **arguments)
    except DldError:
        assert bytes_of(document) == before, "a refused edit leaves a trace"
        raise
    after = bytes_of(document)
    if done.primitives:
        document.undo()
        assert bytes_of(document) == before, "undo gives other bytes"
        document.redo()
        assert bytes_of(document) == after, "redo gives other bytes"
    return [done.title, *changes(*map(onnx.ModelProto.FromString, (before, after)))]


def _checked(document: Document) -> Iterator[str]:
    """Yield the findings on a model, and what the fix of each does to it."""
    with suppress(DldError):
        store_types(document, infer_types(onnx.ModelProto.FromString(bytes_of(document)), None)[0])
    fixes: list[Edit] = []
    for finding in check(document):
        place = [] if finding.scope is None else [*finding.scope.path] or ["main"]
        at = [finding.node.ref] if finding.node is not None else []
        about = [f"({finding.value})"] if finding.value is not None else []
        where = " ".join([" › ".join([*place, *at]), *about])
        yield f"{finding.level} {finding.rule} at {where}: {finding.message}"
        fix = finding.fix
        if fix is not None and fix not in fixes:
            fixes.append(fix)
            yield f"    {fix.name} {json.dumps(fix.arguments)}"
            yield from ("    " + line for line in _edited(document, fix.name, fix.arguments))
            document.undo()


def _typed(document: Document) -> Iterator[str]:
    """Yield what inference says, and each type that it finds."""
    inference = infer(onnx.ModelProto.FromString(bytes_of(document)))
    for said in inference.messages:
        yield f"! {said}"
    store_types(document, inference.model)
    for scope in document.scopes():
        named = dict.fromkeys(
            name for node in scope.nodes for name in (*node.inputs, *node.outputs)
        )
        yield " › ".join(scope.path) or "main"
        for name in named:
            known = scope.value_type(name)
            yield f"  {name}: {known.text if known else '-'}"


_LOOKS: dict[str, Callable[[Document], Iterator[str]]] = {"check": _checked, "types": _typed}
"""What else than an edit a line may ask for."""
