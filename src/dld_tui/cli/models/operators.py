"""``dld operators``: known operators and their documentation."""

from __future__ import annotations

import shutil
import sys

from dld_tui.cli.command import command_for, json_flag
from dld_tui.cli.output import write, write_json, write_table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document import operator_listing
from dld_tui.core.params import param
from dld_tui.core.process.terminal import is_terminal
from dld_tui.core.types import JSON

_WIDTH = 78
"""Text width without a terminal."""


@dataclass(frozen=True)
class Request:
    """The arguments and options of ``dld operators``."""

    name: str | None = param(None, label="Name", help="The operator.", positional=True)
    domain: str | None = param(
        None, label="Domain", metavar="DOMAIN",
        help="Only operators of this domain, such as com.microsoft.",
    )  # fmt: skip
    opset: int | None = param(
        None, label="Opset", minimum=1,
        help="Opset version; by default the newest.",
    )  # fmt: skip
    as_json: bool = json_flag()


@command_for("operators", Request)
def command(asked: Request) -> None:
    """List all operators, or print the documentation of one."""
    if asked.name is None:
        operators = operator_listing.all_operators(asked.domain, asked.opset)
        if asked.as_json:
            write_json(
                {"operators": [operator_listing.ListedOperator.of(item) for item in operators]}
            )
        else:
            write_table(operator_listing.operator_table(operators))
        return
    schemas = operator_listing.find(asked.name, asked.domain, asked.opset)
    if asked.as_json:
        documents: list[JSON] = [operator_listing.document(schema) for schema in schemas]
        write_json({"operators": documents})
        return
    width = shutil.get_terminal_size().columns - 1 if is_terminal(sys.stdout) else _WIDTH
    for number, schema in enumerate(schemas):
        if number:
            write()
        for line in operator_listing.text(schema, max(40, width)):
            write(line)
