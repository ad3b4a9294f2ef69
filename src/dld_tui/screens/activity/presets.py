"""Filled forms under a name: saved, and loaded again."""

from __future__ import annotations

from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, PromptDialog
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import SubPage
from dld_tui.widgets.tasks import task

_SECTION = "presets"
_KEYS = "123456789abcdefghijklmnopqrstuvwxyz"
_LONGEST = 60


class Presets(SubPage):
    """The part of a form that keeps settings under names."""

    preset_key = ""
    """Under which the presets of this form are remembered."""

    @property
    def presets(self) -> dict[str, dict[str, JSON]]:
        """The presets of this form by name."""
        found = host(self).state.get(_SECTION, self.preset_key)
        return {name: values for name, values in found.items() if isinstance(values, dict)}

    def facts(self) -> set[str]:
        """Return whether there are presets."""
        return super().facts() | ({"presets"} if self.is_mounted and self.presets else set())

    @task()
    async def action_save_preset(self) -> None:
        """Ask for a name and keep the settings under it that are not of the model alone."""
        message = (
            "What belongs to a model, such as files, shapes and names, is not part of a preset."
            " A known name is overwritten."
        )
        name = await self.tasks.ask(PromptDialog("Save as preset", message, check=_problem))
        if name is None:
            return
        form = self.query_one(ParamForm)
        kept: JSON = {
            key: value
            for key, value in form.values().items()
            if value is not None and not form.rows[key].setting.of_model
        }
        state = host(self).state
        presets = {**state.get(_SECTION, self.preset_key), name.strip(): kept}
        state.put(_SECTION, self.preset_key, presets)
        self.notify(f"Saved as {visible(name.strip())}", timeout=3, markup=False)
        self.refresh_bindings()

    @task()
    async def action_load_preset(self) -> None:
        """Ask which preset to fill the form with."""
        presets = self.presets
        choices = [
            Choice(key, visible(name), name)
            for key, name in zip(_KEYS, sorted(presets), strict=False)
        ]

        name = await self.tasks.ask(ChoiceDialog("Load a preset", "Which one?", choices))
        if name is not None:
            self.query_one(ParamForm).set_values(presets[name])


def _problem(name: str) -> str | None:
    if not name.strip():
        return "needed"
    return f"at most {_LONGEST} characters" if len(name) > _LONGEST else None
