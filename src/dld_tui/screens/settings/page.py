"""The settings page, made from the fields of the configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.core.params import Param, Setting, settings_of
from dld_tui.core.settings import config as settings
from dld_tui.core.settings.config import Config
from dld_tui.core.settings.paths import short
from dld_tui.core.text import visible
from dld_tui.screens.form_page import FormPage
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.shell.command_dispatch import bindings_for
from dld_tui.widgets.shell.host import host

if TYPE_CHECKING:
    from textual.app import App


OTHER_PAGE = "Other packages"
"""The page of the form with the settings that cannot be loaded."""


class SettingsScreen(FormPage):
    """Changes show at once; F5 writes them, Esc takes them back."""

    SCOPE = "settings"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("page", "settings")
    tab_title = "settings"
    HELP = (
        "A change takes effect at once. {settings.save} writes it to config.toml, {page.close} "
        "reverts it. Set keys in that file, in the table [keys]: command id = keys, such as "
        "edit.undo = 'u,ctrl+z'."
    )

    def __init__(self) -> None:
        super().__init__()
        self._before: Config | None = None

    def body(self) -> Iterable[Widget]:
        self._before = host(self).config
        broken = settings.unavailable_settings()
        shown = (
            *settings_of(Config),
            *settings.added_settings().values(),
            *(unavailable(name) for name in broken),
        )
        reasons = {name: visible(f"unavailable: {why}") for name, why in broken.items()}
        form = ParamForm(shown, settings.values_of(self._before), reasons)
        yield self.boxed(
            f"Settings · {short(settings.config_path())}",
            "{settings.save} save  {page.close} close",
            form,
        )

    def on_param_form_edited(self, event: ParamForm.Edited) -> None:
        """Show the program as it would be."""
        changed = self._config()
        if changed is not None and changed != host(self).config:
            self._use(changed)

    def _config(self) -> Config | None:
        if self._before is None or not self.form.valid:
            return None
        return settings.with_values(self._before, self.form.values())

    def _use(self, config: Config) -> None:
        host(self).use_config(config)
        cast("App[int]", self.app).refresh_css(animate=False)
        self.refresh(layout=True)

    def save(self) -> str:
        """Write what is set in another way than in the file."""
        changed = self._config()
        if changed is None or self._before is None:
            return ""
        before, after = settings.values_of(self._before), settings.values_of(changed)
        differing = {name: value for name, value in after.items() if value != before[name]}
        if differing:
            settings.save(differing)
        self.notify("Saved" if differing else "Nothing changed", timeout=2)
        return self.tab_title

    def go_back(self) -> None:
        """Go back to what was set before."""
        if self._before is not None and host(self).config != self._before:
            self._use(self._before)
        self.dismiss(None)


def unavailable(name: str) -> Setting:
    """Return what stands in the form for a setting of another package that cannot be loaded."""
    return Setting(name, str, False, "", Param(visible(name), "", page=OTHER_PAGE))
