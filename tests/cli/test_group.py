from __future__ import annotations

import sys
from types import ModuleType

import click
import pytest

from dld_tui.cli.group import LazyGroup
from dld_tui.core.command_line import CommandInfo


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> LazyGroup:
    module = ModuleType("lazy_example")
    module.command = click.Command("one", callback=lambda: 7)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lazy_example", module)
    table = (
        CommandInfo("one", "The first.", "lazy_example"),
        CommandInfo("absent", "Its module is not there.", "no_such_module"),
        CommandInfo("secret", "Not shown.", "lazy_example", hidden=True),
    )
    return LazyGroup(table, name="group")


def test_help_imports_no_command(group: LazyGroup) -> None:
    shown = group.get_help(click.Context(group))
    assert "absent  Its module is not there." in shown
    assert "secret" not in shown


def test_command_is_imported_when_it_runs(group: LazyGroup) -> None:
    assert group.main(["one"], standalone_mode=False) == 7
    assert group.main(["secret"], standalone_mode=False) == 7


def test_completion_offers_the_table_without_importing(group: LazyGroup) -> None:
    found = group.shell_complete(click.Context(group), "a")
    assert [(item.value, item.help) for item in found] == [("absent", "Its module is not there.")]


def test_unknown_name_is_a_usage_error(group: LazyGroup) -> None:
    with pytest.raises(click.UsageError, match="did you mean 'one'"):
        group.main(["on"], standalone_mode=False)
