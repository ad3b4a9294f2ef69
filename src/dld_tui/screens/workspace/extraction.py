"""Parts of the model as models of their own, and its edits as a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.process import paths
from dld_tui.core.text import clip, visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.editing import outer_nodes
from dld_tui.screens.workspace.history import MANY
from dld_tui.screens.workspace.inference import TypeInference
from dld_tui.screens.workspace.jobs import require_sound
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.widgets.explorer.state import below
from dld_tui.widgets.shell.page import host

if TYPE_CHECKING:
    from dld_tui.core.document import Node, Scope
    from dld_tui.core.document.parts.extraction import Extraction as Extracted


_WRITTEN = "is a separate model now"


@dataclass(eq=False)
class Extraction(Controller):
    """Writes parts of the model."""

    COMMAND_TABLE = table(
        "workspace",
        ("edit.extract", "extraction.extract", "x", "", "extract",
         "Write the marked nodes, a subgraph or a function as a separate model.",
         "subgraph, submodel, cut out, extract subgraph, split the model"),
        ("edit.export_script", "extraction.export_script", "", "can_undo", "export edits",
         "Write the edits of this session as a script for `dld edit`.", "script, record edits"),
        common="document", group="Mark", menus={"edit.extract": "node scope"},
    )  # fmt: skip

    navigation: Navigation
    inference: TypeInference

    def extract(self) -> None:
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
        body = self.navigation.body_of(node)
        if body is None:
            self._extract([node], node.scope)
            return
        title = clip(visible(body.title), 40)
        self.ask_which(
            "Extract",
            "What should become a model?",
            [
                ("n", "the node", lambda: self._extract([node], node.scope)),
                ("b", f"its body {title}", lambda: self._extract([], body, node)),
            ],
        )

    def _extract_marked(self, nodes: list[Node], scope: Scope) -> None:
        """Extract marked nodes; ask whether with what lies between them, if anything does."""
        from dld_tui.core.document.traversal import between, places

        if len(nodes) < 2 or any(node.scope is not nodes[0].scope for node in nodes):
            self._extract(nodes, scope)
            return
        found: set[Node] = set()

        def ask() -> None:
            if len(found) == len(nodes):
                self._extract(nodes, scope)
                return
            place = places(nodes[0].scope, list(found))
            ordered = sorted(found, key=place.__getitem__)
            more = fmt.plural(len(found) - len(nodes), "node")
            self.ask_which(
                "Extract",
                "What should become a model?",
                [
                    ("b", f"the marked nodes and {more} between them",
                     lambda: self._extract(ordered, scope)),
                    ("m", "the marked nodes alone", lambda: self._extract(nodes, scope)),
                ],
            )  # fmt: skip

        def follow() -> None:
            found.update(between(nodes))

        large = self.model.listing.total > MANY
        self.perform("Following the links", follow, ask, large=large)

    def _extract_context(self, node: Node) -> None:
        """Write what a provider compiled, such as a TensorRT engine; then offer to open it."""
        from dld_tui.core.document.parts.ep_context import context_of, write_context

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

    def _ask_path(
        self, title: str, start: str, hint: str, write: Callable[[Path, bool], None]
    ) -> None:
        """Ask for a file, and write it where it is not there, or may be replaced."""
        from dld_tui.widgets.dialogs.dialogs import OpenPathDialog
        from dld_tui.widgets.dialogs.overwrite import ask_file

        async def ask() -> None:
            chosen = await ask_file(
                self.page.tasks, lambda text: OpenPathDialog(title, text, hint, is_new=True), start
            )
            if chosen is not None:
                path, replaced = chosen
                write(path, bool(replaced))

        self.page.tasks.start(ask(), "dialog")

    def _below_folder(self) -> list[Node]:
        """Return the nodes of the name scope or type at the cursor; none of a whole graph."""
        branch = self.cursor.branch
        if branch is None or branch.kind not in ("folder", "type"):
            return []
        return [entry.node for entry in below(self.model.listing, branch)]

    def _extract(self, nodes: Sequence[Node], scope: Scope, call: Node | None = None) -> None:
        """Extract nodes, or the whole of a scope when there are none; then ask for the file."""
        # The inputs and outputs of the new model need types.
        self.inference.when_typed(lambda: self._extract_now(nodes, scope, call), always=True)

    def _extract_now(self, nodes: Sequence[Node], scope: Scope, call: Node | None) -> None:
        from dld_tui.core.document.parts.extraction import extract_body, extract_nodes

        document = self.document
        extractions: list[Extracted] = []

        def task() -> None:
            if nodes:
                extractions.append(extract_nodes(document, nodes))
            else:
                extractions.append(
                    extract_body(document, scope, call if scope.is_function else None)
                )

        def ended() -> None:
            asking = self._ask_extract(extractions[0], self._part_name(nodes, scope))
            self.page.tasks.start(asking, "dialog")

        large = (len(nodes) or len(scope.nodes)) > MANY
        self.perform("Extracting", task, ended, large=large)

    def _part_name(self, nodes: Sequence[Node], scope: Scope) -> str:
        path = self.document.path
        folder = path.parent if path is not None else Path.cwd()
        stem = path.stem if path is not None else "model"
        part = "part" if nodes or scope.kind == "graph" else scope.title
        safe = "".join(char if char.isalnum() or char in "-_." else "_" for char in part)[:40]
        return str(folder / f"{stem}.{safe}.onnx")

    async def _ask_extract(self, extracted: Extracted, start: str) -> None:
        from dld_tui.widgets.dialogs.nodes import ExtractDialog
        from dld_tui.widgets.dialogs.overwrite import ask_file

        chosen = await ask_file(
            self.page.tasks, lambda text: ExtractDialog(extracted, text), start, ending=".onnx"
        )
        if chosen is None:
            extracted.document.close()
        else:
            path, replaced = chosen
            self._write_extract(extracted, path, bool(replaced))

    def _write_extract(self, extracted: Extracted, path: Path, overwrite: bool) -> None:
        from dld_tui.core.document.serialise import loadable_view, save

        remarks: list[str] = []
        problems: list[str] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
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

        self.work.run(f"Writing {clip(visible(str(path)), 60, keep='end')}", task, ended)

    def _offer_to_open(self, path: Path, about: str = _WRITTEN) -> None:
        self.ask_which(
            "Written",
            f"{visible(paths.short(str(path)))} {about}.",
            [
                ("o", "open it in a tab", lambda: host(self.page).open_path(path)),
                ("s", "stay here", None),
            ],
        )

    def export_script(self) -> None:
        """Write the edits of this session as a script."""
        from dld_tui.core.document.scripting.scripts import export_script

        path = self.document.path
        start = str(path.with_suffix(".edits.jsonl")) if path is not None else "edits.jsonl"

        def write(path: Path, overwrite: bool) -> None:
            count: list[int] = []

            def written() -> None:
                shown = visible(paths.short(str(path)))
                self.say(f"{fmt.plural(count[0], 'edit')} in {shown}", 4)

            def task() -> None:
                count.append(export_script(self.document, path, overwrite=overwrite))

            self.perform("Exporting edits", task, written, large=True)

        self._ask_path("Export edits", start, "path of the script", write)
