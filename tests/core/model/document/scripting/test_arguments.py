"""Arguments of edits that a script got wrong are refused by name, and leave no trace."""

from __future__ import annotations

import contextlib
import copy
import random
from typing import Any

import pytest

from dld_tui.core.errors import DldError, EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.edit_registry import known_edits
from dld_tui.core.model.document.scripting.arguments import MOST_DEPTH, check_arguments
from dld_tui.core.model.edits.restore import inverse_arguments
from tests.core.model.edits.properties import PROPERTIES
from tests.support.drawn_models import drawn_model
from tests.support.sessions import bytes_of


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


EDITS = [prop for prop in PROPERTIES if prop.edit not in ("restore", "set_external_entries")]
WRONG: list[Any] = [
    None, True, 0, -1, 3, 2**31, 2**62, 2**63, -(2**63), 2**64, 10**30, 1.5, float("nan"), 1e400,
    "", "a", "x", "float32", "\ud800", "\udcff", "\x00", "#0", "#99999999999", ">", "choose",
    [], [None], ["a"], [[]], [[[], "first"]], [["a", "b", "c"]], [1, 2], [-1], [2**40] * 3, {},
    {"a": 1}, {"kind": "int"}, {"kind": "zeros", "value": 1}, {"file": "/nowhere"},
    {"raw": "AA=="}, {"initializer": "w"}, {"initializer": 3}, nested(200), [nested(3)],
    {"dtype": "float32", "dims": [2**40], "raw": ""},
]  # fmt: skip
"""What stands in the place of an argument, or of a part of one."""


def mutated(arguments: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Return arguments with one to three values somewhere in them exchanged, or keys."""
    wrong = copy.deepcopy(arguments)
    for _ in range(draw.randint(1, 3)):
        container: Any = wrong
        while True:
            keys = list(container) if isinstance(container, dict) else list(range(len(container)))
            if not keys:
                break
            key = draw.choice(keys)
            inner = container[key]
            if isinstance(inner, (dict, list)) and inner and draw.random() < 0.6:
                container = inner
                continue
            how = draw.random()
            if how < 0.08 and isinstance(container, dict):
                del container[key]
            elif how < 0.12 and isinstance(container, dict):
                container[draw.choice(["other", "value", "scope"])] = draw.choice(WRONG)
            else:
                container[key] = copy.deepcopy(draw.choice(WRONG))
            break
    return wrong


def try_wrong_arguments(seed: int, count: int) -> int:
    """Apply edits with wrong arguments; return how many were refused."""
    draw, refused = random.Random(seed), 0
    for number in range(count):
        if number % 40 == 0:
            document = Document(drawn_model(seed + number))
            document.new_data_limit = 1 << 20
            before = bytes_of(document)
        document.new_data = 0
        prop = draw.choice(EDITS)
        arguments = prop.draw(document, draw, 3)
        while document.history.done:  # what was done for the edit
            document.undo()
        if arguments is None:
            continue
        edit = prop.edit
        if draw.random() < 0.1:  # what the journal writes of an undo
            with contextlib.suppress(DldError):
                transaction = document.apply(edit, **arguments)
                if transaction.primitives:
                    arguments = inverse_arguments(document, transaction)
                    document.history.done.pop()
                    edit = "restore"
        wrong = mutated(arguments, draw)
        try:
            document.apply(edit, **wrong)
        except DldError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"{edit} {str(wrong)[:600]}: {error!r}") from error
        while document.history.done:
            document.undo()
        assert bytes_of(document) == before, f"{edit} {str(wrong)[:600]}"
    return refused


def test_wrong_arguments_are_refused_and_leave_no_trace() -> None:
    assert try_wrong_arguments(seed=1, count=200) > 80


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 4))
def test_many_wrong_arguments(seed: int) -> None:
    assert try_wrong_arguments(seed=seed, count=2_500) > 1_000


@pytest.mark.parametrize(
    ("edit", "arguments", "reason"),
    [
        ("add_input", {"scope": [], "name": "q", "dims": 3}, "dims must be a list .* or null"),
        ("add_input", {"scope": [], "name": "q", "dims": [1.5]}, "dims must be a list"),
        ("add_input", {"scope": "main", "name": "q"}, "scope must be a list of text"),
        ("add_input", {"scope": []}, "the argument name is missing"),
        ("add_input", {"scope": [], "name": "q", "nam": 1}, "has no argument nam"),
        ("rename_node", {"scope": [], "node": "first", "name": "\ud800"}, "UTF-8"),
        ("set_metadata", {"key": "k", "value": nested(MOST_DEPTH + 1)}, "nested deeper"),
        ("change_dimensions", {"dims": {"N": 4, "x:0": True}}, "or text, not true at 'x:0'"),
        ("delete_nodes", {"nodes": ["a", 7]}, "a list of text, not 7 at 1"),
        ("set_positions", {"scope": [], "positions": []}, "positions must be an object or null"),
        ("delete_nodes", {"scope": [], "nodes": ["a"], "reconnect": 1}, "true or false"),
        ("delete_nodes", {"nodes": {"a": 1}}, "a list of text, not an object"),
        ("delete_nodes", {"nodes": 7}, "a list of text, not 7"),
        ("change_dimensions", {"dims": [4]}, r"not \[4\]"),
        ("set_model_field", {"field": "doc_string", "value": 2**70}, "64 bits"),
    ],
)
def test_what_is_said_of_a_wrong_argument(edit: str, arguments: Any, reason: str) -> None:
    with pytest.raises(EditError, match=reason):
        check_arguments(edit, known_edits()[edit], arguments)
