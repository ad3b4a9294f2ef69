"""A comparison as lines of text, the same ones for the same models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.diff.model import Change, Field, ModelDiff, ScopeDiff
from dld_tui.core.text import visible

Part: TypeAlias = "tuple[str, str]"
"""(text that is fit to be shown, style): a status of a change, ``head``, ``quiet`` or nothing."""

MARKS = {"added": "+", "removed": "-", "changed": "~", "renamed": ">", "moved": "^"}
"""The first character of a line, by status."""
_PLURALS = {"model": "model", "graph": "graph", "order": "order"}
_MOST_RENAMED, _RENAMED_SHOWN = 8, 3
"""With more items of a kind in a graph that only have other names, so many are shown; a summary
is what a reader wants of a model that was exported again. JSON has all of them."""
_MOST_TYPES = 8
"""From here on, types that only one model declares are counted instead of listed."""


def lines(diff: ModelDiff) -> Iterator[list[Part]]:
    """Yield the lines of a comparison; none when nothing differs."""
    if diff.same:
        return
    yield [(f"--- {visible(diff.old)}", "head")]
    yield [(f"+++ {visible(diff.new)}", "head")]
    if diff.changes:
        yield [("model", "head")]
        for change in diff.changes:
            yield from _model_lines(change)
    for scope in diff.scopes:
        if scope.changes:
            yield [(scope_title(scope), "head")]
            yield from _scope_lines(scope)
    yield []
    yield [(summary(diff), "")]


def scope_title(scope: ScopeDiff) -> str:
    """Return the path of a scope, of both models where they differ. Fit to be shown."""
    texts = [visible(" › ".join(path)) or "main" for path in (scope.old_path, scope.new_path)]
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} -> {texts[1]}"


def summary(diff: ModelDiff) -> str:
    """Return for example ``nodes: 1 added, 2 changed; initializers: 1 changed``."""
    if diff.same:
        return "no differences"
    parts = []
    for kind, found in diff.counts().items():
        figures = ", ".join(f"{fmt.count(count)} {status}" for status, count in found.items())
        parts.append(f"{_PLURALS.get(kind, kind + 's')}: {figures}")
    return "; ".join(parts)


def title(change: Change) -> str:
    """Return the names of an item: both where they differ. Fit to be shown."""
    if change.old is not None and change.new is not None and change.old != change.new:
        return f"{visible(change.old)} -> {visible(change.new)}"
    return visible(change.name)


def field_text(field: Field) -> str:
    """Return a difference as one line. Fit to be shown."""
    name = visible(field.name)
    if field.old is None and field.new is None:
        return f"{name} differs"
    if field.old is None:
        # What has no old text is either new or says itself how it differs.
        return f"{name}: {visible(field.new or '')}"
    return (
        f"{name}: {visible(field.old)} -> {visible(field.new) if field.new is not None else 'none'}"
    )


def shown_fields(change: Change) -> list[Field]:
    """Return the differences that the names of the item do not say."""
    if change.kind == "value":
        return []
    return [field for field in change.fields if field.name != "name" or change.kind == "graph"]


def _model_lines(change: Change) -> Iterator[list[Part]]:
    if change.kind == "function":
        about = f"  {visible(change.about)}"
        yield [(f"  {MARKS[change.status]} function {title(change)}", change.status), (about, "")]
        return
    for field in change.fields:
        yield [(f"  {MARKS[field_status(field)]} {_pair_text(field)}", field_status(field))]


def field_status(field: Field) -> str:
    """Return ``added``, ``removed`` or ``changed``."""
    if field.old is None and field.new is not None:
        return "added"
    return "removed" if field.old is not None and field.new is None else "changed"


def _pair_text(field: Field) -> str:
    status = field_status(field)
    if status == "removed":
        return f"{visible(field.name)}: {visible(field.old or '')}"
    return field_text(field)


def _scope_lines(scope: ScopeDiff) -> Iterator[list[Part]]:
    one_sided = Counter(
        change.status
        for change in scope.changes
        if change.kind == "value" and change.status in ("added", "removed")
    )
    counted: set[str] = set()
    renamed = Counter(change.kind for change in scope.changes if change.status == "renamed")
    told: Counter[str] = Counter()
    for change in scope.changes:
        if change.status == "renamed" and renamed[change.kind] > _MOST_RENAMED:
            told[change.kind] += 1
            if told[change.kind] <= _RENAMED_SHOWN:
                yield next(change_lines(change))
            elif told[change.kind] == _RENAMED_SHOWN + 1:
                more = fmt.count(renamed[change.kind] - _RENAMED_SHOWN)
                yield [(f"  {MARKS['renamed']} {more} more {change.kind}s are renamed", "renamed")]
            continue
        if change.kind == "value" and one_sided[change.status] > _MOST_TYPES:
            if change.status not in counted:
                counted.add(change.status)
                number = fmt.count(one_sided[change.status])
                text = f"  {MARKS[change.status]} declared types of {number} values"
                yield [(text, change.status)]
            continue
        yield from change_lines(change)


def change_lines(change: Change) -> Iterator[list[Part]]:
    """Yield the lines of one change of a scope."""
    mark = MARKS[change.status]
    if change.kind == "order":
        yield [(f"  {mark} order", change.status), (f"  {visible(change.about)}", "")]
        return
    if change.kind in ("graph", "function"):
        for field in change.fields:
            status = field_status(field)
            yield [(f"  {MARKS[status]} {change.kind} {_pair_text(field)}", status)]
        return
    kind = "type of" if change.kind == "value" else change.kind
    about = visible(change.about)
    if change.kind == "value" and change.status == "changed":
        about = f"{visible(change.fields[0].old or '?')} -> {visible(change.fields[0].new or '?')}"
    if change.new_place is not None:
        about += f"  to {visible(' › '.join(change.new_place)) or 'main'}"
    yield [(f"  {mark} {kind} {title(change)}", change.status), (f"  {about}" if about else "", "")]
    for field in shown_fields(change):
        yield [(f"      {field_text(field)}", "")]
