"""What dialogs show after each key and give at their end (``walks_of_dialogs.txt``)."""

from __future__ import annotations

from pathlib import Path

import pytest
import textual

from dld_tui.core.errors import DldError, InputError, UsageError
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
from tests.support.dialog_walks import Dialogs, walked
from tests.support.recorded import Recorded
from tests.support.tui import ESCAPE

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


@pytest.mark.parametrize("size", [(80, 24), (44, 14)])
async def test_dialogs_from_their_beginning_to_their_end(
    size: tuple[int, int], recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("model.onnx", "mine.dldprof"):
        Path(name).write_text("x")
    texts = await walked(_DIALOGS, size)
    texts = {key: text.replace(str(tmp_path), "FOLDER") for key, text in texts.items()}
    recorded(f"walks_of_dialogs_{size[0]}", texts)
