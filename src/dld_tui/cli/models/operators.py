"""``dld operators``: known operators and their documentation."""

from __future__ import annotations

import shutil
import sys

import click

from dld_tui.cli.command import Command
from dld_tui.cli.output import write, write_json, write_table
from dld_tui.core.process.terminal import is_terminal
from dld_tui.core.types import JSON

_WIDTH = 78
"""Text width without a terminal."""


@click.command("operators", cls=Command)
@click.argument("name", required=False)
@click.option(
    "--domain", metavar="DOMAIN", help=("Only operators of this domain, such as com.microsoft.")
)
@click.option("--opset", type=click.IntRange(min=1), help="Opset version; by default the newest.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(name: str | None, domain: str | None, opset: int | None, as_json: bool) -> None:
    """List all operators, or print the documentation of one."""
    from dld_tui.core.operators import listing

    if name is None:
        operators = listing.all_operators(domain, opset)
        if as_json:
            write_json({"operators": [listing.ListedOperator.of(item) for item in operators]})
        else:
            write_table(listing.operator_table(operators))
        return
    schemas = listing.find(name, domain, opset)
    if as_json:
        documents: list[JSON] = [listing.document(schema) for schema in schemas]
        write_json({"operators": documents})
        return
    width = shutil.get_terminal_size().columns - 1 if is_terminal(sys.stdout) else _WIDTH
    for number, schema in enumerate(schemas):
        if number:
            write()
        for line in listing.text(schema, max(40, width)):
            write(line)
