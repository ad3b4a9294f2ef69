"""``dld find`` and ``dld match``: nodes by a condition, and patterns of operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.errors import ExitStatus, InputError
from dld_tui.core.rewrite.expression import Expression
from dld_tui.core.rewrite.functions import TYPED
from dld_tui.core.rewrite.matcher import Hit, Matcher
from dld_tui.core.rewrite.pattern import parse_pattern
from dld_tui.core.rewrite.query import parse_columns, parse_query, shown_value
from dld_tui.core.rewrite.views import NodeView
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

_MODEL = click.argument("model", type=click.Path(path_type=Path))
_COUNT = click.option("--count", "only_count", is_flag=True, help="Print only how many there are.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def text_of_argument(text: str) -> str:
    """Return a text that was given, or that of a file: ``@FILE``.

    Raises:
        InputError: The file cannot be read.
    """
    if not text.startswith("@"):
        return text
    path = Path(text[1:])
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(path)) from None
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8: {error.reason}", where=str(path)) from None


def learn_types(document: Document, path: Path, needed: bool) -> None:
    """Infer the types of values where a condition asks for some that the model does not declare."""
    from dld_tui.cli.models.inference import infer

    if needed and any(
        name and scope.value_type(name) is None
        for scope in document.scopes()
        for node in scope.nodes
        for name in node.outputs
    ):
        infer(document, path)


@click.command("find")
@_MODEL
@click.argument("query")
@click.option(
    "--columns", multiple=True, metavar="EXPRESSION,…",
    help="Show these beside each node, such as 'out.shape, group'.",
)  # fmt: skip
@_COUNT
@_JSON
def find(model: Path, query: str, columns: tuple[str, ...], only_count: bool, as_json: bool) -> int:
    """Find nodes by a condition, in bodies and functions too.

    QUERY is an operator and a condition, such as 'Conv where group > 1 and out.shape[1] % 8 != 0';
    * is any operator, and @FILE reads it from a file. Exit status 1 when no node was found.
    """
    wanted, shown = parse_query(text_of_argument(query)), parse_columns(columns)
    with closing(Document.open(model)) as document:
        types = wanted.needs_types or any(word in column.text for column in shown for word in TYPED)
        learn_types(document, model, types)
        nodes = list(wanted.nodes(document))
        readers = [(column.text, _reader(column)) for column in shown]
        _write_nodes(nodes, readers, only_count, as_json)
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
                **_node_json(node),
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
        found = value(node)
        return fmt.UNKNOWN if found is None else str(found)

    return text


def _operator(node: Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _node_json(node: Node) -> dict[str, JSON]:
    return {
        "scope": list(node.scope.path),
        "node": node.ref,
        "op_type": node.op_type,
        "domain": node.domain,
        "outputs": list(node.outputs),
    }


@click.command("match")
@_MODEL
@click.argument("pattern")
@_COUNT
@_JSON
def match(model: Path, pattern: str, only_count: bool, as_json: bool) -> int:
    """Find where operators are linked as in a pattern, in bodies and functions too.

    PATTERN is an expression of operators, such as 'Mul(x, Sigmoid(x))', or the text of an ONNX
    function; @FILE reads it from a file. Exit status 1 when there is no such place.
    """
    wanted = parse_pattern(text_of_argument(pattern))
    with closing(Document.open(model)) as document:
        learn_types(document, model, wanted.needs_types)
        search = Matcher(wanted)
        hits = list(search.hits(document))
        if search.given_up:
            places = fmt.plural(len(search.given_up), "node")
            narrate(f"{model}: around {places} there are too many ways to try them all")
        if as_json:
            write_json({"count": len(hits), **({} if only_count else {"hits": _hits_json(hits)})})
        elif only_count:
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
    narrate(fmt.plural(len(hits), "hit"))
