"""The form of a batch modification: that of its activity, for the model as it is edited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from textual.containers import Horizontal
from textual.widget import Widget

from dld_tui.core.text import fit
from dld_tui.core.types import JSON
from dld_tui.screens.activity.form import ActivityBox, ActivityScreen
from dld_tui.targets import registry as targets
from dld_tui.widgets.forms.fields import ChoiceField
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell.host import host

APPLY, WRITE = "apply it to this document", "write a file"
"""What becomes of the result."""
_KEYS = "{activity.run} run  {activity.copy} copy  {page.close} close"
_LABEL = 19
_RESULT = "result"


class ConvertForm(ActivityScreen):
    """Asks for the settings of a conversion and hands them on.

    Raises:
        DldError: The activity cannot be loaded here.
    """

    tab_title = "modify"
    HELP = (
        "Fill in what differs from the defaults; an empty field is the default. {activity.run} "
        "runs it on the model as it is now, edits included, while you go on; {work.stop} stops "
        "it. The result takes the model's place as one edit that {edit.undo} takes back, or goes "
        "to a file. {activity.copy} copies the command line that writes the file."
    )

    def __init__(
        self,
        activity: str,
        values: Mapping[str, JSON],
        chosen: Callable[[dict[str, JSON], bool], None],
    ) -> None:
        """Make the form; `chosen` takes the settings, and whether the result is to be applied."""
        super().__init__(activity, values)
        self._chosen = chosen

    def body(self) -> Iterable[Widget]:
        """Return the form and the equal command line."""
        form = ParamForm(self.activity.request, self._remembered() | self.given)
        wanted = host(self).state.get("forms", _RESULT).get("is")
        result = Horizontal(
            Rows([[(fit("Result", _LABEL), "dim")]], classes="label"),
            ChoiceField((APPLY, WRITE), WRITE if wanted == WRITE else APPLY),
            id="target",
        )
        box = ActivityBox(result, form, self.guessed.rows, Rows([[]], id="command"))
        box.frame(self.activity.title, _KEYS)
        yield box

    @property
    def applies(self) -> bool:
        """Whether the result is to take the model's place."""
        return self.query_one("#target ChoiceField", ChoiceField).value == APPLY

    def own_reasons(self, values: Mapping[str, JSON]) -> dict[str, str]:
        """Return why no name of a file is asked for while none is written."""
        is_shown = bool(self.query("#target ChoiceField"))
        reasons = {"in_place": "the result takes the model's place where it is applied"}
        if is_shown and self.applies:
            reasons["output"] = "no file is written"
        return reasons

    def _taken(self) -> list[str]:
        return [] if self.applies else super()._taken()

    def facts(self) -> set[str]:
        """Return whether it may be run; it runs here."""
        return super().facts() - {"targets"}

    def _targets(self) -> list[str]:
        return [targets.LOCAL]

    def _target(self) -> str:
        return targets.LOCAL

    def _start(self, more: Mapping[str, JSON] | None = None) -> None:
        values = self.query_one(ParamForm).values() | dict(more or {})
        self._keep({name: value for name, value in values.items() if name != "output"})
        applies = self.applies
        host(self).state.put("forms", _RESULT, {"is": APPLY if applies else WRITE})
        self.dismiss(None)
        self._chosen(values, applies)
