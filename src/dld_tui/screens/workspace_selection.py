"""Marked nodes: copying, pasting, extracting, editing many."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from textual.app import App

from dld_tui.core import fmt
from dld_tui.core import paths as folders
from dld_tui.core.document import Node, Scope, Transaction
from dld_tui.core.document.extraction import Extraction, extract_body, extract_nodes
from dld_tui.core.document.fragment import Fragment, fragment_of
from dld_tui.core.document.primitives import Splice
from dld_tui.core.document.saving import save
from dld_tui.core.document.script_files import export_script
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.open_path import OpenPathDialog
from dld_tui.screens.workspace_base import is_alive
from dld_tui.screens.workspace_change import MANY
from dld_tui.screens.workspace_edit import outer_nodes
from dld_tui.screens.workspace_marks import Marking
from dld_tui.widgets.batch_dialog import BatchDialog
from dld_tui.widgets.batch_model import TypeGroup, groups_of
from dld_tui.widgets.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.explorer_items import Branch
from dld_tui.widgets.explorer_search import below
from dld_tui.widgets.extract_dialog import ExtractDialog
from dld_tui.widgets.host import host

_MOST_SHARED = 8_000
"""Bytes of the largest fragment that goes to the clipboard of the terminal, too."""
_LARGE = 1 << 20
"""Bytes of payloads from which on pasting runs on a thread."""


class Selecting(Marking):
    """The part of the workspace for what is marked."""

    def facts(self) -> set[str]:
        """Return what holds for its commands, too."""
        facts = super().facts()
        if host(self).copied_nodes is not None:
            facts.add("copied")
        return facts

    # --- copy, cut, paste -----------------------------------------------------------------------

    def action_copy_nodes(self) -> None:
        """Copy the marked nodes, or the one at the cursor."""
        self._copy("copied", lambda nodes: None)

    def action_cut_nodes(self) -> None:
        """Copy the marked nodes, or the one at the cursor, and delete them."""
        self._copy("cut", lambda nodes: self.delete_nodes(nodes, reconnect=False))

    def _copy(self, word: str, then: Callable[[Sequence[Node]], None]) -> None:
        nodes = outer_nodes(self.chosen_nodes())
        if not nodes:
            return
        found: list[Fragment] = []

        def copied() -> None:
            host(self).copied_nodes = found[0]
            self._share(found[0])
            self.notify(f"{fmt.plural(len(nodes), 'node')} {word}: p pastes", timeout=3)
            self.facts_changed()
            then(nodes)

        self._run("Copying", len(nodes) > MANY, lambda: found.append(fragment_of(nodes)), copied)

    def _share(self, fragment: Fragment) -> None:
        """Put a small fragment on the clipboard of the terminal, as JSON."""
        if fragment.size <= _MOST_SHARED:
            text = json.dumps({"nodes": fragment.to_json(self.document)})
            App.copy_to_clipboard(self.app, text)  # not the app's own, which tells of it

    def action_paste_nodes(self) -> None:
        """Add the copied nodes to the graph at the cursor."""
        fragment = host(self).copied_nodes
        if fragment is None:
            return
        scope = self._target_scope()
        made: list[Transaction] = []

        def paste() -> Transaction:
            data = fragment.to_json(self.document, scope)
            made.append(self.document.apply("paste_nodes", scope=list(scope.path), fragment=data))
            return made[0]

        def done() -> None:
            self._show_pasted(made[0])

        large = fragment.count > MANY or fragment.size > _LARGE
        self.change(
            f"Pasting {fmt.plural(fragment.count, 'node')}", [paste], large=large, done=done
        )

    def _target_scope(self) -> Scope:
        """Return the graph that is pasted into: the one at the cursor."""
        node, item = self.node, self.explorer.item
        if node is not None:
            return node.scope
        scope = getattr(item, "scope", None) if not self.in_parameters else None
        return scope or self.explorer.model.root

    def _show_pasted(self, transaction: Transaction) -> None:
        pasted = [
            node
            for primitive in transaction.primitives
            if isinstance(primitive, Splice) and primitive.list_name == "node"
            for node in primitive.inserted
        ]
        title = transaction.title.replace("paste", "Pasted", 1)
        self.notify(clip(visible(title), 90, keep="middle"), timeout=4, markup=False)
        self.explorer.list.set_marks(set(pasted))
        if pasted:
            self.go_to(pasted[0])

    # --- extract --------------------------------------------------------------------------------

    def action_extract(self) -> None:
        """Write the marked nodes, or what is at the cursor, as a model of its own."""
        marked = self.explorer.marked if not self.in_parameters else []
        node = self.node
        if marked or node is None:
            self._extract(outer_nodes(marked or self._below_folder()), self._target_scope())
            return
        body = self.body_of(node)
        if body is None:
            self._extract([node], node.scope)
            return
        choices = [
            Choice("n", "the node", "node"),
            Choice("b", f"its body {clip(visible(body.title), 40)}", "body"),
        ]

        def chosen(answer: str | None) -> None:
            if answer:
                self._extract([node] if answer == "node" else [], body or node.scope, node)

        self.app.push_screen(ChoiceDialog("Extract", "What is to be a model?", choices), chosen)

    def _below_folder(self) -> list[Node]:
        """Return the nodes of the name scope or type at the cursor; none of a whole graph."""
        item = self.explorer.item
        if not isinstance(item, Branch) or item.kind not in ("folder", "type"):
            return []
        return [entry.node for entry in below(self.explorer.model, item)]

    def _extract(self, nodes: Sequence[Node], scope: Scope, call: Node | None = None) -> None:
        """Extract nodes, or the whole of a scope when there are none; then ask for the file."""
        # The inputs and outputs of the new model need types.
        self.when_typed(lambda: self._extract_now(nodes, scope, call), always=True)

    def _extract_now(self, nodes: Sequence[Node], scope: Scope, call: Node | None) -> None:
        document = self.document
        found: list[Extraction] = []

        def task() -> None:
            if nodes:
                found.append(extract_nodes(document, nodes))
            else:
                found.append(extract_body(document, scope, call if scope.is_function else None))

        def ended() -> None:
            self._ask_extract(found[0], self._part_name(nodes, scope))

        large = (len(nodes) or len(scope.nodes)) > MANY
        self._run("Extracting", large, task, ended)

    def _part_name(self, nodes: Sequence[Node], scope: Scope) -> str:
        path = self.document.path
        folder = path.parent if path is not None else Path.cwd()
        stem = path.stem if path is not None else "model"
        part = "part" if nodes or scope.kind == "graph" else scope.title
        safe = "".join(char if char.isalnum() or char in "-_." else "_" for char in part)[:40]
        return str(folder / f"{stem}.{safe}.onnx")

    def _ask_extract(self, found: Extraction, start: str) -> None:
        def chosen(path: Path | None) -> None:
            if path is None:
                found.document.close()
                return
            path = path if path.suffix else path.with_suffix(".onnx")
            self._confirm_overwrite(
                path,
                lambda: self._write_extract(found, path),
                lambda: self._ask_extract(found, str(path)),
            )

        self.app.push_screen(ExtractDialog(found, start), chosen)

    def _write_extract(self, found: Extraction, path: Path) -> None:
        remarks: list[str] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            try:
                remarks.extend(save(found.document, path, progress=progress, cancelled=cancelled))
            finally:
                found.document.close()

        def ended(error: DldError | None) -> None:
            if isinstance(error, CancelledError):
                self.notify("Not written: stopped", timeout=3)
            elif error is not None:
                host(self).show_error(error, "Not written")
            else:
                for remark in remarks:
                    self.notify(visible(remark), severity="warning", timeout=8, markup=False)
                self._offer_to_open(path)

        self.work(f"Writing {clip(visible(str(path)), 60, keep='end')}", task, ended)

    def _offer_to_open(self, path: Path) -> None:
        def answered(answer: str | None) -> None:
            if answer:
                host(self).open_path(path)

        self.app.push_screen(
            ChoiceDialog(
                "Written",
                f"{visible(folders.short(str(path)))} is a model of its own now.",
                [Choice("o", "open it in a tab", "open"), Choice("s", "stay here", "")],
            ),
            answered,
        )

    def _confirm_overwrite(
        self, path: Path, write: Callable[[], None], ask: Callable[[], None]
    ) -> None:
        if not path.exists():
            write()
            return

        def answered(answer: str | None) -> None:
            (write if answer == "overwrite" else ask)()

        self.app.push_screen(
            ChoiceDialog(
                "Overwrite?",
                f"{visible(str(path))} is there already.",
                [
                    Choice("o", "overwrite it", "overwrite"),
                    Choice("a", "choose another name", "other"),
                ],
            ),
            answered,
        )

    # --- many at once ---------------------------------------------------------------------------

    def action_edit_many(self) -> None:
        """Set the attributes that the marked nodes share."""
        nodes = self.chosen_nodes()
        if not nodes:
            return
        groups: list[TypeGroup] = []

        def changed(changes: list[JSON] | None) -> None:
            if changes and all(is_alive(node) for node in nodes):
                self.change(
                    "Setting attributes",
                    [lambda: self.document.apply("set_attributes", changes=changes)],
                    large=len(nodes) > MANY,
                )

        def collected() -> None:
            if any(group.attributes for group in groups):
                self.app.push_screen(BatchDialog(groups), changed)
            else:
                self.notify("These operators have no attribute that can be typed", timeout=4)

        self._run(
            "Reading attributes", len(nodes) > MANY, lambda: groups.extend(groups_of(nodes)),
            collected,
        )  # fmt: skip

    def action_export_script(self) -> None:
        """Write the edits of this session as a script."""
        path = self.document.path
        start = str(path.with_suffix(".edits.jsonl")) if path is not None else "edits.jsonl"

        def ask(start: str) -> None:
            self.app.push_screen(
                OpenPathDialog("Export edits", start, "path of the script"), chosen
            )

        def chosen(path: Path | None) -> None:
            if path is not None:
                self._confirm_overwrite(path, lambda: write(path), lambda: ask(str(path)))

        def write(path: Path) -> None:
            count: list[int] = []

            def written() -> None:
                shown = visible(folders.short(str(path)))
                self.notify(f"{fmt.plural(count[0], 'edit')} in {shown}", timeout=4, markup=False)

            self._run(
                "Exporting edits", True, lambda: count.append(export_script(self.document, path)),
                written,
            )  # fmt: skip

        ask(start)

    # --- short and long -------------------------------------------------------------------------

    def _run(
        self, title: str, large: bool, task: Callable[[], None], done: Callable[[], None]
    ) -> None:
        """Do something now, or on a thread when it may take long; says why when it fails."""
        if not large:
            try:
                task()
            except DldError as error:
                self.complain(error)
                return
            done()
            return

        def ended(error: DldError | None) -> None:
            if error is not None:
                self.complain(error)
            else:
                done()

        self.work(title, lambda progress, cancelled: task(), ended)
