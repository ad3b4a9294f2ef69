"""Rules: a pattern, and what takes its place.

::

    Mul(x, Sigmoid(x)) => Swish(x) where opset >= 24          another expression, or function text
    Transpose<perm = p>(&Transpose<perm = q>(x)) => Transpose<perm = compose(q, p)>(x)
    Mul(Conv(x, w), c) => Conv(x, {w * c})                    {…} is a constant that is worked out
    Dropout(x, ...) => bypass                                 or one of the actions

A file has several, each below a line with its name. A replacement may name the inputs of the
pattern, what is marked with ``&``, and nodes by their labels: ``c(x, w)`` is the operator of ``c``
with its attributes and other inputs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.files.source import read_text
from dld_tui.core.model.document.metadata import PRECISIONS
from dld_tui.core.model.rewrite.expression import TYPED, Expression, Reader, read_expression
from dld_tui.core.model.rewrite.pattern import (
    Body,
    BodyReader,
    Pattern,
    Variable,
    read_pattern,
    with_condition,
)
from dld_tui.core.process.confinement import require_allowed
from dld_tui.core.process.plugins import plugins, skip
from dld_tui.core.tables.table import Column
from dld_tui.core.text import clip, visible

ACTIONS = ("bypass", "cast", "delete", "function", "operator", "precision", "set")
_ACTION = re.compile(rf"({'|'.join(ACTIONS)})\b(?!\s*:)")
_KIND = re.compile(r"[A-Za-z_][\w.]*")
_HEAD = re.compile(r"^rule[ \t]+([\w-]+)[ \t]*:?[ \t]*(.*)$", re.MULTILINE)
_GAINS = re.compile(r"^gains[ \t]*:[ \t]*(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Action:
    """An action on the hits of a pattern, instead of a replacement."""

    kind: str
    """One of :data:`ACTIONS`."""
    name: str = ""
    """A precision, or an operator with its domain."""
    values: tuple[tuple[str, str, Expression], ...] = ()
    """What to set: the name of a node, empty for all of them, the attribute, and its value."""


@dataclass(frozen=True)
class Rewrite:
    """One pattern and what takes its place."""

    text: str
    pattern: Pattern
    replacement: Body | None = None
    action: Action | None = None

    @property
    def removes(self) -> bool:
        """Whether the nodes that are found go: others may be found again."""
        return self.action is None or self.action.kind in (
            "bypass",
            "delete",
            "function",
            "operator",
        )


@dataclass(frozen=True)
class Rule:
    """Rewrites of one purpose."""

    name: str
    rewrites: tuple[Rewrite, ...]
    about: str = ""
    """A sentence."""
    gains: str = ""
    """Which runtimes gain, and how."""
    package: str = ""
    """The package that adds it; empty for our own."""

    @property
    def needs_types(self) -> bool:
        """Whether types have to be known, which shape inference may have to find."""
        words = {word for rewrite in self.rewrites for word in re.findall(r"\w+", rewrite.text)}
        return bool(words & (TYPED | {"bypass"}))


def parse_rules(text: str) -> list[Rule]:
    """Return the rules of a text: those of a file, or a single one without a name.

    Raises:
        UsageError: One is malformed; says where.
    """
    heads = list(_HEAD.finditer(text))
    if not heads:
        return [Rule("rule", _rewrites(text))]
    if re.sub(r"#[^\n]*", "", text[: heads[0].start()]).strip():
        raise UsageError("a file of rules begins with a line such as 'rule my-rule: what it does'")
    rules: list[Rule] = []
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends, strict=True):
        name, body = head.group(1), text[head.end() : end]
        if any(rule.name == name for rule in rules):
            raise UsageError(f"there are two rules called {name!r}")
        gains = _GAINS.search(body)
        rest = _GAINS.sub("", body)
        try:
            rewrites = _rewrites(rest)
        except UsageError as error:
            raise UsageError(f"rule {name}: {error.message}", hint=error.hint) from None
        about = visible(head.group(2).strip())
        rules.append(Rule(name, rewrites, about, visible(gains.group(1).strip()) if gains else ""))
    return rules


@lru_cache(256)  # our own rules, whose text is read for a preview, an edit and a script
def _rewrites(text: str) -> tuple[Rewrite, ...]:
    reader = Reader(text)
    rewrites: list[Rewrite] = []
    while not reader.is_done:
        rewrites.append(_rewrite(reader))
        reader.take(";")
    if not rewrites:
        raise UsageError("there is no rule", hint="Write for example: Identity(x) => x")
    return tuple(rewrites)


def _rewrite(reader: Reader) -> Rewrite:
    reader.space()
    start = reader.at
    pattern = read_pattern(reader)
    if not reader.take("=>"):
        raise reader.error("=> and what takes the place of the pattern is expected")
    action, body = None, None
    if reader.match(_ACTION) is not None:
        action = _action(reader, pattern)
    else:
        labels = frozenset(call.label for call in pattern.body.calls if call.label)
        body = BodyReader(reader, is_pattern=False, known=pattern.names, labels=labels).body()
    pattern = with_condition(reader, pattern)
    if body is not None:
        body = _fitting(pattern, body)
    text = reader.text[start : reader.at].strip()
    _require_ending(pattern, body, text)
    return Rewrite(text, pattern, body, action)


def _fitting(pattern: Pattern, body: Body) -> Body:
    """Return a replacement whose results are in the order of the pattern's outputs."""
    wanted = pattern.body.outputs
    produced = {name for call in body.calls for name in call.outputs}
    if all(name in produced for name in wanted):
        body = replace(body, results=tuple(Variable(name) for name in wanted))
    if len(body.results) != len(wanted):
        raise UsageError(
            f"the pattern has {len(wanted)} outputs and what takes its place {len(body.results)}"
        )
    allowed = set(pattern.body.inputs) | pattern.body.shared
    arguments = [item for call in body.calls for item in call.inputs] + list(body.results)
    for item in arguments:
        if isinstance(item, Variable) and item.name not in produced and item.name not in allowed:
            if item.name == "_" or item.name not in pattern.names:
                raise UsageError(f"the pattern has no value {item.name!r:.60} to take")
            raise UsageError(
                f"{item.name!r:.60} is inside the pattern and goes with it",
                hint="Put & before the operator that makes it, so that it may stay",
            )
    return body


def _require_ending(pattern: Pattern, body: Body | None, text: str) -> None:
    """Refuse a replacement that is the pattern itself."""
    if body is None or pattern.conditions or any(call.attributes for call in body.calls):
        return
    after = sorted(repr((call.kinds, call.attributes, len(call.inputs))) for call in body.calls)
    for variant in pattern.variants:
        calls = variant.body.calls
        before = sorted(repr((call.kinds, call.attributes, len(call.inputs))) for call in calls)
        if before != after:
            continue
        raise UsageError(
            f"{clip(visible(text), 60)!r} never ends: it rewrites its own results",
            hint="Add a condition that no longer holds afterwards",
        )


def _action(reader: Reader, pattern: Pattern) -> Action:
    kind = reader.word()
    if kind in ("bypass", "delete"):
        return Action(kind)
    reader.expect("(")
    if kind == "set":
        values = []
        while not reader.take(")"):
            values.append(_setting(reader, pattern))
            if not reader.take(",") and not reader.sees(")"):
                raise reader.error("',' or ')' is expected")
        if not values:
            raise reader.error("an attribute and a value are expected")
        return Action(kind, values=tuple(values))
    match = reader.match(_KIND)
    if match is None:
        expected = (
            "a precision" if kind in ("cast", "precision") else "an operator, such as my.Name,"
        )
        raise reader.error(f"{expected} is expected")
    reader.at = match.end()
    name = match.group()
    if kind in ("cast", "precision") and name not in PRECISIONS:
        known = ", ".join(PRECISIONS)
        raise UsageError(f"there is no precision {name!r:.40}", hint=f"Known: {known}")
    reader.expect(")")
    return Action(kind, name)


def _setting(reader: Reader, pattern: Pattern) -> tuple[str, str, Expression]:
    name, label = reader.word("an attribute"), ""
    if reader.take("."):
        label, name = name, reader.word("an attribute")
        if label not in {call.label for call in pattern.body.calls}:
            raise UsageError(f"no node of the pattern is called {label!r:.40}")
    reader.expect("=")
    value = read_expression(reader, pattern.names)
    if unknown := sorted({n.removeprefix("@") for n in value.names} - pattern.names - {"opset"}):
        raise UsageError(f"the pattern has no {unknown[0]!r:.60}, which the value names")
    return label, name, value


def text_of_rules(rules: Sequence[Rule]) -> str:
    """Return the text of rules, from which :func:`parse_rules` makes them again."""
    return "\n\n".join(
        f"rule {rule.name}: {rule.about}\n"
        + "\n;\n".join(rewrite.text for rewrite in rule.rewrites)
        for rule in rules
    )


RULES: tuple[Column[Rule], ...] = (
    Column("name", "rule", lambda rule: rule.name),
    Column("about", "does", lambda rule: rule.about),
    Column("gains", "gains", lambda rule: rule.gains),
    Column("package", "package", lambda rule: rule.package or "dld"),
)


@cache
def _own_texts() -> dict[str, str]:
    """Return the text of each rule that comes with the program: few are needed at a time."""
    file = files(__package__).joinpath("data").joinpath("standard.rules")
    parts = re.split(r"^(?=rule[ \t])", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {head.group(1): part for part in parts if (head := _HEAD.match(part)) is not None}


@cache
def own_rule(name: str) -> Rule:
    """Return one of the rules that come with the program."""
    return parse_rules(_own_texts()[name])[0]


def own_rules() -> tuple[Rule, ...]:
    """Return the rules that come with the program."""
    return tuple(map(own_rule, _own_texts()))


def _added_rules() -> dict[str, Rule]:
    """Return the rules of other packages by name.

    An entry point of the group ``dld_tui.rules`` is the text of a file of rules. One that cannot be
    used is left out.
    """
    rules: dict[str, Rule] = {}
    for plugin in plugins("rules", str):
        try:
            added = parse_rules(plugin.value)
        except UsageError as error:
            skip("rules", plugin, str(error))
            continue
        package = visible(plugin.package)
        for rule in added:
            if rule.name not in _own_texts():
                rules.setdefault(rule.name, replace(rule, package=package))
    return rules


def known_rules() -> list[Rule]:
    """Return all rules that have names: our own, then those of entry points."""
    return [*own_rules(), *_added_rules().values()]


def rule_names() -> list[str]:
    """Return the names of :func:`known_rules`."""
    return [*_own_texts(), *_added_rules()]


def rules_of(words: Sequence[str]) -> list[Rule]:
    """Return the rules for words: names, files, or the text of rules itself.

    Raises:
        UsageError: There is no such rule, one is malformed, or an agent may not read a file.
        InputError: A file cannot be read.
    """
    added = _added_rules()
    rules: list[Rule] = []
    for word in words:
        if word in _own_texts():
            rules.append(own_rule(word))
        elif word in added:
            rules.append(added[word])
        elif "=>" in word:
            rules += _numbered(parse_rules(word), rules)
        elif word.startswith("@") or Path(word).is_file():
            rules += _of_file(Path(word.removeprefix("@")))
        else:
            raise UsageError(
                f"there is no rule {word!r:.60}", hint=f"Known rules: {', '.join(rule_names())}"
            )
    return rules


def _numbered(rules: list[Rule], before: Sequence[Rule]) -> list[Rule]:
    """Give unnamed rules a free name."""
    names = {rule.name for rule in before}
    if len(rules) == 1 and rules[0].name in names:
        return [replace(rules[0], name=f"{rules[0].name}-{len(before) + 1}")]
    return rules


def _of_file(path: Path) -> list[Rule]:
    require_allowed(path)
    text = read_text(path)
    try:
        return parse_rules(text)
    except UsageError as error:
        raise UsageError(error.message, where=str(path), hint=error.hint) from None
