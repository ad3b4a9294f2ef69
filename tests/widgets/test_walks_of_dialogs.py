"""What dialogs show after each key and give at their end (``walks_of_dialogs.txt``)."""

from __future__ import annotations

from pathlib import Path

import pytest
import textual

from dld_tui.core.errors import DldError, InputError, UsageError
from dld_tui.core.model.document import Document, Scope
from dld_tui.core.model.document.operator_listing import OperatorPalette
from dld_tui.core.model.edits.wiring import NodeWiring
from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.screens.model.opset_dialogs import VersionDialog
from dld_tui.widgets.dialogs.dialogs import (
    Choice,
    ChoiceDialog,
    ErrorDialog,
    FieldsDialog,
    FieldSpec,
    OpenPathDialog,
    PromptDialog,
    QuestionDialog,
    SecretDialog,
    TextDialog,
    list_dialog,
)
from dld_tui.widgets.dialogs.wiring import NodePicker, TerminalPicker, ValuePicker, WiringDialog
from tests.support import models
from tests.support.recorded import Recorded
from tests.support.tui import ESCAPE, HOSTILE
from tests.support.walks import Dialogs, walked_dialogs

pytestmark = [
    pytest.mark.broad,
    pytest.mark.skipif(textual.__version__ != "8.2.8", reason="written with Textual 8.2.8"),
]


def _check(text: str) -> str | None:
    return None if text.isdigit() else f"{text!a} is no number"


def _accept(values: list[str]) -> None:
    if "bad" in values[0]:
        raise UsageError(f"{values[0]} is refused {ESCAPE}", hint="Type another")


def _preview(values: list[str]) -> str:
    if not values[0]:
        raise DldError("a name is needed")
    return f"would write {values!a} and more words that do not fit in a line of the box"


def _read(text: str) -> None:
    if "x" in text:
        raise UsageError("no x here")


_LONG = "a label that is long " * 5
_CHOICES = [
    Choice(
        "s", "save", "save", "write the file, and all that belongs to it, below its folder, now"
    ),
    Choice("d", "discard", "no"),
    Choice("l", _LONG, "long", "short"),
]
_FIELDS = [
    FieldSpec("name", "one"), FieldSpec("kind", "b", choices=("a", "b", "c")),
    FieldSpec("value", "", "such as 1"),
]  # fmt: skip
_DIALOGS: Dialogs = {
    "an error": (
        lambda: ErrorDialog(
            InputError("cannot be read", where=f"net{ESCAPE}.onnx", hint="Copy it again",
                       details="\n".join(f"line {at}" for at in range(40))), "Not opened"),
        "down pagedown y enter",
    ),
    "an error without more": (lambda: ErrorDialog(InputError("no")), "escape"),
    "a choice": (lambda: ChoiceDialog("Close?", f"Unsaved: {ESCAPE}", _CHOICES),
        "down down enter"),
    "a question": (lambda: QuestionDialog("Lose it?", "All " * 40, _CHOICES[:2]), "q"),
    "a prompt": (
        lambda: PromptDialog("Rename", "A new name", "conv", check=_check, placeholder="a number"),
        "enter ctrl+u 7 enter",
    ),
    "a prompt with choices": (
        lambda: PromptDialog("Type", "Which?", "b", choices=("a", "b", "c")),
        "down down up x up enter",
    ),
    "a prompt for a list": (
        lambda: PromptDialog("Values", "", "[1, 2]", list_kind="ints"),
        "f2 end enter x ctrl+s backspace 3 ctrl+s",
    ),
    "a secret": (lambda: SecretDialog(f"Password of {ESCAPE}?"), "a b ctrl+a ctrl+c enter"),
    "a text": (lambda: TextDialog("Doc", f"one\ntwo {ESCAPE}"), "x ctrl+s"),
    "a text that is checked": (
        lambda: TextDialog("Doc", "one", check=_read, note="a note"), "x ctrl+s backspace f5",
    ),
    "a list": (lambda: list_dialog("List", "['a', 'b']", "strings"), "down end enter c ctrl+s"),
    "fields": (
        lambda: FieldsDialog("Make", "Words " * 20, _FIELDS, _accept, _preview),
        "ctrl+u b a d enter end backspace backspace backspace n tab right tab 1 shift+tab left"
        " shift+tab backspace enter",
    ),
    "fields without a preview": (lambda: FieldsDialog("Make", "", _FIELDS[:1], _accept), "escape"),
    "a path": (lambda: OpenPathDialog("Open", "Which file?", ""), "m tab down enter"),
}  # fmt: skip


def _wanted(known: ValueType | None) -> str | None:
    return None if known is not None and known.dtype == "float32" else "is not float32"


def _wiring(op_type: str, source: str = "x", text: str = models.CHAIN) -> WiringDialog:
    item = OperatorPalette({"": 18}).operator(op_type)
    assert item is not None
    return WiringDialog(NodeWiring(Document(models.parse(text)).main, item, source))


def _main() -> Scope:
    return Document(models.parse(models.CHAIN)).main


def _told(answer: object) -> str:
    if not isinstance(answer, NodeWiring):
        return ascii(answer)
    told = f"{answer.inputs} {answer.attributes} {answer.outputs} {answer.name!a}"
    return f"{told} {sorted(answer.created)} {answer.inserts}"


_OF_MODELS: Dialogs = {
    "inputs that are needed": (
        lambda: _wiring("GRU"),
        "f5 enter down enter enter down enter down down a enter d down enter escape end"
        " enter n enter d up up enter 5 enter up d f5",
    ),
    "outputs": (lambda: _wiring("Split"), "end up enter ctrl+u x enter ctrl+u 3 enter f5"),
    "a subgraph": (lambda: _wiring("If"), "down enter down enter"),
    "insert on a link": (lambda: _wiring("Neg", "a"),
        "down down enter enter up a escape home enter"),
    "an attribute that is needed": (
        lambda: _wiring("Cast"), "f5 enter x enter ctrl+u f l o a t enter d end a"
    ),
    "a value": (
        lambda: ValuePicker(
            _main(), title=HOSTILE, wanted=_wanted, exclude=("c",), first=("y",), empty_label="none"
        ),
        "s i g ctrl+u z z enter backspace backspace down down enter",
    ),
    "any value": (lambda: ValuePicker(_main(), title="Which?"), "b enter"),
    "a terminal": (
        lambda: TerminalPicker(
            (main := _main()).nodes[1], title="Which?", value_type=main.value_type("x")
        ),
        "down end w enter",
    ),
    "an input": (lambda: TerminalPicker(_main().nodes[1], title="Which?", side="input"), "enter"),
    "a node": (
        lambda: NodePicker((main := _main()), title="Which?", first=[main.nodes[2]],
                           exclude=main.nodes[0]),
        "m u ctrl+u z enter backspace end enter",
    ),
    "a version": (lambda: VersionDialog(17, 21), "down down end pageup enter"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["dialogs", "dialogs_of_models"])
async def test_dialogs_from_their_beginning_to_their_end(
    kind: str, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    dialogs = _DIALOGS if kind == "dialogs" else _OF_MODELS
    monkeypatch.chdir(tmp_path)
    for name in ("model.onnx", "mine.dldprof"):
        Path(name).write_text("x")
    texts = await walked_dialogs(dialogs, (44, 14), _told)
    texts = {key: text.replace(str(tmp_path), "FOLDER") for key, text in texts.items()}
    recorded(f"walks_of_{kind}", texts)
