from __future__ import annotations

import pytest
from textual.binding import Binding

from dld_tui.commands import in_scope
from dld_tui.widgets.shell import command_dispatch as dispatch
from dld_tui.widgets.shell.command_dispatch import (
    bindings_for,
    hint,
)


def test_bindings_have_ids_help_and_the_shown_key() -> None:
    bindings = bindings_for("workspace")
    rows = [row for row in in_scope("workspace") if row.keys]
    assert len(bindings) == len(rows)
    for binding, row in zip(bindings, rows, strict=True):
        assert isinstance(binding, Binding)
        assert (binding.id, binding.tooltip, binding.show) == (row.id, row.help, row.footer)


def test_a_hint_has_the_keys_that_were_told_last() -> None:
    try:
        dispatch.use_keys({"work.stop": "f9,escape"})
        assert hint("{work.stop} stops, {list.activate} opens") == "F9 stops, Enter opens"
    finally:
        dispatch.use_keys({})
    assert hint("{work.stop} stops") == "Esc stops"
    with pytest.raises(KeyError):
        hint("{no.command} does")
