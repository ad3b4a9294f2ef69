"""The settings page, made from the fields of the configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget

from dld_tui.core import config as settings
from dld_tui.core.config import Config
from dld_tui.core.errors import DldError
from dld_tui.core.params import to_json
from dld_tui.core.paths import short
from dld_tui.widgets.commands import bindings_for
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.host import host
from dld_tui.widgets.page import SubPage
from dld_tui.widgets.param_form import ParamForm

if TYPE_CHECKING:
    from textual.app import App


class SettingsBox(Frame, Vertical):
    """The frame of the form."""


class SettingsScreen(SubPage):
    """Changes show at once; F5 writes them, Esc takes them back."""

    SCOPE = "settings"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("settings")
    CSS_PATH = "../styles/form.tcss"
    tab_title = "settings"
    HELP = (
        "A change shows at once. F5 writes it to config.toml, Esc takes it back. Keys are set in"
        " that file, in the table [keys]: id of a command = its keys, as edit.undo = 'u,ctrl+z'."
    )

    def __init__(self) -> None:
        super().__init__()
        self._before: Config | None = None

    def body(self) -> Iterable[Widget]:
        """Return the form."""
        self._before = host(self).config
        form = ParamForm(Config, to_json(self._before))
        box = SettingsBox(form)
        box.frame(f"Settings · {short(settings.config_path())}", "F5 save  Esc close")
        yield box

    def on_mount(self) -> None:
        """Go to the first field."""
        self.query_one(ParamForm).focus_first()

    def facts(self) -> set[str]:
        """Return whether the form may be saved."""
        forms = self.query(ParamForm)
        return super().facts() | ({"valid"} if forms and forms.first().valid else set())

    def on_param_form_edited(self, event: ParamForm.Edited) -> None:
        """Show the program as it would be."""
        self.refresh_bindings()
        changed = self._config()
        if changed is not None and changed != host(self).config:
            self._use(changed)

    def _config(self) -> Config | None:
        form = self.query_one(ParamForm)
        if self._before is None or not form.valid:
            return None
        return dataclasses.replace(self._before, **form.values())  # type: ignore[arg-type]

    def _use(self, config: Config) -> None:
        host(self).use_config(config)
        cast("App[int]", self.app).refresh_css(animate=False)
        self.refresh(layout=True)

    def action_save(self) -> None:
        """Write what differs from the defaults or from the file."""
        changed = self._config()
        if changed is None or self._before is None:
            return
        before, after = to_json(self._before), to_json(changed)
        differing = {name: value for name, value in after.items() if value != before[name]}
        try:
            if differing:
                settings.save(differing)
        except DldError as error:
            host(self).show_error(error)
            return
        self.notify("Saved" if differing else "Nothing changed", timeout=2)
        self.dismiss(None)

    def action_close(self) -> None:
        """Go back to what was set before."""
        if self._before is not None and host(self).config != self._before:
            self._use(self._before)
        self.dismiss(None)
