"""Another version of the ai.onnx operators: asked for, converted by a job, applied or opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from dld_tui.core.document.conversion_text import conversion_lines
from dld_tui.core.errors import DldError
from dld_tui.core.files.model_set import plan_model
from dld_tui.core.operators.registry import newest_opset
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.opset_dialogs import ConversionDialog, VersionDialog
from dld_tui.screens.workspace_apply import Applying, Result
from dld_tui.widgets.dialogs import Choice, ChoiceDialog, PromptDialog
from dld_tui.widgets.host import host

_ACTIVITY = "convert_opset"


class Converting(Applying):
    """The part of the workspace that converts."""

    def action_convert_opset(self) -> None:
        """Ask for a version and a file, convert, and show what changed."""
        present = self.document.opset_imports.get("")
        newest = newest_opset()
        if present is None or newest is None:
            self.complain(DldError("the model imports no ai.onnx operators"))
            return

        def chosen(version: int | None) -> None:
            if version is not None:
                self._ask_place(version)

        self.app.push_screen(VersionDialog(present, newest), chosen)

    def _ask_place(self, version: int) -> None:
        path = self.document.path or Path.cwd() / "new.onnx"
        offered = path.with_name(f"{path.stem}-opset{version}.onnx")

        def answered(answer: str | None) -> None:
            if answer == "apply":
                self._convert(
                    version, Result(self.document, f"convert to opset {version}", offered)
                )
            elif answer == "write":
                self._ask_output(version, offered)

        choices = [
            Choice("a", "apply it to this document, as one edit that u takes back", "apply"),
            Choice("w", "write a file", "write"),
        ]
        title = f"Convert to opset {version}"
        self.app.push_screen(ChoiceDialog(title, "What to do with the result?", choices), answered)

    def _ask_output(self, version: int, offered: Path) -> None:
        def problem(text: str) -> str | None:
            target = Path(text).expanduser()
            if not text.strip():
                return "a name is needed"
            if target.exists():
                return "the file exists"
            return None if target.parent.is_dir() else "there is no such folder"

        def given(text: str | None) -> None:
            if text is not None:
                self._convert(version, Path(text).expanduser())

        title = f"Convert to opset {version}"
        prompt = PromptDialog(title, "Write the result to", str(offered), check=problem)
        self.app.push_screen(prompt, given)

    def _convert(self, version: int, to: Path | Result) -> None:
        document = self.document

        @contextmanager
        def convert(snapshot: Path, cancelled: CancelCheck) -> Iterator[dict[str, JSON]]:
            converted = snapshot.with_name("converted.onnx")
            with nullcontext(to) if isinstance(to, Path) else to.made(snapshot, cancelled) as path:
                yield {
                    "model": str(snapshot), "output": str(converted), "to": version,
                    "skeleton": True,
                }  # fmt: skip
                plan = plan_model(
                    converted.read_bytes(),
                    document.blobs,
                    path,
                    external=document.external,
                    spill=document.spill,
                )
                plan.write(overwrite=False, cancelled=cancelled)

        def done(told: dict[str, JSON], is_current: bool) -> None:
            lines = conversion_lines(told)
            if isinstance(to, Result):
                self.apply_result(to, lines, is_current=is_current)
                return

            def answered(wanted: bool | None) -> None:
                if wanted:
                    host(self).open_path(to)

            if not is_current:
                lines.append("The model was edited meanwhile: the result is of before that.")
            self.app.push_screen(ConversionDialog(lines, to.name), answered)

        self.run_beside(f"Converting to opset {version}", _ACTIVITY, convert, done)
