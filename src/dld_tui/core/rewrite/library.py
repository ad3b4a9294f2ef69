"""The rules that are known: those that come with the program, and of other packages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.plugins import plugins
from dld_tui.core.rewrite.rule import Rule, parse_rules
from dld_tui.core.tables.table import Column
from dld_tui.core.text import visible

RULES: tuple[Column[Rule], ...] = (
    Column("name", "rule", lambda rule: rule.name),
    Column("about", "does", lambda rule: rule.about),
    Column("gains", "gains", lambda rule: rule.gains),
    Column("package", "package", lambda rule: rule.package or "dld"),
)


@cache
def own_rules() -> tuple[Rule, ...]:
    """Return the rules that come with the program."""
    text = (
        files(__package__).joinpath("data").joinpath("standard.rules").read_text(encoding="utf-8")
    )
    return tuple(parse_rules(text))


def known_rules() -> list[Rule]:
    """Return all rules that have names: our own, then those of entry points.

    An entry point of the group ``dld_tui.rules`` is the text of a file of rules. One that cannot be
    used is left out.
    """
    found = list(own_rules())
    names = {rule.name for rule in found}
    for plugin in plugins("rules", str):
        try:
            added = parse_rules(plugin.value or "")
        except UsageError:
            continue
        package = visible(plugin.package)
        found += (replace(rule, package=package) for rule in added if rule.name not in names)
        names.update(rule.name for rule in added)
    return found


def rules_of(words: Sequence[str]) -> list[Rule]:
    """Return the rules that words stand for: names, files, or the text of rules itself.

    Raises:
        UsageError: There is no such rule, or one is malformed.
        InputError: A file cannot be read.
    """
    known = {rule.name: rule for rule in known_rules()}
    found: list[Rule] = []
    for word in words:
        if word in known:
            found.append(known[word])
        elif "=>" in word:
            found += _numbered(parse_rules(word), found)
        elif word.startswith("@") or Path(word).is_file():
            found += _of_file(Path(word.removeprefix("@")))
        else:
            raise UsageError(
                f"there is no rule {word!r:.60}", hint=f"Known rules: {', '.join(known)}"
            )
    return found


def _numbered(rules: list[Rule], before: Sequence[Rule]) -> list[Rule]:
    """Give rules without a name of their own one that is free."""
    names = {rule.name for rule in before}
    if len(rules) == 1 and rules[0].name in names:
        return [replace(rules[0], name=f"{rules[0].name}-{len(before) + 1}")]
    return rules


def _of_file(path: Path) -> list[Rule]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(path)) from None
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8: {error.reason}", where=str(path)) from None
    try:
        return parse_rules(text)
    except UsageError as error:
        raise UsageError(error.message, where=str(path), hint=error.hint) from None
