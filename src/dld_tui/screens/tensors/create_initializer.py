"""The form that makes an initializer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.core.document import Scope
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.params import from_json
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.form_page import FormPage
from dld_tui.screens.page_work import PageWork
from dld_tui.screens.tensors.new_tensor import ALWAYS, NEEDS, NewTensor, NewValues, values_of
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.commands import bindings_for

if TYPE_CHECKING:
    from dld_tui.screens.workspace.history import History


class CreateInitializer(PageWork, FormPage):
    """The page: F5 makes the initializer.

    Args:
        workspace: The workspace of the document.
        scope: The graph that it is added to.
        made: Called with its name when it is there.
    """

    SCOPE = "create"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("create")
    tab_title = "new initializer"
    HELP = (
        "A new initializer: name, element type, dimensions and values. Tab goes from field to "
        "field, left and right choose, {create.run} makes it. Other kinds of values bring up"
        " other fields."
    )

    def __init__(self, workspace: History, scope: Scope, made: Callable[[str], None]) -> None:
        super().__init__()
        self.workspace = workspace
        self.scope = scope
        self.made = made

    def body(self) -> Iterable[Widget]:
        """Return the form."""
        title = f"New initializer · {visible(' › '.join(self.scope.path)) or 'main'}"
        problem = Rows([[]], id="problem")
        yield self.boxed(
            title, "{create.run} create  {page.close} close", ParamForm(NewTensor, {}), problem
        )

    def on_mount(self) -> None:
        """Show the fields that count."""
        self._say_used()

    def on_unmount(self) -> None:
        """Stop what runs for this page."""
        self.cancel_work()

    def on_param_form_edited(self, event: ParamForm.Edited) -> None:
        """Show which fields count for the chosen values."""
        self._say_used()
        self._show_problem("")

    def _say_used(self) -> None:
        fill = str(self.form.values()["fill"])
        used = {*ALWAYS, *NEEDS.get(fill, ())} - ({"sparse"} if fill == "external" else set())
        for name, row in self.form.rows.items():
            is_used = name in used
            row.display = is_used
            row.field.disabled = not is_used
            if is_used == bool(row.why_not):
                row.why_not = "" if is_used else "not used"
                row.show_problem(row.value()[1] if is_used else None)

    def _show_problem(self, problem: str) -> None:
        mark = glyphs.current().error
        rows = [[(f"{mark} {visible(problem)}", "bad")]] if problem else [[("", "")]]
        self.query_one("#problem", Rows).set_rows(rows)

    # --- making it ------------------------------------------------------------------------------

    def action_create(self) -> None:
        """Make the initializer."""
        try:
            asked = from_json(NewTensor, self.form.values())
        except DldError as error:
            self._show_problem(error.message)
            return
        found: list[NewValues] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            found.append(values_of(self.document, asked, progress, cancelled))

        def ended(error: DldError | None) -> None:
            if error is None:
                self._add(asked, found[0])
            elif not isinstance(error, CancelledError):
                self._failed(error)

        self.work("Reading the values", task, ended)

    def _add(self, asked: NewTensor, values: NewValues) -> None:
        path: list[JSON] = list(self.scope.path)
        arguments: dict[str, Any] = {"dtype": values.dtype, "dims": values.dims}
        steps = [
            partial(
                self.document.apply,
                "add_initializer",
                scope=path,
                name=asked.name,
                fill=values.fill,
                **arguments,
            )
        ]
        if asked.sparse:
            steps.append(partial(self.document.apply, "to_sparse", scope=path, names=[asked.name]))

        def done() -> None:
            self.made(asked.name)
            self.dismiss(None)

        self.edit_on_thread("Making the initializer", steps, done)

    def complain(self, error: DldError) -> None:
        """Show below the form what is wrong."""
        self._failed(error)

    def _failed(self, error: DldError) -> None:
        self._show_problem(f"{error.message}. {error.hint}" if error.hint else error.message)

    def action_close(self) -> None:
        """Stop what runs, or go back."""
        if not self.cancel_work():
            self.dismiss(None)
