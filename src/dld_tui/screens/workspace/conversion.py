"""Models made of the open one: conversions, which are applied or written, and parts of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.model.document.local_functions import body_of
from dld_tui.core.model.tensors.payloads import scratch_folder
from dld_tui.core.notes import Note, NoteKind, plain_notes
from dld_tui.core.params import RequestData, from_json, settings_of
from dld_tui.core.process import paths
from dld_tui.core.process.paths import unused
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.editing import outer_nodes
from dld_tui.screens.workspace.history import MANY, EditHistory
from dld_tui.screens.workspace.inference import Inference
from dld_tui.screens.workspace.jobs import Jobs, model_view, require_sound
from dld_tui.screens.workspace.saving import Saving
from dld_tui.widgets.explorer.state import below
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    from dld_tui.activities.registry import Modification
    from dld_tui.core.conversion.quantization_plan import QdqInsertion
    from dld_tui.core.conversion.result import ConversionResult, Preview, VerifiedResult
    from dld_tui.core.model.document import Document, Node, Scope, Transaction
    from dld_tui.core.model.document.parts.extraction import Extraction as Extracted
    from dld_tui.core.model.document.transactions import Edit


_AGAIN_S = 0.1
_EDITED = "The model was edited meanwhile, so the result was not applied to it."
_OPSET = "convert_opset"
_SHOWN = 8
"""Lines on wrong values above the question what to do."""
_UNWRITTEN = ("preview", "list_only")
"""Settings with which nothing is written."""
_WRITTEN = "is a separate model now"


class Result:
    """The result of a job, to be applied to a document.

    Args:
        document: The document.
        title: What the edit does, e.g. ``convert to fp16``.
        aside: The file to write it to when it cannot be applied any more.
    """

    def __init__(self, document: Document, title: str, aside: Path) -> None:
        self.title = title
        self.aside = aside
        self.model: JSON = None
        """The result as an argument of edits, once it is there and found to be sound."""
        self.edit: Edit | None = None
        """The edit that does the same to the document, where there is one."""
        self._document = document

    @contextmanager
    def made(self, before: Path, cancelled: CancelCheck) -> Iterator[Path]:
        """Yield the file that the job is to write; after the job, keep what it wrote.

        Args:
            before: What the job makes it of.
            cancelled: Asked now and then.

        Raises:
            DldError: The result is not valid, or there is no room for it.
        """
        from dld_tui.core.model.edits.model_swap import keep_model

        with scratch_folder() as folder:
            output = folder / (self._document.path or self.aside).name
            yield output
            require_sound(before, output, cancelled)
            self.model = keep_model(self._document, output, move=True, cancelled=cancelled)

    def apply(self) -> Transaction:
        """Apply it to the document.

        Raises:
            EditError: It does not fit.
        """
        from dld_tui.core.model.edits import model_swap

        if self.edit is not None:
            return self._document.apply(self.edit)
        return self._document.apply(model_swap.replace_model(model=self.model, title=self.title))

    def keep(self, path: Path, cancelled: CancelCheck) -> JSON:
        """Keep the file of another model for as long as an edit needs it; return what names it.

        Raises:
            DldError: It cannot be opened, or there is no room for it.
        """
        from dld_tui.core.model.edits.model_swap import keep_model

        kept = keep_model(self._document, path, cancelled=cancelled)
        return {**kept, "name": path.name} if isinstance(kept, dict) else kept

    def write(self) -> Path:
        """Write it to a separate file, which is returned.

        Raises:
            DldError: It cannot be written.
        """
        from dld_tui.core.model.edits.model_swap import write_kept

        target = unused(self.aside)
        write_kept(self._document, self.model, target)
        return target


@dataclass(eq=False)
class Conversion(Controller):
    """Converts the open model, edits included, and extracts parts of it."""

    COMMAND_TABLE = (
        *table(
            "workspace",
            ("model.modify", "conversion.choose", "f8", "", "convert",
             "Convert the model: float16, simplify, quantize, weights, dimensions.",
             "modify, convert, batch modification, conversions"),
            ("model.preview_precisions", "conversion.preview_precisions", "", "", "preview casts",
             "Preview the casts that layer precisions need and their loss; offer a copy."),
            ("model.convert_opset", "conversion.convert_opset", "", "", "convert opset",
             "Convert the model to another ai.onnx opset.",
             "opset, upgrade, downgrade, version of the operators"),
            common="document",
        ),
        *table(
            "workspace",
            ("edit.extract", "conversion.extract", "x", "", "extract",
             "Write the marked nodes, a subgraph or a function as a separate model.",
             "subgraph, submodel, cut out, extract subgraph, split the model"),
            ("edit.export_script", "conversion.export_script", "", "can_undo", "export edits",
             "Write the edits of this session as a script for `dld edit`.", "script, record edits"),
            common="document", group="Mark", menus={"edit.extract": "node scope"},
        ),
    )  # fmt: skip

    history: EditHistory
    jobs: Jobs
    inference: Inference
    saving: Saving

    _applied: list[tuple[Transaction, Sequence[Note]]] = field(default_factory=list)
    """The edits that applied results, and their reports."""

    def start(self, activity: str) -> None:
        """Show the form of a batch modification."""
        self.ask_settings(activity, {})

    @task()
    async def choose(self) -> None:
        """Ask which conversion to run, and show its form."""
        from dld_tui.activities import registry as activities
        from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog

        rows = [
            Choice(about.modification.key, about.title, about.id, about.help)
            for about in activities.activities()
            if about.modification is not None
        ]

        dialog = ChoiceDialog("Convert", "Which conversion of the whole model?", rows)
        answer = await self.ask(dialog)
        if answer == _OPSET:
            self.convert_opset()
        elif answer is not None:
            self.ask_settings(answer, {})

    def preview_precisions(self) -> None:
        """Show the casts that the layers' precisions need, and offer to write the copy."""
        self._modify("convert_precisions", {"layer_precision": [], "preview": True})

    def ask_settings(self, activity: str, given: Mapping[str, JSON]) -> None:
        """Show the form of a modification with some values."""
        from dld_tui.screens.activity.document_forms import ConvertForm, lists_of

        offered = self._offered(activity, given)
        path = self.document.path or Path.cwd() / "new.onnx"
        values: dict[str, JSON] = {"model": str(path), "output": str(offered), **given}

        def chosen(wanted: Mapping[str, JSON], applies: bool, replaces: Sequence[str]) -> None:
            self._modify(activity, wanted, applies=applies, replaces=replaces)

        try:
            lists = lists_of(self.document, activity)
            self.push(ConvertForm(activity, values, chosen, lists))
        except DldError as error:
            self.complain(error)

    def _offered(self, activity: str, values: Mapping[str, JSON]) -> Path:
        path = self.document.path or Path.cwd() / "new.onnx"
        version = values.get("to", "") if activity == _OPSET else ""
        return path.with_name(f"{path.stem}-{_modification(activity).ending}{version}.onnx")

    def _modify(
        self,
        activity: str,
        values: Mapping[str, JSON],
        *,
        applies: bool = False,
        replaces: Sequence[str] = (),
    ) -> None:
        from dld_tui.activities import registry as activities
        from dld_tui.core.conversion.request import PreviewedRequest
        from dld_tui.core.conversion.result import (
            QuantizationPoints,
            QuantizedModel,
            VerifiedResult,
        )

        document = self.document
        is_written = not any(values.get(name) for name in _UNWRITTEN)
        output = values.get("output") if is_written and not applies else None
        target = Path(str(output)).expanduser().absolute() if output else None
        result: Result | None = None
        settings = settings_of(activities.load(activity).request)
        title = _modification(activity).edit
        if activity == _OPSET:
            title = f"convert to opset {values['to']}"
        if applies and is_written:
            result = Result(document, title, self._offered(activity, values))

        @contextmanager
        def request(snapshot: Path, cancelled: CancelCheck) -> Iterator[Mapping[str, JSON]]:
            with (
                model_view(document, snapshot, cancelled) as view,
                result.made(view, cancelled) if result else nullcontext(target) as path,
            ):
                written = {} if path is None else {"output": str(path)}
                data = RequestData({**values, "model": str(view), **written})
                data.replaces = tuple(replaces)
                if result is not None:
                    if "keep_wrong" in {setting.name for setting in settings}:
                        data["keep_wrong"] = True  # the user is asked whether to apply it
                    asked = from_json(activities.load(activity).request, data)
                    if isinstance(asked, PreviewedRequest):  # those of other packages need not be
                        result.edit = asked.as_edit(lambda path: result.keep(path, cancelled))
                yield data

        def done(outcome: ConversionResult | Preview, is_current: bool) -> None:
            notes = result_notes(outcome)
            points = (
                outcome.points if isinstance(outcome, QuantizedModel | QuantizationPoints) else None
            )
            if points is not None:
                self._keep_points(points)
            if (
                isinstance(outcome, VerifiedResult)
                and outcome.values.is_wrong
                and (result is not None or not outcome.is_written)
            ):
                self._ask_about_wrong(
                    activity, values, result, outcome, replaces, is_current=is_current
                )
                return
            if result is not None:
                self.apply(result, notes, is_current=is_current)
                return
            if not is_current:
                text = "The model was edited meanwhile: this result does not include those edits."
                notes.append(Note(NoteKind.WARNING, text))
            if target is None:
                self._show_preview(activity, notes, is_coloured=bool(points))
            else:
                self._show_modified(notes, target, title)

        self.jobs.run_beside(activities.find(activity).title, activity, request, done)

    def _keep_points(self, points: Sequence[QdqInsertion]) -> None:
        """Let the graph show where tensors would be quantized, as one of its colours."""
        from dld_tui.core.conversion.quantization_plan import quantized_nodes

        counts = quantized_nodes(self.document.main, points) if points else {}
        self.model.quantized = counts, " would be" if counts else ""

    @task()
    async def _ask_about_wrong(
        self,
        activity: str,
        values: Mapping[str, JSON],
        result: Result | None,
        outcome: VerifiedResult,
        replaces: Sequence[str],
        *,
        is_current: bool,
    ) -> None:
        """Apply or write a result with wrong values only when that is asked for.

        Args:
            activity: Which conversion.
            values: Of its form.
            result: What is to be applied; None for a file that was not written.
            outcome: The result.
            replaces: Files that may be written over.
            is_current: Whether the model has not been edited since.
        """
        from dld_tui.activities import registry as activities
        from dld_tui.core.conversion.result import ComparedValues, values_lines
        from dld_tui.widgets.dialogs.dialogs import Choice, QuestionDialog

        settings = settings_of(activities.load(activity).request)
        choices = [
            Choice("d", "discard it; the model stays unchanged", "drop"),
            Choice("a", hint("apply it anyway, as one edit that {edit.undo} undoes"), "apply")
            if result is not None
            else Choice("w", f"convert again, and write {visible(outcome.path.name)}", "write"),
        ]
        if not values.get("repair") and any(setting.name == "repair" for setting in settings):
            choices.insert(
                1, Choice("r", "repair: keep the nodes that cause it in their type", "repair")
            )

        # The best of several ways is known now, and need not be looked for again.
        method = getattr(outcome, "method", None)
        best = {
            setting.name: method
            for setting in settings
            if setting.name == "method" and method in setting.param.choices
        }

        # The advice names options of the command line; here the choices below stand for them.
        values_found = outcome.values
        if isinstance(values_found, ComparedValues):
            values_found = replace(values_found, advice="")
        message = "\n".join(values_lines(values_found)[:_SHOWN])
        dialog = QuestionDialog("The result has wrong values", message, choices)
        answer = await self.ask(dialog)
        repaired, kept = {**values, **best, "repair": True}, {**values, "keep_wrong": True}
        if answer == "repair":
            self._modify(activity, repaired, applies=result is not None, replaces=replaces)
        elif answer == "write":
            self._modify(activity, kept, replaces=replaces)
        elif answer == "apply" and result is not None:
            self.apply(result, result_notes(outcome), is_current=is_current)

    @task()
    async def _show_modified(self, notes: list[Note], target: Path, title: str) -> None:
        from dld_tui.screens.model.opset_dialogs import ConversionDialog

        if await self.ask(ConversionDialog(notes, target.name, title)):
            host(self.page).open_path(target)

    @task()
    async def _show_preview(self, activity: str, notes: list[Note], *, is_coloured: bool) -> None:
        from dld_tui.screens.model.opset_dialogs import ListDialog, PreviewDialog

        if not _modification(activity).preview:
            where = hint("{graph.overlay} in the graph colours them: quantized")
            self.push(ListDialog(notes, where if is_coloured else ""))
            return

        if await self.ask(PreviewDialog(notes)):
            self.ask_settings(activity, {})

    @task()
    async def convert_opset(self) -> None:
        """Ask for a version, and show the form of the conversion."""
        from dld_tui.core.model.operators.registry import newest_opset
        from dld_tui.screens.model.opset_dialogs import VersionDialog

        present = self.document.opset_imports.get("")
        newest = newest_opset()
        if present is None or newest is None:
            self.complain(DldError("the model imports no ai.onnx operators"))
            return

        version = await self.ask(VersionDialog(present, newest))
        if version is not None:
            self.ask_settings(_OPSET, {"to": version})

    def apply(self, result: Result, notes: Sequence[Note], *, is_current: bool) -> None:
        """Put a result in the place of the model, and show what was done.

        Where the model is no longer the one that the job saw, the result goes to a file.

        Args:
            result: What the job made.
            notes: What it did, fit for a terminal.
            is_current: Whether the model is still as the job saw it.
        """
        if not is_current or self.document.is_locked:  # else a page edits on a thread
            self._when_free(lambda: self._put_aside(result, notes))
            return
        version = self.model.version

        def apply() -> None:
            if version != self.model.version:
                self._put_aside(result, notes)
                return

            def step() -> Transaction:
                transaction = result.apply()
                self._applied.append((transaction, notes))
                return transaction

            self.history.change(f"Applying: {result.title}", [step], large=True, done=told)

        def told() -> None:
            self._tell(notes, self._applied[-1][0].title)

        self._when_free(apply)

    def show_again(self, transaction: Transaction) -> None:
        """Show what a conversion did when it was made again."""
        for applied, notes in self._applied:
            if applied is transaction:
                self._tell(notes, transaction.title)

    @task()
    async def _tell(self, notes: Sequence[Note], title: str) -> None:
        from dld_tui.screens.model.opset_dialogs import AppliedDialog

        undo = await self.ask(AppliedDialog(notes, title))
        if undo:
            self.history.undo()
        elif undo is not None:
            self.saving.save()

    def _when_free(self, action: Callable[[], None]) -> None:
        """Do something once no work on a thread holds the model."""
        if not self.work.is_running:
            action()
        else:
            self.page.set_timer(_AGAIN_S, lambda: self._when_free(action))

    def _put_aside(self, result: Result, notes: Sequence[Note]) -> None:
        written: list[Path] = []

        def run(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            written.append(result.write())

        def ended(error: DldError | None) -> None:
            if error is not None:
                self.complain(error)
            else:
                self._show_modified([*plain_notes([_EDITED]), *notes], written[0], result.title)

        self.work.run(f"Writing {clip(visible(result.aside.name), 40)}", run, ended)

    @task()
    async def extract(self) -> None:
        """Write the marked nodes, or the item at the cursor, as a separate model."""
        cursor = self.cursor
        marked = self.model.marked(cursor) if not cursor.in_parameters else []
        node = cursor.node
        if marked or node is None:
            scope = cursor.target_scope or self.model.listing.root
            self._extract_marked(outer_nodes(marked or self._below_folder()), scope)
            return
        if node.op_type == "EPContext":
            self._extract_context(node)
            return
        body = body_of(node)
        extracts_body: bool | None = False
        if body is not None:
            kind = "function" if body.is_function else "subgraph"
            extracts_body = await self.pick(
                "Extract",
                "What should become a model?",
                [
                    ("n", "the node", False),
                    ("b", f"its {kind} {clip(visible(body.title), 40)}", True),
                ],
            )
        if body is not None and extracts_body:
            self._extract([], body, node)
        elif extracts_body is not None:
            self._extract([node], node.scope)

    def _extract_marked(self, nodes: list[Node], scope: Scope) -> None:
        """Extract marked nodes; ask whether with what lies between them, if anything does."""
        from dld_tui.core.model.document.traversal import between

        if len(nodes) < 2 or any(node.scope is not nodes[0].scope for node in nodes):
            self._extract(nodes, scope)
            return
        between_them: set[Node] = set()

        def follow() -> None:
            between_them.update(between(nodes))

        large = self.model.listing.total > MANY
        ask = partial(self._ask_between, nodes, between_them)
        self.perform("Following the links", follow, ask, large=large)

    @task()
    async def _ask_between(self, nodes: list[Node], between_them: set[Node]) -> None:
        from dld_tui.core.model.document.traversal import places

        scope, chosen = nodes[0].scope, nodes
        if len(between_them) > len(nodes):
            place = places(scope, list(between_them))
            more = fmt.plural(len(between_them) - len(nodes), "node")
            answer = await self.pick(
                "Extract",
                "What should become a model?",
                [
                    ("b", f"the marked nodes and {more} between them",
                     sorted(between_them, key=place.__getitem__)),
                    ("m", "the marked nodes alone", nodes),
                ],
            )  # fmt: skip
            if answer is None:
                return
            chosen = answer
        self._extract(chosen, scope)

    def _extract_context(self, node: Node) -> None:
        """Write what a provider compiled, such as a TensorRT engine; then offer to open it."""
        from dld_tui.core.model.document.parts.ep_context import context_of, write_context

        context = context_of(self.document, node)
        suffix = ".context.bin" if context.header is None else ".engine"
        start = self._part_name([node], node.scope).removesuffix(".onnx") + suffix

        def write(path: Path, overwrite: bool) -> None:
            self.perform(
                "Extracting",
                lambda: write_context(self.document, context, path, overwrite=overwrite),
                lambda: self._offer_to_open(path, f"holds {context.line}"),
                large=True,
            )

        self._ask_path("Extract the compiled engine", start, "path of the file", write)

    @task()
    async def _ask_path(
        self, title: str, start: str, hint: str, write: Callable[[Path, bool], None]
    ) -> None:
        """Ask for a file, and write it where it is not there, or may be replaced."""
        from dld_tui.widgets.dialogs.dialogs import OpenPathDialog
        from dld_tui.widgets.dialogs.overwrite import ask_file

        chosen = await ask_file(
            self.tasks, lambda text: OpenPathDialog(title, text, hint, is_new=True), start
        )
        if chosen is not None:
            path, replaced = chosen
            write(path, bool(replaced))

    def _below_folder(self) -> list[Node]:
        """Return the nodes of the name scope or type at the cursor; none of a whole graph."""
        branch = self.cursor.branch
        if branch is None or branch.kind not in ("folder", "type"):
            return []
        return [entry.node for entry in below(self.model.listing, branch)]

    @task("await types")
    async def _extract(self, nodes: Sequence[Node], scope: Scope, call: Node | None = None) -> None:
        """Extract nodes, or the whole of a scope when there are none; then ask for the file."""
        from dld_tui.core.model.document.parts.extraction import extract_body, extract_nodes

        await self.inference.typed(always=True)  # the new model's inputs and outputs need types
        document = self.document
        extractions: list[Extracted] = []

        def run() -> None:
            if nodes:
                extractions.append(extract_nodes(document, nodes))
            else:
                extractions.append(
                    extract_body(document, scope, call if scope.is_function else None)
                )

        def ended() -> None:
            self._ask_extract(extractions[0], self._part_name(nodes, scope))

        large = (len(nodes) or len(scope.nodes)) > MANY
        self.perform("Extracting", run, ended, large=large)

    def _part_name(self, nodes: Sequence[Node], scope: Scope) -> str:
        path = self.document.path
        folder = path.parent if path is not None else Path.cwd()
        stem = path.stem if path is not None else "model"
        part = "part" if nodes or scope.kind == "graph" else scope.title
        safe = "".join(char if char.isalnum() or char in "-_." else "_" for char in part)[:40]
        return str(folder / f"{stem}.{safe}.onnx")

    @task()
    async def _ask_extract(self, extracted: Extracted, start: str) -> None:
        from dld_tui.widgets.dialogs.nodes import ExtractDialog
        from dld_tui.widgets.dialogs.overwrite import ask_file

        chosen = await ask_file(
            self.tasks, lambda text: ExtractDialog(extracted, text), start, ending=".onnx"
        )
        if chosen is None:
            extracted.document.close()
        else:
            path, replaced = chosen
            self._write_extract(extracted, path, bool(replaced))

    def _write_extract(self, extracted: Extracted, path: Path, overwrite: bool) -> None:
        from dld_tui.core.model.document.serialise import loadable_view, save

        remarks: list[str] = []
        problems: list[str] = []

        def run(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            try:
                with loadable_view(self.document) as before:
                    remarks.extend(
                        save(
                            extracted.document, path, overwrite=overwrite,
                            progress=progress, cancelled=cancelled,
                        )
                    )  # fmt: skip
                    try:
                        remarks.extend(require_sound(before, path, cancelled))
                    except CancelledError:
                        remarks.append("Stopped: ONNX Runtime was not asked about the result")
                    except DldError as error:
                        problems.append(visible(str(error)))
            finally:
                extracted.document.close()

        def ended(error: DldError | None) -> None:
            if isinstance(error, CancelledError):
                self.say("Not written: stopped")
            elif error is not None:
                host(self.page).show_error(error, "Not written")
            else:
                for remark in remarks:
                    self.say(visible(remark), 8, warning=True)
                about = f"was written, but {problems[0]}" if problems else _WRITTEN
                self._offer_to_open(path, about)

        self.work.run(f"Writing {clip(visible(str(path)), 60, keep='end')}", run, ended)

    @task()
    async def _offer_to_open(self, path: Path, about: str = _WRITTEN) -> None:
        opens = await self.pick(
            "Written",
            f"{visible(paths.short(str(path)))} {about}.",
            [("o", "open it in a tab", True), ("s", "stay here", False)],
        )
        if opens:
            host(self.page).open_path(path)

    def export_script(self) -> None:
        """Write the edits of this session as a script."""
        from dld_tui.core.model.document.scripting.scripts import export_script

        path = self.document.path
        start = str(path.with_suffix(".edits.jsonl")) if path is not None else "edits.jsonl"

        def write(path: Path, overwrite: bool) -> None:
            count: list[int] = []

            def written() -> None:
                shown = visible(paths.short(str(path)))
                self.say(f"{fmt.plural(count[0], 'edit')} in {shown}", 4)

            def run() -> None:
                count.append(export_script(self.document, path, overwrite=overwrite))

            self.perform("Exporting edits", run, written, large=True)

        self._ask_path("Export edits", start, "path of the script", write)


def _modification(activity: str) -> Modification:
    from dld_tui.activities import registry as activities

    modification = activities.find(activity).modification
    assert modification is not None
    return modification


def result_notes(result: ConversionResult | Preview) -> list[Note]:
    """Return what a conversion did, or would do. Fit for a terminal."""
    from dld_tui.core.conversion.certificate import certificate
    from dld_tui.core.conversion.result import (
        ConversionResult,
        PrecisionModel,
        preview_lines,
    )

    if not isinstance(result, ConversionResult):
        return plain_notes(preview_lines(result) or ["nothing is lost"])
    lines = result.lines if isinstance(result, PrecisionModel) else []
    remarks = map(visible, result.remarks)
    return [*certificate(result), *plain_notes([*lines, *remarks])]
