"""The form of a new model."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import App
from textual.widget import Widget

from dld_tui.commands.command import table
from dld_tui.core.errors import DldError
from dld_tui.core.model.document.new_model import NewModel
from dld_tui.core.model.edits.new_document import new_document
from dld_tui.core.model.operators.registry import known_versions, runtimes_for
from dld_tui.core.params import command_line, from_json
from dld_tui.core.text import clip
from dld_tui.core.types import JSON
from dld_tui.screens.base_pages import FormPage
from dld_tui.widgets.forms.command_rows import CommandRows
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.lists.styled import Piece, Rows
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.page import host


class NewModelScreen(FormPage):
    """Asks what a new model begins with, and opens it in a tab."""

    SCOPE = "new_model"
    COMMAND_TABLE = table(
        "new_model",
        ("new_model.create", "create", "f5,ctrl+s", "valid", "create",
         "Create the model and open it in a tab."),
        ("new_model.copy", "copy_command", "f9", "", "copy command",
         "Copy the equivalent command line."),
        priority=True, footer="new_model.create new_model.copy",
    )  # fmt: skip
    tab_title = "new model"
    HELP = (
        "Choose the opset imports and, if you know them, inputs and outputs; you can change both "
        "later. {new_model.create} opens the model in a tab. It has no file until you save it."
    )

    def body(self) -> Iterable[Widget]:
        """Return the form, which runtimes take the opset, and the equal command line."""
        below = (Rows([[]], id="runtimes"), CommandRows("{new_model.copy} copies it"))
        keys = "{new_model.create} create  {new_model.copy} copy  {page.close} close"
        yield self.boxed("New model", keys, ParamForm(NewModel, {}), *below)

    def on_param_form_edited(self, event: ParamForm.Edited) -> None:
        """Show which runtimes support the opset, and the equivalent command line."""
        room = max(20, self.app.size.width - 6)
        values = event.form.values()
        self.query_one("#runtimes", Rows).set_rows([_verdict(values.get("opset"), room)])
        self.query_one(CommandRows).set_commands([(self.command_line, "dim")])

    @property
    def command_line(self) -> str:
        """The shell command that writes the same model."""
        values = self.form.values()
        return command_line(["dld", "new", "OUT.onnx"], NewModel, values)

    def action_create(self) -> None:
        from dld_tui.screens.home.tabs import make_new

        try:
            request = from_json(NewModel, self.form.values())
            new_document(request).close()  # what is wrong is told while the form is there
        except DldError as error:
            host(self).show_error(error, "Not created")
            return
        owner = host(self)
        self.dismiss(None)
        owner.add_page(make_new(request))

    def action_copy_command(self) -> None:
        self.app.copy_to_clipboard(self.command_line)


def _verdict(opset: JSON, room: int) -> list[Piece]:
    known = known_versions()
    if not isinstance(opset, int):
        return []
    if opset > known[-1]:
        text = f"{glyphs.current().error} The newest known opset is {known[-1]}."
        return [(clip(text, room), "bad")]
    return [(clip(f"Documented support of opset {opset}: {runtimes_text(opset)}", room), "dim")]


def runtimes_text(opset: int) -> str:
    """Return the runtimes whose documentation names a version of ai.onnx, such as 10.0 and 11."""
    names = ", ".join(runtimes_for(opset)).replace(", TensorRT ", ", ")
    return names or "no TensorRT since version 10"


def ask_new_model(app: App[int]) -> None:
    """Show the form of a new model, unless it is there."""
    if not isinstance(app.screen, NewModelScreen):
        app.push_screen(NewModelScreen())
