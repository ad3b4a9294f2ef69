"""The form of a batch modification: that of its activity, for the model as it is edited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from textual.containers import Horizontal
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.conversion.tensor_casting import KINDS, Selection, candidates
from dld_tui.core.document import Document
from dld_tui.core.errors import DldError
from dld_tui.core.params import is_same_file
from dld_tui.core.tensors.elements import element_type
from dld_tui.core.text import clip, fit, visible
from dld_tui.core.types import JSON
from dld_tui.screens.activity.form import ActivityBox, ActivityScreen, exists
from dld_tui.targets import registry as targets
from dld_tui.widgets.dialogs.search import PickItem, TickDialog
from dld_tui.widgets.forms.param_form import ChoiceField, FieldRow, ParamForm
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell.host import host

Items: TypeAlias = "Callable[[Mapping[str, JSON]], Iterator[PickItem]]"
"""Makes the items of a list, for the values of the other fields."""


def lists_of(document: Document, activity: str) -> dict[str, Items]:
    """Return by setting of a conversion what can be ticked for it."""

    def tensors(values: Mapping[str, JSON]) -> Iterator[PickItem]:
        return _tensors(document, values)

    def nodes(_: Mapping[str, JSON]) -> Iterator[PickItem]:
        return _nodes(document)

    known: dict[str, dict[str, Items]] = {
        "convert_tensors": {"filter": tensors},
        "convert_quantize": {"exclude": nodes},
        "convert_fp16": {"node_block": nodes},
        "convert_bf16": {"node_block": nodes},
    }
    return known.get(activity, {})


def _tensors(document: Document, values: Mapping[str, JSON]) -> Iterator[PickItem]:
    """Yield the tensors that the other settings of the form let through, each name once."""
    try:
        dtype = element_type(str(values.get("to") or "float16"))
        types = tuple(element_type(name) for name in _texts(values.get("types")))
    except DldError:
        return  # the form says what is wrong with it
    kinds = tuple(kind for kind in _texts(values.get("kinds")) if kind in KINDS) or KINDS
    least = values.get("least_bytes")
    chosen = Selection((), types, least if isinstance(least, int) else 0, kinds)
    seen = set[str]()
    for candidate in candidates(document, dtype, chosen):
        if candidate.name in seen:
            continue
        seen.add(candidate.name)
        tensor = candidate.tensor
        about = f"  {tensor.dtype} {fmt.shape(tensor.shape)}  {fmt.size(tensor.nbytes or 0)}"
        name = visible(candidate.name)
        yield PickItem(candidate.name, [(name, ""), (about, "dim")], f"{name} {tensor.dtype}")


def _nodes(document: Document) -> Iterator[PickItem]:
    for node in document.main.nodes:
        if node.name:
            name, op_type = visible(node.name), visible(node.op_type)
            yield PickItem(node.name, [(name, ""), (f"  {op_type}", "type")], f"{name} {op_type}")


def _texts(value: JSON) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


APPLY, WRITE = "apply it to this document", "write a file"
"""What becomes of the result."""
_KEYS = "{activity.run} run  {activity.tick} list  {activity.copy} copy  {page.close} close"
_LABEL, _PATH_CELLS = 19, 40
_RESULT = "result"


class ConvertForm(ActivityScreen):
    """Asks for the settings of a conversion and hands them on.

    Raises:
        DldError: The activity cannot be loaded here.
    """

    tab_title = "modify"
    HELP = (
        "Change the settings that you need; an empty field shows its default. {activity.run} "
        "converts the edited model in the background; {work.stop} cancels. The result replaces the "
        "model as one edit that {edit.undo} undoes, or goes to a file. {activity.copy} copies the "
        "command line that writes the file. In a field for tensor or node names, {activity.tick} "
        "shows a list to choose from."
    )

    def __init__(
        self,
        activity: str,
        values: Mapping[str, JSON],
        chosen: Callable[[Mapping[str, JSON], bool], None],
        lists: Mapping[str, Items] | None = None,
    ) -> None:
        """Make the form; `chosen` takes the settings, and whether the result is to be applied.

        `lists` makes what can be ticked for some settings.
        """
        super().__init__(activity, values)
        self._chosen = chosen
        self._lists = lists or {}

    def body(self) -> Iterable[Widget]:
        form = ParamForm(self.activity.request, self._remembered() | self.given)
        wanted = host(self).state.get("forms", _RESULT).get("is")
        result = Horizontal(
            Rows([[(fit("Result", _LABEL), "dim")]], classes="label"),
            ChoiceField((APPLY, WRITE), WRITE if wanted == WRITE else APPLY),
            id="target",
        )
        box = ActivityBox(result, form, self.guessed.rows, Rows([[]], id="command"))
        box.frame.show(self.activity.title, _KEYS)
        yield box

    @property
    def applies(self) -> bool:
        """Whether the result is to take the model's place."""
        return self.query_one("#target ChoiceField", ChoiceField).value == APPLY

    def own_reasons(self, values: Mapping[str, JSON]) -> dict[str, str]:
        """Return why no name of a file is asked for while none is written."""
        is_shown = bool(self.query("#target ChoiceField"))
        reasons = {"in_place": "choose 'apply it' instead"}
        if is_shown and self.applies:
            reasons["output"] = "no file is written"
        return reasons

    @property
    def missing(self) -> str:
        """What is missing before it can run, or why it cannot be written there."""
        values = self.asked_values()
        output, model = (Path(str(values.get(name) or "")) for name in ("output", "model"))
        if not self.applies and is_same_file(output.expanduser(), model):
            return "the output is the model that is open: apply the result to it instead"
        for row in self.query_one(ParamForm).rows.values():
            path = row.value()[0] if row.setting.param.kind in ("file", "folder") else None
            if path and not row.setting.required and not exists(str(path)):
                name = clip(visible(row.text), _PATH_CELLS, keep="middle")
                return f"{row.setting.param.label}: {name} is not there"
        return super().missing

    def asked_values(self) -> dict[str, JSON]:
        """Return the settings; what is applied needs no file."""
        values = super().asked_values()
        return values | {"output": self.given["output"]} if self.applies else values

    def _taken(self) -> list[str]:
        return [] if self.applies else super()._taken()

    def facts(self) -> set[str]:
        """Return whether it may be run; it runs here."""
        is_tickable = self._tickable is not None
        return super().facts() - {"targets"} | ({"tickable"} if is_tickable else set())

    @property
    def _tickable(self) -> FieldRow | None:
        """The row under the cursor, if what is meant can be ticked in a list."""
        row = self.focused.parent if self.focused is not None else None
        return row if isinstance(row, FieldRow) and row.setting.name in self._lists else None

    def action_tick(self) -> None:
        row = self._tickable
        if row is None:
            return
        form, name = self.query_one(ParamForm), row.setting.name
        present = row.value()[0]
        ticked = [str(one) for one in present] if isinstance(present, list) else []

        def done(chosen: list[str] | None) -> None:
            if chosen is not None:
                form.set_values({name: [*chosen]})

        items = self._lists[name](form.values())
        self.app.push_screen(TickDialog(row.setting.param.label, items, ticked), done)

    def on_descendant_focus(self) -> None:
        """Offer the list where there is one."""
        self.refresh_bindings()

    def _targets(self) -> list[str]:
        return [targets.LOCAL]

    def _target(self) -> str:
        return targets.LOCAL

    def _start(self, more: Mapping[str, JSON] | None = None) -> None:
        values = self.query_one(ParamForm).values() | dict(more or {})
        self._keep({name: value for name, value in values.items() if name != "output"})
        applies = self.applies
        host(self).state.put("forms", _RESULT, {"is": APPLY if applies else WRITE})
        self.dismiss(None)
        self._chosen(values, applies)
