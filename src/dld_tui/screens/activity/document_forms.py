"""Activities on the open model: forms of conversions and runs, their jobs, custom tools."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.conversion.tensor_casting import KINDS, CastSelection, candidates
from dld_tui.core.errors import CancelledError, DldError, EditError, UsageError
from dld_tui.core.events import Event, Failed, Finished, Log
from dld_tui.core.files.model_set import discard_view, external_view
from dld_tui.core.files.temporary import discard, hold_folder
from dld_tui.core.llm.folder import open_document
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.parts.merging import propose_links, why_unfit
from dld_tui.core.model.tensors.elements import element_type
from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.core.params import from_json, is_same_file, output_path
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.activity.form import ActivityBox, ActivityScreen, exists
from dld_tui.screens.activity.jobs import JobInput, JobScreen
from dld_tui.screens.results.pages import ModelState, ResultModel, model_name
from dld_tui.screens.results.views import View
from dld_tui.screens.workspace.jobs import Jobs
from dld_tui.targets import registry as targets
from dld_tui.widgets.dialogs.search import PickItem, TickDialog
from dld_tui.widgets.forms.command_rows import CommandRows
from dld_tui.widgets.forms.param_form import ChoiceField, FieldRow, LabelledRow, ParamForm
from dld_tui.widgets.lists.styled import Piece
from dld_tui.widgets.shell.page import Page, host
from dld_tui.widgets.tasks import task

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
        "convert_merge": {
            "others": lambda _: _models_beside(document),
            "map": lambda values: _links(document, values),
        },
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
    chosen = CastSelection((), types, least if isinstance(least, int) else 0, kinds)
    names = set[str]()
    for candidate in candidates(document, dtype, chosen):
        if candidate.name in names:
            continue
        names.add(candidate.name)
        tensor = candidate.tensor
        about = f"  {tensor.dtype} {fmt.shape(tensor.shape)}  {fmt.size(tensor.nbytes or 0)}"
        name = visible(candidate.name)
        yield PickItem(candidate.name, [(name, ""), (about, "dim")], f"{name} {tensor.dtype}")


def _nodes(document: Document) -> Iterator[PickItem]:
    for node in document.main.nodes:
        if node.name:
            name, op_type = visible(node.name), visible(node.op_type)
            yield PickItem(node.name, [(name, ""), (f"  {op_type}", "type")], f"{name} {op_type}")


def _models_beside(document: Document) -> Iterator[PickItem]:
    folder = document.path.parent if document.path is not None else Path.cwd()
    for path in sorted(folder.glob("*.onnx")):
        if document.path is None or not is_same_file(path, document.path):
            name = visible(path.name)
            yield PickItem(str(path), [(name, "")], name)


def _links(document: Document, values: Mapping[str, JSON]) -> Iterator[PickItem]:
    """Yield which outputs can become which inputs of the models that are added.

    Those come first that are taken when nothing is chosen, then equal names.
    """
    outputs = _types(document, document.main.outputs)
    offered: dict[str, tuple[str, str, list[Piece], list[str]]] = {}
    for text in _texts(values.get("others")):
        path = Path(text).expanduser()
        try:
            opened = open_document(path)
        except DldError:
            return  # it is told when the form is run
        with contextlib.closing(opened) as other:
            stored = other.main.named("initializer")
            inputs = _types(other, [name for name in other.main.inputs if name not in stored])
            types = _types(other, other.main.outputs)
        try:
            first = propose_links(outputs, inputs)
        except EditError:
            first = {}
        pairs = [
            (name != first.get(into), name != into, name, into)
            for into, taken in inputs.items()
            for name, known in outputs.items()
            if not why_unfit(known, taken)
        ]
        for *_, name, into in sorted(pairs, key=lambda pair: pair[:2]):
            known, taken = outputs[name], inputs[into]
            pieces: list[Piece] = [
                (visible(name), "io"), (f" {visible(known.short) if known else '?'}", "type"),
                (" → ", "dim"), (visible(into), "io"),
                (f" {visible(taken.short) if taken else '?'}", "type"),
            ]  # fmt: skip
            # A link is of each model that has the input.
            offered.setdefault(f"{name}={into}", (name, into, pieces, []))[-1].append(path.name)
        outputs = {name: known for name, known in outputs.items() if name not in first.values()}
        outputs |= types
    for key, (name, into, pieces, models) in offered.items():
        where = f"  {visible(', '.join(models))}"
        yield PickItem(key, [*pieces, (where, "dim")], f"{visible(name)} {visible(into)}")


def _types(document: Document, names: Iterable[str]) -> dict[str, ValueType | None]:
    return {name: document.main.value_type(name) for name in names}


def _texts(value: JSON) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


APPLY, WRITE = "apply it to this model", "write a file"
"""Where the result goes."""
_PATH_CELLS = 40
_RESULT = "result"


class ConvertForm(ActivityScreen):
    """Asks for the settings of a conversion and hands them on.

    Raises:
        DldError: The activity cannot be loaded here.
    """

    tab_title = "convert"
    HELP = (
        "Change the settings that you need; an empty field shows its default. {activity.run} "
        "converts the edited model in the background; {work.stop} cancels. The result replaces "
        "the model as one edit that {edit.undo} undoes, or goes to a file. {activity.copy} "
        "copies the command line that writes the file. In a field for tensor or node names, "
        "{activity.tick} shows a list to choose from."
    )

    def __init__(
        self,
        activity: str,
        values: Mapping[str, JSON],
        chosen: Callable[[Mapping[str, JSON], bool, Sequence[str]], None],
        lists: Mapping[str, Items] | None = None,
    ) -> None:
        """Make the form.

        `chosen` takes the settings, whether the result is to be applied, and what may be replaced.
        `lists` makes what can be ticked for some settings.
        """
        super().__init__(activity, values)
        self._chosen = chosen
        self._lists = lists or {}
        self._first = APPLY

    def body(self) -> Iterable[Widget]:
        values = self._remembered() | self.given
        if host(self).state.get("forms", _RESULT).get("is") == WRITE:
            self._first = WRITE
        form = ParamForm(self.activity.request, values, self.own_reasons(values))
        result = LabelledRow("Result", ChoiceField((APPLY, WRITE), self._first), id="target")
        box = ActivityBox(result, form, self.guessed.rows, CommandRows("{activity.copy} copies it"))
        self.box = box
        yield box

    @property
    def frame_title(self) -> str:
        """What is to be done, and with which model."""
        return f"{self.activity.title} · {visible(Path(str(self.given['model'])).name)}"

    @property
    def applies(self) -> bool:
        """Whether the result is to take the model's place."""
        fields = self.query("#target ChoiceField")
        return (fields.first(ChoiceField).value if fields else self._first) == APPLY

    def own_reasons(self, values: Mapping[str, JSON]) -> dict[str, str]:
        """Leave out the model, which is open, and the file while none is written."""
        absent = ("model", "in_place", "output") if self.applies else ("model", "in_place")
        return dict.fromkeys(absent, "")

    @property
    def missing(self) -> str:
        """What is missing before it can run, or why it cannot be written there."""
        values = self.asked_values()
        output, model = (Path(str(values.get(name) or "")) for name in ("output", "model"))
        if not self.applies and is_same_file(output.expanduser(), model):
            return "the output is the model that is open: apply the result to it instead"
        for row in self.query_one(ParamForm).rows.values():
            given = row.value()[0] if row.setting.param.kind in ("file", "folder") else None
            paths = given if isinstance(given, list) else [given]
            gone = next((str(path) for path in paths if path and not exists(str(path))), "")
            if gone and row.setting.name != "model":
                name = clip(visible(gone), _PATH_CELLS, keep="middle")
                return f"{row.setting.param.label}: {name} is not there"
        return super().missing

    def asked_values(self) -> dict[str, JSON]:
        """Return the settings; what is applied needs no file."""
        values = super().asked_values()
        return values | {"output": self.given["output"]} if self.applies else values

    def written(self) -> list[Path]:
        """Return the files that it writes; none where the result is applied."""
        return [] if self.applies else super().written()

    def conditions(self) -> set[str]:
        """Return whether it may be run; it runs here."""
        is_tickable = self._tickable is not None
        return super().conditions() - {"targets"} | ({"tickable"} if is_tickable else set())

    @property
    def _tickable(self) -> FieldRow | None:
        """The row under the cursor, if its values can be ticked in a list."""
        row = self.focused.parent if self.focused is not None else None
        return row if isinstance(row, FieldRow) and row.setting.name in self._lists else None

    def action_tick(self) -> None:
        row = self._tickable
        if row is None:
            return
        form, name = self.query_one(ParamForm), row.setting.name
        present = row.value()[0]
        ticked = [str(item) for item in present] if isinstance(present, list) else []

        def done(chosen: list[str] | None) -> None:
            if chosen is not None:
                form.set_values({name: [*chosen]})

        items = self._lists[name](form.values())
        self.app.push_screen(TickDialog(row.setting.param.label, items, ticked), done)

    def on_descendant_focus(self) -> None:
        """Offer the list where there is one."""
        self.refresh_bindings()
        self._show_frame()

    def _targets(self) -> list[str]:
        return [targets.LOCAL]

    def _target(self) -> str:
        return targets.LOCAL

    def _start(self, more: Mapping[str, JSON], replaces: Sequence[str]) -> None:
        values = self.query_one(ParamForm).values() | dict(more)
        self._keep({name: value for name, value in values.items() if name != "output"})
        applies = self.applies
        host(self).state.put("forms", _RESULT, {"is": APPLY if applies else WRITE})
        self.dismiss(None)
        self._chosen(values, applies, replaces)


EDITED, SAVED, BOTH = "as edited", "as saved", "saved against edited"
"""Which state of the model runs."""


class ModelForm(ActivityScreen):
    """Asks for the settings of an activity and runs it on an open model.

    Args:
        activity: As in the registry of activities.
        page: The tab of the model.
        jobs: What makes snapshots of it.

    Raises:
        DldError: The activity cannot be loaded here.
    """

    def __init__(self, activity: str, page: Page, jobs: Jobs) -> None:
        path = jobs.document.path
        name = model_name(jobs.document) if path is None else str(path)
        super().__init__(activity, {"model": name})
        self.model_page = page
        self._jobs = jobs
        self.choices = self._choices()
        """The states that can run; one that is saved needs no choice."""
        self.state = self._state(edited=EDITED in self.choices)
        """What the result is about."""
        self._is_starting = False

    def _state(self, *, edited: bool) -> ModelState:
        make = ModelState.edited if edited else ModelState.saved
        return make(self.model_page, self._jobs.document)

    def _choices(self) -> tuple[str, ...]:
        document = self._jobs.document
        if document.path is None:
            return (EDITED,)
        if not document.dirty:
            return (SAVED,)
        both = (BOTH,) if "against" in self.setting_names else ()
        return (EDITED, SAVED, *both)

    def own_rows(self) -> Iterable[Widget]:
        """Return the choice of the state, where there is more than one."""
        if self.choices != (SAVED,):
            field = ChoiceField(self.choices, self.choices[0])
            yield LabelledRow("Document", field, id="state")

    def open_document(self) -> Document | None:
        """Return the model in the tab, unless its file is to run with edits left out."""
        document = self._jobs.document
        return document if self.chosen_state == EDITED or not document.dirty else None

    @property
    def chosen_state(self) -> str:
        """The state that is to run."""
        fields = self.query("#state ChoiceField")
        return fields.first(ChoiceField).value if fields else self.choices[0]

    def own_reasons(self, values: Mapping[str, JSON]) -> dict[str, str]:
        """Leave out the model, and what it is compared with, where the choice of a state has it."""
        absent = {EDITED: ("model",), BOTH: ("model", "against")}.get(self.chosen_state, ())
        return super().own_reasons(values) | dict.fromkeys(absent, "")

    @property
    def command_line(self) -> str:
        """The shell command that does the same; the edits are in no file yet."""
        line = super().command_line
        if self.chosen_state == BOTH:
            line += " --against EDITED"
        return line if self.chosen_state == SAVED else f"{line}  # once the edits are saved"

    @property
    def missing(self) -> str:
        """What is missing before it can run; the edits are compared with the file."""
        return "" if self.chosen_state == BOTH else super().missing

    def start_job(self, values: Mapping[str, JSON], target: str, replaces: Sequence[str]) -> None:
        """Run it on the file, or on a snapshot of the edited model."""
        if self.chosen_state == SAVED:
            self.state = self._state(edited=False)
            super().start_job(values, target, replaces)
        elif not self._is_starting:
            self._is_starting = True
            setting = "against" if self.chosen_state == BOTH else "model"
            self._start_snapshot(values, target, setting, replaces)

    @task("snapshot")
    async def _start_snapshot(
        self, values: Mapping[str, JSON], target: str, setting: str, replaces: Sequence[str]
    ) -> None:
        folder = hold_folder("snapshot")
        path = folder / "snapshot.onnx"
        pushed = False
        try:
            if await self._jobs.snapshot_when_still(path):
                self.state = self._state(edited=True)
                self.app.push_screen(self._job(values, target, setting, path, replaces))
                pushed = True
        except OSError as error:
            host(self).show_error(DldError(f"no snapshot can be written: {error}"))
        finally:
            self._is_starting = False
            if not pushed:
                discard(folder)

    def _job(
        self,
        values: Mapping[str, JSON],
        target: str,
        setting: str,
        snapshot: Path,
        replaces: Sequence[str],
    ) -> ModelJobScreen:
        about = self.activity
        values = dict(values)
        request = from_json(about.request, {**values, "model": model_name(self._jobs.document)})
        for name, row in self.query_one(ParamForm).rows.items():
            # Else it would be named after the snapshot.
            if row.setting.param.default_path is not None:
                path = output_path(request, name)
                values[name] = None if path is None else str(path)
        model = f"{visible(model_name(self._jobs.document))}, {self.chosen_state}"
        return ModelJobScreen(
            about.id, values, self.open_result, title=f"{about.title}: {model}",
            target=target, state=self.state, snapshot=snapshot, setting=setting,
            replaces=replaces,
        )  # fmt: skip

    def start_on_several(
        self, chosen: list[str], values: Mapping[str, JSON], replaces: Sequence[str]
    ) -> None:
        """Run the file on several targets."""
        if self.chosen_state != SAVED:
            host(self).show_error(
                UsageError(
                    "edits that are not saved run on one target at a time",
                    hint=f"Choose one target, save the edits first, or choose {SAVED}",
                )
            )
            return
        super().start_on_several(chosen, values, replaces)

    def result_view(self, result: object, values: Mapping[str, JSON]) -> View:
        """Return the page of a result, which belongs to the tab unless another file was run."""
        page = super().result_view(result, values)
        path = self._jobs.document.path
        is_own = path is None or Path(str(values.get("model"))).absolute() == path.absolute()
        subject = getattr(page, "subject", None)
        if isinstance(subject, ResultModel) and is_own:
            subject.state = self.state
        return page


class ModelJobScreen(JobScreen):
    """Runs an activity on the state of a model that a snapshot has.

    Args:
        activity: As in the registry of activities.
        request: Its settings, without the model.
        on_result: Takes the result, in which the snapshot has the name of the state.
        title: What runs.
        target: Where.
        state: The model.
        snapshot: Its structure, in a folder of its own that is removed with the page.
        setting: Name of the setting that is the model.
        replaces: The files that it may replace.
    """

    def __init__(
        self,
        activity: str,
        request: Mapping[str, JSON],
        on_result: Callable[[Any], None],
        *,
        title: str,
        target: str,
        state: ModelState,
        snapshot: Path,
        setting: str,
        replaces: Sequence[str] = (),
    ) -> None:
        super().__init__(
            activity, dict(request), on_result, title=title, target=target, replaces=replaces,
            job_input=JobInput(self._write, self._discard),
        )  # fmt: skip
        self.state = state
        self._snapshot = snapshot
        self._setting = setting
        self._view: Path | None = None

    def _write(self, cancelled: CancelCheck) -> None:
        document = self.state.document()
        if document is None:  # its tab was closed
            raise CancelledError
        self._view = external_view(
            self._snapshot.read_bytes(),
            document.blobs,
            document.path.parent if document.path is not None else None,
            external=document.external,
            values=True,
            cancelled=cancelled,
        )
        self.request[self._setting] = str(self._view)

    def _discard(self) -> None:
        discard(self._snapshot.parent)
        if self._view is not None:
            discard_view(self._view)

    def take(self, events: Sequence[Event]) -> None:
        """Show a batch of events, which are about the open model."""
        super().take([self._told(event) for event in events])

    def _told(self, event: Event) -> Event:
        if isinstance(event, Log):
            return dataclasses.replace(event, text=self._named(event.text))
        if isinstance(event, Failed):
            texts = {name: self._named(getattr(event, name))
                     for name in ("message", "where", "hint", "details")}  # fmt: skip
            return dataclasses.replace(event, **texts)
        if isinstance(event, Finished):
            return Finished(self._named(event.result))
        return event

    def _named(self, value: Any) -> Any:
        """Return texts with the name of the state for the path of the snapshot.

        Lists of objects, such as the rows of tensors, have no paths.
        """
        if isinstance(value, str):
            return value if self._view is None else value.replace(
                str(self._view), self.state.title
            )  # fmt: skip
        if isinstance(value, dict):
            return {key: self._named(item) for key, item in value.items()}
        if isinstance(value, list) and not any(isinstance(item, dict) for item in value):
            return [self._named(item) for item in value]
        return value

    def go_to_node(self) -> None:
        """Close the page and show the node that the failure is about."""
        finding = self.end.finding if isinstance(self.end, Failed) else None
        if finding is None or finding.model != str(self._view):
            super().go_to_node()
            return
        self.dismiss(None)
        self.state.reveal(finding.scope, finding.node)


class ToolJobScreen(JobScreen):
    """Runs a tool on this machine.

    Args:
        request: The request of the activity.
        opened: Opens the output; None when it is not to be opened.
        title: What runs.
        prepare: Writes the model that the tool gets, on the thread of the job; None when there is
            nothing to write.
        folder: A temporary folder that is removed with the page.
        replaces: The files that it may replace.
    """

    HELP = (
        "{job.cancel} stops the tool and its child processes. When the tool has ended, "
        "{job.cancel} goes back."
    )

    def __init__(
        self,
        request: Mapping[str, JSON],
        opened: Callable[[Any], None] | None,
        *,
        title: str,
        prepare: Callable[[CancelCheck], None] | None = None,
        folder: Path | None = None,
        replaces: Sequence[str] = (),
    ) -> None:
        super().__init__(
            "tool", request, opened or _nothing, title=title, target=targets.LOCAL,
            replaces=replaces, job_input=JobInput(prepare, self._remove),
        )  # fmt: skip
        self._folder = folder
        self._opens = opened is not None

    def _remove(self) -> None:
        if self._folder is not None:
            discard(self._folder)

    def conditions(self) -> set[str]:
        """Return the conditions of a job; there is a result only where one is opened."""
        conditions = super().conditions()
        return conditions if self._opens else conditions - {"result"}

    def open_result(self) -> None:
        """Close the page and open what the tool wrote; without that, its log stays."""
        if self._opens:
            super().open_result()


def _nothing(_: object) -> None:
    """Open nothing."""
