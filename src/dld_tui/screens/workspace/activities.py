"""Activities on the open model: measuring and building it, its accuracy, custom tools.

Edits that are not saved are saved or copied before a measurement; the others take the model as it
is, edits included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.commands import Command
from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.files.temporary import discard, hold_folder
from dld_tui.core.model.document import DocumentChange, Node
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.params import to_json
from dld_tui.core.process import paths
from dld_tui.core.process.paths import unused
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.jobs import Jobs, model_view
from dld_tui.screens.workspace.panes import Panes
from dld_tui.screens.workspace.saving import Saving
from dld_tui.screens.workspace.state import Cursor
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.page import NodeErrors, host
from dld_tui.widgets.tasks import on_thread, task

if TYPE_CHECKING:
    from dld_tui.activities.tool import Result
    from dld_tui.core.accuracy.result import AccuracyReport
    from dld_tui.core.settings.custom_tools import Tool
    from dld_tui.screens.results.pages import ModelState


@dataclass(eq=False)
class Activities(Controller):
    """Shows the forms of activities on the model, and starts custom tools."""

    COMMAND_TABLE = table(
        "workspace",
        ("model.profile", "activities.profile", "f5", "", "profile",
         "Profile this model with ONNX Runtime.",
         "benchmark, latency, slowest, slowest node, speed, measure, time, timing, ort, onnx "
         "runtime, bottleneck, run"),
        ("model.tune", "activities.tune", "f9", "", "tune",
         "Search for the fastest conversion and session settings within a tolerance.",
         "fastest, make faster, autotune"),
        ("model.sweep", "activities.sweep", "", "", "sweep sizes",
         "Measure this model at several batch sizes, dimensions and thread counts.",
         "several batch sizes, sequence length, scaling, throughput, knee"),
        ("model.load", "activities.load", "", "", "measure under load",
         "Measure throughput and latency of several clients on one session.",
         "clients, concurrency, throughput, saturation, load test"),
        ("model.gate", "activities.gate", "", "", "gate",
         "Stop a slower model: judge a new version, or this model by requirements.",
         "regression, slower, requirements, budget, latency limit, p95"),
        ("model.start_up", "activities.startup", "", "", "session startup",
         "Measure session creation by stage, and show the provider of each node.",
         "measure the start, start-up, session creation, load time"),
        ("model.providers", "activities.providers", "", "", "providers",
         "Show which nodes each execution provider takes, why not, and what would help.",
         "execution provider, supported operators, fallback, coverage, npu"),
        ("model.memory", "activities.memory", "", "", "memory",
         "Predict the memory of a run: weights, peak of activations, live tensors.",
         "memory needed, peak memory, vram"),
        ("model.build", "activities.build", "f6", "", "build engine",
         "Build a TensorRT engine from this model.",
         "tensorrt, engine, trtexec, compile, plan, trt"),
        ("model.profile_tensorrt", "activities.profile_tensorrt", "shift+f5", "",
         "profile with TensorRT", "Profile this model with TensorRT.",
         "benchmark on the gpu, trtexec profile"),
        ("accuracy.compare", "activities.compare", "", "", "compare accuracy",
         "Run the model in two ways, or against another model, and compare all tensors.",
         "accuracy, error, errors of tensors, is it still right, polygraphy run, tolerance"),
        ("accuracy.edits", "activities.compare_edits", "", "file", "accuracy of edits",
         "Compare the tensors of the saved file and of the edited model."),
        ("accuracy.search", "activities.search_precision", "", "", "search precision",
         "Find the fewest nodes that must stay in fp32 for fp16, bf16 or int8.",
         "mixed precision, debug precision, keep in fp32, sensitive layers"),
        ("accuracy.tactics", "activities.tactics", "", "", "isolate tactic",
         "Find the TensorRT tactics that give wrong results.",
         "debug build, wrong results, kernel"),
        common="document", footer="model.profile model.tune",
    )  # fmt: skip

    panes: Panes
    jobs: Jobs
    saving: Saving

    _copies: list[Path] = field(default_factory=list)
    """Folders of copies that were made to profile unsaved edits."""
    _errors: NodeErrors | None = None
    """The errors that the graph can show: of the comparison that was opened last."""

    def close(self) -> None:
        """Remove the copies that were made to profile unsaved edits."""
        for folder in self._copies:
            discard(folder)

    @task()
    async def profile(self) -> None:
        """Show the form for measuring this model; asks first when there are unsaved edits.

        A decoder can be measured as it is used: tokens after tokens, with its cache.
        """
        from dld_tui.core.model.inputs.roles import cache_pairs, state_pairs

        activity: str | None = "profile_onnxruntime"
        if cache_pairs(self.document) or state_pairs(self.document):
            activity = await self.pick(
                "Profile",
                "It is a decoder: what a run makes is an input of the next one.",
                [
                    ("g", "generation: a prompt, then tokens", "profile_llm"),
                    ("o", "one pass and its layers", "profile_onnxruntime"),
                ],
            )
        if activity is not None:
            self._start_form(activity, "profile")

    def show_activity(self, activity: str) -> bool:
        """Show the form of an activity that takes the newest report of this model, or the model.

        Returns:
            False for other activities, and while there is nothing to show it for.
        """
        from dld_tui.activities import registry

        about = registry.find(activity)
        if about.of_report and self.page.has_report:
            self.page.tasks.start(self._of_newest_report(activity), "dialog")
        elif about.of_open_model and self.model.is_open:
            self._show_run_form(activity)
        else:
            return False
        return True

    async def _of_newest_report(self, activity: str) -> None:
        from dld_tui.core.report.reports_of_model import newest_report

        path = self.document.path
        if path is None:
            return
        recent = [file.path for file in host(self.page).state.recent() if file.kind == "REPORT"]

        def newest() -> str:
            with newest_report(path, recent) as report:
                return str(report.path) if report is not None else ""

        report = await on_thread(newest)
        if report:
            host(self.page).start_activity(activity, {"report": report, "model": str(path)})
        else:
            self.say(hint("There is no profile of this model yet: {model.profile} makes one"))

    def tune(self) -> None:
        """Show the form for finding the fastest way to run this model."""
        self._start_form("tune", "tune")

    def sweep(self) -> None:
        """Show the form for measuring this model at several sizes."""
        self._start_form("sweep", "sweep")

    def load(self) -> None:
        """Show the form for measuring this model with several clients."""
        self._start_form("load", "measure")

    def gate(self) -> None:
        """Show the form for judging this model against a new version or requirements."""
        self._start_form("gate", "judge")

    def startup(self) -> None:
        """Show the form for measuring what making a session takes."""
        self._start_form("startup", "measure")

    def providers(self) -> None:
        """Show the form for asking which nodes each provider takes."""
        self._start_form("providers", "ask")

    def profile_tensorrt(self) -> None:
        """Show the form for measuring this model with TensorRT."""
        self._start_form("profile_tensorrt", "profile")

    def build(self) -> None:
        """Show the form for building a TensorRT engine of this model."""
        self._start_form("build", "build")

    def memory(self) -> None:
        """Show the form for counting what memory a run needs."""
        self._start_form("memory", "count")

    @task()
    async def _start_form(self, activity: str, verb: str) -> None:
        """Show the form of an activity; asks first which model when there are unsaved edits."""
        document, path = self.document, self.document.path
        if path is not None and not document.dirty:
            self._show_form(activity, path)
            return

        options = [
            ("s", f"save, then {verb}", "save"), ("c", f"{verb} a copy with the edits", "copy")
        ]  # fmt: skip
        if path is not None:
            options.append(("f", f"{verb} the file on disk, without the edits", "file"))
        message = f"{visible(document.title)} has unsaved edits."
        answer = await self.pick(verb.capitalize(), message, options)
        if answer == "save":
            self.saving.save(lambda: self._show_form(activity, document.path))
        elif answer == "copy":
            self._copy_for(activity)
        elif answer == "file":
            self._show_form(activity, path)

    def _show_form(self, activity: str, path: Path | None) -> None:
        if path is not None:
            host(self.page).start_activity(activity, {"model": str(path)})

    def _copy_for(self, activity: str) -> None:
        from dld_tui.core.files.model_set import plan_model

        document = self.document
        name = document.path.name if document.path is not None else "new.onnx"
        folder = hold_folder("unsaved", paths.ensure(paths.unsaved_folder()))
        target = folder / name
        self._copies.append(folder)

        def run_copy(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            plan = plan_model(
                skeleton_bytes(document),
                document.blobs,
                target,
                external=document.external,
                spill=document.spill,
            )
            plan.write(progress=progress, cancelled=cancelled)

        def ended(error: DldError | None) -> None:
            if error is None:
                self._show_form(activity, target)
            elif not isinstance(error, CancelledError):
                host(self.page).show_error(error)

        self.work.run("Writing a copy with the edits", run_copy, ended)

    def conditions(self, cursor: Cursor) -> set[str]:
        return {"file"} if self.document.path is not None else set()

    def compare(self) -> None:
        """Show the form of a comparison."""
        self._show_run_form("accuracy")

    def search_precision(self) -> None:
        """Show the form of a search."""
        self._show_run_form("search_precision")

    def tactics(self) -> None:
        """Show the form of a search for wrong tactics."""
        self._show_run_form("tactics")

    def _show_run_form(self, activity: str) -> None:
        from dld_tui.screens.activity.document_forms import ModelForm  # lazy: few sessions need it

        try:
            self.push(ModelForm(activity, self.page, self.jobs))
        except DldError as error:
            self.complain(error)

    def compare_edits(self) -> None:
        """Compare the file with the edited model."""
        from dld_tui.screens.results.pages import ModelState

        document, path = self.document, self.document.path
        if path is None:
            return

        @contextmanager
        def view(snapshot: Path, cancelled: CancelCheck) -> Iterator[Mapping[str, JSON]]:
            states.append(ModelState.edited(self.page, document))
            with model_view(document, snapshot, cancelled) as edited:
                yield {"model": str(path), "against": str(edited), "tensors": True}

        states: list[ModelState] = []

        def done(result: AccuracyReport, is_current: bool) -> None:
            from dld_tui.screens.results.accuracy import (
                AccuracyScreen,  # lazy: few sessions need it
            )

            state = ModelState.edited(self.page, document) if is_current else states[0]
            other = replace(result.other, model=state.title)
            page = AccuracyScreen(replace(result, other=other), path)
            page.subject.state = state
            host(self.page).add_page(page)

        self.jobs.run_beside("Comparing with the file", "accuracy", view, done)

    def tensor_errors(self) -> tuple[Mapping[Node, float], str]:
        """Return the errors of nodes in the comparison of this model that was opened last."""
        errors = self._node_errors()
        if errors is None:
            return {}, ""
        return (
            errors.values(),
            f"{errors.title}{', before the last edits' if errors.is_outdated else ''}",
        )

    def _node_errors(self) -> NodeErrors | None:
        """Return what the comparison of this model that was opened last says."""
        figures = (page.node_errors(self.document) for page in reversed(host(self.page).pages))
        return next(filter(None, figures), None)

    def show_change(self, change: DocumentChange) -> None:
        """Say in the graph that the errors shown there are of before the edit."""
        self.follow_errors()

    def follow_errors(self) -> None:
        """Show the errors of a comparison that was opened meanwhile, or that they are old."""
        errors = self._node_errors()
        if errors != self._errors:
            self._errors = errors
            if self.panes.graph.model is not None:
                self.page.call_later(self.panes.graph.colours.weighed)

    def commands(self) -> Sequence[Command]:
        """Return a command for each tool."""
        return [
            Command(
                id=f"tool.{name}",
                title=f"run {visible(name)}",
                help=f"Run {visible(tool.application)} on this model.",
                scope="workspace",
                action="activities.run",
                needs=("document",),
                parameter=name,
            )
            for name, tool in host(self.page).config.tools.items()
        ]

    def run(self, name: str) -> None:
        """Run a tool by its name."""
        tool = host(self.page).config.tools.get(name)
        if tool is None:
            self.complain(DldError(f"unknown tool {name!r}"))
        else:
            self.run_tool(tool)

    def run_tool(self, tool: Tool) -> None:
        """Ask for the output where it wants that, and run a tool on the model."""
        from dld_tui.core.settings.custom_tools import output_beside

        if not tool.output:
            self._run_tool(tool, None)
            return
        path = self.document.path or Path.cwd() / "new.onnx"
        offered = output_beside(tool, path)
        if not tool.ask:
            self._run_tool(tool, unused(offered))
            return

        self.page.tasks.start(self._ask_output(tool, unused(offered)), "dialog")

    async def _ask_output(self, tool: Tool, offered: Path) -> None:
        from dld_tui.activities.tool import files_beside
        from dld_tui.widgets.dialogs.dialogs import PromptDialog
        from dld_tui.widgets.dialogs.overwrite import ask_file

        def problem(text: str) -> str | None:
            if not text.strip():
                return "a name is needed"
            is_folder = Path(text).expanduser().parent.is_dir()
            return None if is_folder else "the folder does not exist"

        def prompt(start: str) -> PromptDialog:
            title = f"Run {visible(tool.name)}"
            return PromptDialog(title, "Write the result to", start, check=problem)

        chosen = await ask_file(self.page.tasks, prompt, str(offered), beside=files_beside)
        if chosen is not None:
            path, replaced = chosen
            self._run_tool(tool, path, [str(old.absolute()) for old in replaced])

    def _run_tool(self, tool: Tool, output: Path | None, replaces: Sequence[str] = ()) -> None:
        from dld_tui.core.files.model_set import plan_model

        document = self.document
        if document.path is not None and not document.dirty:
            self._start_tool(tool, document.path, output, replaces)
            return
        folder = hold_folder("tool")
        structure = folder / "structure.part"
        model = folder / (document.path.name if document.path is not None else "new.onnx")

        def prepare(cancelled: CancelCheck) -> None:
            plan = plan_model(
                structure.read_bytes(),
                document.blobs,
                model,
                external=document.external,
                spill=document.spill,
            )
            plan.write(cancelled=cancelled)
            structure.unlink()

        async def begin() -> None:
            try:
                if not await self.jobs.snapshot_when_still(structure):
                    discard(folder)
                    return
            except OSError as error:
                discard(folder)
                self.complain(DldError(f"the model cannot be written for the tool: {error}"))
                return
            self._start_tool(tool, model, output, replaces, folder, prepare)

        self.page.tasks.start(begin(), "tool")

    def _start_tool(
        self,
        tool: Tool,
        model: Path,
        output: Path | None,
        replaces: Sequence[str],
        folder: Path | None = None,
        prepare: Callable[[CancelCheck], None] | None = None,
    ) -> None:
        from dld_tui.activities.tool import request_for
        from dld_tui.screens.activity.document_forms import ToolJobScreen

        home = self.document.path.parent if self.document.path is not None else Path.cwd()
        request = request_for(tool, model, output, model_folder=home)

        def opened(result: Result) -> None:
            if result.output is not None:
                host(self.page).open_path(result.output)

        self.push(
            ToolJobScreen(
                to_json(request),
                opened if tool.open else None,
                title=visible(tool.name),
                prepare=prepare,
                folder=folder,
                replaces=replaces,
            )
        )
