"""``dld find``, ``match`` and ``rewrite``: queries, patterns and rewrite rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dld_tui.cli.command import (
    also_written,
    command_for,
    force_flag,
    json_flag,
    output_file,
    preview_flag,
    written_file,
)
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.codec import encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ExitStatus, UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.source import read_text
from dld_tui.core.llm.folder import open_document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.rewrite.expression import TYPED, Expression
from dld_tui.core.model.rewrite.matcher import Hit, Matcher
from dld_tui.core.model.rewrite.pattern import parse_pattern
from dld_tui.core.model.rewrite.query import parse_columns, parse_query, shown_value
from dld_tui.core.model.rewrite.rule import RULES, known_rules, rules_of, text_of_rules
from dld_tui.core.model.rewrite.views import NodeView
from dld_tui.core.params import param
from dld_tui.core.process.confinement import require_allowed
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.edits.rewriting import RewriteResult


_MOST_REASONS = 10


def _list_rules(as_json: bool) -> int:
    if as_json:
        write_json({
            "rules": [
                {column.key: column.value(rule) for column in RULES} for rule in known_rules()
            ]
        })  # fmt: skip
    else:
        write_table(Table(RULES, known_rules()))
    return ExitStatus.DONE


@dataclass(frozen=True)
class RewriteRequest:
    """The arguments and options of ``dld rewrite``."""

    model: Path | None = param(
        None, label="Model", help="The ONNX model.", positional=True, metavar="MODEL"
    )
    rules: tuple[str, ...] = param(
        (),
        label="Rules",
        help="Names of rules, files of rules, or rules.",
        positional=True,
        metavar="RULES...",
    )
    output: Path | None = output_file()
    preview: bool = preview_flag()
    verify: bool = param(False, label="Verify", help="Run both models and compare their outputs.")
    script: Path | None = also_written("--script", "the edit as an edit script")
    only_list: bool = param(
        False, label="Only list", spellings=("--list",),
        help="List the built-in rules.",
    )  # fmt: skip
    force: bool = force_flag()
    as_json: bool = json_flag()


@command_for("rewrite", RewriteRequest)
def command(asked: RewriteRequest) -> int:
    """Apply rewrite rules until none matches, including subgraphs and functions.

    RULES are names of built-in rules, files of rules, or a rule such as 'Identity(x) => x'. Exit
    status 1 if nothing was replaced, if the result is not valid or ONNX Runtime refuses it unlike
    the model, or with --verify if the outputs differ.
    """
    from dld_tui.api.inference import infer_missing
    from dld_tui.api.soundness import write_edited
    from dld_tui.core.model.edits.rewriting import preview as preview_of
    from dld_tui.core.model.edits.rewriting import rewrite

    if asked.only_list:
        return _list_rules(asked.as_json)
    if asked.model is None or not asked.rules:
        missing = "MODEL" if asked.model is None else "RULES..."
        raise click.UsageError(f"Missing argument '{missing}'.")
    wanted = rules_of(asked.rules)
    output = written_file(asked.output, asked.preview)
    if asked.preview and (asked.verify or asked.script is not None):
        raise UsageError("--preview writes nothing: omit --verify and --script")
    require_free((output, asked.script), asked.force)
    text = text_of_rules(wanted)
    with closing(open_document(asked.model)) as document:
        if any(rule.needs_types for rule in wanted):
            infer_missing(document, asked.model, narrate)
        rewritten = preview_of(document, text)
        total = sum(rewritten.counts.values())
        problem = ""
        if output is not None:
            problem = write_edited(
                document, asked.model, output, rewrite(rules=text), asked.script, narrate
            )
    is_compared = asked.verify and output is not None and not problem
    verdict = _verified(asked.model, output) if is_compared and output is not None else None
    if asked.as_json:
        write_json(_json(rewritten, output, verdict, problem))
    else:
        _write(rewritten, asked.preview)
        if verdict is not None:
            write(
                "The outputs are equal."
                if verdict.is_good
                else "The outputs differ: see dld accuracy"
            )
    for reason, number in list(rewritten.refused.items())[:_MOST_REASONS]:
        narrate(f"{asked.model}: left unchanged: {reason}" + (f" ({number} times)" * (number > 1)))
    if len(rewritten.refused) > _MOST_REASONS:
        narrate(
            f"{asked.model}: and {fmt.plural(len(rewritten.refused) - _MOST_REASONS, 'place')} more"
        )
    is_fine = total and not problem and (verdict is None or verdict.is_good)
    return ExitStatus.DONE if is_fine else ExitStatus.FOUND


def _verified(model: Path, output: Path) -> Any:
    """Run both models on the same inputs and return the comparison."""
    from dld_tui.activities.accuracy.job import Request
    from dld_tui.cli.jobs.activity import run_activity

    return run_activity("accuracy", Request(model=model, against=output))


def _json(
    rewritten: RewriteResult, output: Path | None, verdict: Any, problem: str
) -> dict[str, Any]:
    return {
        "path": None if output is None else str(output),
        "rewritten": sum(rewritten.counts.values()),
        "rules": rewritten.counts,
        "hits": [
            {"rule": rule, "scope": list(place), "removed": went, "added": came}
            for rule, place, went, came in rewritten.hits
        ],
        "refused": [{"reason": reason, "count": n} for reason, n in rewritten.refused.items()],
        "verified": None if verdict is None else bool(verdict.is_good),
        "unsound": problem or None,
    }


def _write(rewritten: RewriteResult, preview: bool) -> None:
    for rule, place, went, came in rewritten.hits if preview else ():
        write(visible(f"@@ {' › '.join(place) or 'main'}: {rule}"))
        for sign, lines in (("-", went), ("+", came)):
            for line in lines:
                write(visible(f"{sign} {line}"))
    for rule, number in rewritten.counts.items():
        write(f"{visible(rule)}: {fmt.plural(number, 'place')}")
    if not rewritten.counts:
        write("nothing to replace")


def text_of_argument(text: str) -> str:
    """Return a given text, or that of the file in ``@FILE``.

    Raises:
        InputError: The file cannot be read.
        UsageError: An agent may not read it.
    """
    if not text.startswith("@"):
        return text
    path = Path(text[1:])
    require_allowed(path)
    return read_text(path)


@dataclass(frozen=True)
class FindRequest:
    """The arguments and options of ``dld find``."""

    model: Path = param(label="Model", help="The ONNX model.", positional=True)
    query: str = param(label="Query", help="What to find.", positional=True)
    columns: tuple[str, ...] = param(
        (), label="Columns", metavar="EXPRESSION,…",
        help="Show these fields of each node, such as 'out.shape, group'.",
    )  # fmt: skip
    count: bool = param(False, label="Count", help="Print only the number of matches.")
    as_json: bool = json_flag()


@command_for("find", FindRequest)
def find(asked: FindRequest) -> int:
    """Find nodes by a condition, including subgraphs and functions.

    QUERY is an operator and a condition, such as 'Conv where group > 1 and out.shape[1] % 8 != 0';
    * matches any operator, and @FILE reads the query from a file. Exit status 1 if no node matches.
    """
    from dld_tui.api.inference import infer_missing

    wanted, shown = parse_query(text_of_argument(asked.query)), parse_columns(asked.columns)
    with closing(open_document(asked.model)) as document:
        types = wanted.needs_types or any(word in column.text for column in shown for word in TYPED)
        if types:
            infer_missing(document, asked.model, narrate)
        nodes = list(wanted.nodes(document))
        readers = [(column.text, _reader(column)) for column in shown]
        _write_nodes(nodes, readers, asked.count, asked.as_json)
    return ExitStatus.DONE if nodes else ExitStatus.FOUND


def _reader(column: Expression) -> Callable[[Node], Any]:
    return lambda node: shown_value(column.value(NodeView(node).field))


def _write_nodes(
    nodes: Sequence[Node],
    columns: Sequence[tuple[str, Callable[[Node], Any]]],
    only_count: bool,
    as_json: bool,
) -> None:
    if as_json:
        rows: list[JSON] = [
            {
                **encode(_FoundNode.of(node)),
                **({"columns": {name: value(node) for name, value in columns}} if columns else {}),
            }
            for node in nodes
        ]
        write_json({"count": len(rows), **({} if only_count else {"nodes": rows})})
        return
    if only_count:
        write(str(len(nodes)))
        return
    more = [
        Column(f"column{at}", visible(name), value, text=_cell(value), align="left")
        for at, (name, value) in enumerate(columns)
    ]
    about: list[Column[Node]] = [
        Column("node", "node", lambda node: node.ref, keep="end"),
        Column("operator", "operator", _operator),
        *more,
    ]
    if any(node.scope.path for node in nodes):
        about.insert(
            0, Column("scope", "scope", lambda node: " › ".join(node.scope.path), keep="end")
        )
    if nodes:
        write_table(Table(about, nodes))
    narrate(fmt.plural(len(nodes), "node"))


def _cell(value: Callable[[Node], Any]) -> Callable[[Node], str]:
    def text(node: Node) -> str:
        cell = value(node)
        return fmt.UNKNOWN if cell is None else str(cell)

    return text


def _operator(node: Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


@dataclass(frozen=True)
class _FoundNode:
    """A node as JSON. All texts are untrusted."""

    scope: list[str]
    node: str
    op_type: str
    domain: str
    outputs: list[str]

    @classmethod
    def of(cls, node: Node) -> _FoundNode:
        return cls([*node.scope.path], node.ref, node.op_type, node.domain, [*node.outputs])


@dataclass(frozen=True)
class MatchRequest:
    """The arguments and options of ``dld match``."""

    model: Path = param(label="Model", help="The ONNX model.", positional=True)
    pattern: str = param(label="Pattern", help="What to find.", positional=True)
    count: bool = param(False, label="Count", help="Print only the number of matches.")
    as_json: bool = json_flag()


@command_for("match", MatchRequest)
def match(asked: MatchRequest) -> int:
    """Find a pattern of connected operators, including subgraphs and functions.

    PATTERN is an expression of operators, such as 'Mul(x, Sigmoid(x))', or the text of an ONNX
    function; @FILE reads it from a file. Exit status 1 if there is no match.
    """
    from dld_tui.api.inference import infer_missing

    wanted = parse_pattern(text_of_argument(asked.pattern))
    with closing(open_document(asked.model)) as document:
        if wanted.needs_types:
            infer_missing(document, asked.model, narrate)
        search = Matcher(wanted)
        hits = list(search.hits(document))
        if search.given_up:
            places = fmt.plural(len(search.given_up), "node")
            narrate(f"{asked.model}: too many combinations around {places}: not all were tried")
        if asked.as_json:
            write_json({"count": len(hits), **({} if asked.count else {"hits": _hits_json(hits)})})
        elif asked.count:
            write(str(len(hits)))
        else:
            _write_hits(hits)
    return ExitStatus.DONE if hits else ExitStatus.FOUND


def _hits_json(hits: Sequence[Hit]) -> list[JSON]:
    return [
        {
            "scope": list(hit.scope.path),
            "nodes": [node.ref for node in hit.nodes],
            "values": {name: value for name, value in hit.values.items() if name[0] != "%"},
            "attributes": {name: shown_value(value) for name, value in hit.attributes.items()},
            "problem": hit.problem or None,
        }
        for hit in hits
    ]


def _write_hits(hits: Sequence[Hit]) -> None:
    columns: list[Column[Hit]] = [
        Column("nodes", "nodes", lambda hit: ", ".join(node.ref for node in hit.nodes), keep="end"),
        Column("operators", "operators", lambda hit: " ".join(map(_operator, hit.nodes))),
        Column("problem", "cannot be replaced", lambda hit: hit.problem),
    ]
    if not any(hit.problem for hit in hits):
        columns.pop()
    if any(hit.scope.path for hit in hits):
        columns.insert(
            0, Column("scope", "scope", lambda hit: " › ".join(hit.scope.path), keep="end")
        )
    if hits:
        write_table(Table(columns, hits))
    narrate(fmt.plural(len(hits), "match", "matches"))
