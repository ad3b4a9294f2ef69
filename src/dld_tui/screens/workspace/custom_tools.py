"""Custom tools on the model as it is, edits included."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.commands import Command
from dld_tui.core.errors import DldError
from dld_tui.core.params import to_json
from dld_tui.core.settings.paths import unused
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.jobs import Jobs
from dld_tui.widgets.shell.host import host

if TYPE_CHECKING:
    from dld_tui.activities.run_tool import Result
    from dld_tui.core.settings.custom_tools import Tool


@dataclass(eq=False)
class CustomTools(Controller):
    """Runs custom tools."""

    jobs: Jobs

    def commands(self) -> Sequence[Command]:
        """Return a command for each tool."""
        return [
            Command(
                id=f"tool.{name}",
                title=f"run {visible(name)}",
                help=f"Run {visible(tool.application)} on this model.",
                scope="workspace",
                action="custom_tools.run",
                needs=("document",),
                parameter=name,
            )
            for name, tool in host(self.page).config.tools.items()
        ]

    def run(self, name: str) -> None:
        """Run a tool by its name."""
        tool = host(self.page).config.tools.get(name)
        if tool is None:
            self.complain(DldError(f"there is no tool {name!r}"))
        else:
            self.run_tool(tool)

    def run_tool(self, tool: Tool) -> None:
        """Ask for the output where it wants that, and run a tool on the model."""
        from dld_tui.core.settings.custom_tools import output_beside
        from dld_tui.widgets.dialogs.dialogs import PromptDialog

        if not tool.output:
            self._run_tool(tool, None)
            return
        path = self.document.path or Path.cwd() / "new.onnx"
        offered = output_beside(tool, path)
        if not tool.ask:
            self._run_tool(tool, unused(offered))
            return

        def problem(text: str) -> str | None:
            target = Path(text).expanduser()
            if not text.strip():
                return "a name is needed"
            if target.exists() or target.is_symlink():
                return "the file exists"
            return None if target.parent.is_dir() else "there is no such folder"

        def given(text: str | None) -> None:
            if text is not None:
                self._run_tool(tool, Path(text).expanduser())

        prompt = PromptDialog(
            f"Run {visible(tool.name)}", "Write the result to", str(offered), check=problem
        )
        self.ask(prompt, given)

    def _run_tool(self, tool: Tool, output: Path | None) -> None:
        from dld_tui.core.files.model_set import plan_model

        document = self.document
        if document.path is not None and not document.dirty:
            self._start_tool(tool, document.path, output)
            return
        folder = Path(tempfile.mkdtemp(prefix="dld-tool-"))
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
                    shutil.rmtree(folder, ignore_errors=True)
                    return
            except OSError as error:
                shutil.rmtree(folder, ignore_errors=True)
                self.complain(DldError(f"the model cannot be written for the tool: {error}"))
                return
            self._start_tool(tool, model, output, folder, prepare)

        self.page.tasks.start(begin(), "tool")

    def _start_tool(
        self,
        tool: Tool,
        model: Path,
        output: Path | None,
        folder: Path | None = None,
        prepare: Callable[[CancelCheck], None] | None = None,
    ) -> None:
        from dld_tui.activities.run_tool import request_for
        from dld_tui.screens.activity.model_form import ToolJobScreen

        home = self.document.path.parent if self.document.path is not None else Path.cwd()
        request = request_for(tool, model, output, model_folder=home)

        def opened(result: Result) -> None:
            if result.output is not None:
                host(self.page).open_path(result.output)

        self.ask(
            ToolJobScreen(
                to_json(request),
                opened if tool.open else None,
                title=visible(tool.name),
                prepare=prepare,
                folder=folder,
            )
        )
