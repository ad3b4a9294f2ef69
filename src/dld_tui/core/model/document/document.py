"""A model as a document: opened as a skeleton, edited by transactions, saved by streaming."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import DecodeError

from dld_tui.core.errors import CorruptFileError, EditError, InputError, SaveError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import Blob, BlobTable, SpillFile
from dld_tui.core.files.columns import ModelParts, NodeBytes, NodeParts
from dld_tui.core.files.external import ExternalFiles
from dld_tui.core.files.proto_fields import crowd_of_model, text_of
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.files.source import Source
from dld_tui.core.files.wire import cut
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import CallTypes, Scope, ShownTypes
from dld_tui.core.model.document.scripting.journal import EditJournal, Recorder
from dld_tui.core.model.document.transactions import DocumentChange, Edit, Transaction, UndoHistory
from dld_tui.core.model.tensors.payloads import PayloadStore
from dld_tui.core.process.interpreter import collector_paused
from dld_tui.core.types import FIRST_IR_WITH_IMPORTS, JSON, CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.files.text_model import TextFormat
    from dld_tui.core.model.document.new_model import NewModel

D = TypeVar("D", bound="Document")
NEW_DATA_LIMIT = 4 << 30
"""The most bytes of generated values (zeros, random numbers) in one document, by default."""


class Document:
    """An open model. Make one with :meth:`open` or :meth:`new`; close it when done.

    Args:
        parts: What nodes of the main graph, or of functions, may have: looking for it in each of
            them takes longer than all else, and much memory.
        nodes: The nodes of the main graph, where the model comes without them.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        *,
        path: Path | None = None,
        source: Source | None = None,
        blobs: BlobTable | None = None,
        external: ExternalFiles | None = None,
        journaled: bool = False,
        parts: NodeParts = NodeParts(),  # noqa: B008 - immutable
        nodes: Sequence[NodeBytes] = (),
    ) -> None:
        self.model = model
        """The model's own fields; nodes and other records of graphs live in the scopes."""
        self.path = path
        """The file that it is saved to; None for a new model."""
        self.text: TextFormat | None = None
        """How that file has the model as text; None for a binary one."""
        self.source = source
        self.blobs = blobs or BlobTable()
        self.spill = SpillFile()
        """Where the payloads that edits make are kept."""
        self.fixed_forms: dict[tuple[Blob, int], Blob] = {}
        """Payloads of varints that were read, decoded to numbers of so many bytes."""
        self.prepared: dict[str, Blob] = {}
        """Payloads prepared for edits that follow, by a key of the edit."""
        self.payloads = PayloadStore()
        """The files of large payloads in the arguments of edits."""
        self.new_data, self.new_data_limit = 0, NEW_DATA_LIMIT
        """Bytes of values that edits generated (zeros, random numbers), and their limit."""
        self.external = external or ExternalFiles(path or Path.cwd() / "new.onnx")
        self.history = UndoHistory()
        self.on_change: list[Callable[[DocumentChange], None]] = []
        """Called after each edit, undo and redo, in the thread that made it; see hold_changes."""
        self._held: list[DocumentChange] | None = None
        self.shown_types = ShownTypes()
        """The types of values as lists show them."""
        self.ask_types: Callable[[], object] | None = None
        """Infers types, for edits that need some which the model does not declare."""
        self.call_types = CallTypes()
        # A command that writes another file leaves no journal of its source.
        self._recorder = Recorder(EditJournal(path)) if journaled and path is not None else None
        self.main = Scope(model.graph, self, parts=parts, nodes=nodes)
        functions = [Scope(function, self, parts=parts) for function in model.functions]
        self.main.records["function"] = functions  # there, so that a splice can edit the list
        del model.functions[:]

    @classmethod
    def open(
        cls: type[D],
        path: Path | str,
        *,
        progress: ProgressCallback | None = None,
        cancelled: CancelCheck | None = None,
        allow_linked_data: bool = False,
        journaled: bool = False,
    ) -> D:
        """Open a model file. Payloads stay in it and are read when they are wanted.

        Args:
            path: An ONNX file.
            progress: Called with bytes read and bytes in all.
            cancelled: Asked now and then.
            allow_linked_data: Follow links from the model's folder to external data elsewhere, as
                the Hugging Face cache has them; such data is only read.
            journaled: Write edits to a journal, so that a crash loses none.

        Raises:
            InputError: The file cannot be read, or is something else than an ONNX model.
            CancelledError: `cancelled` said so.
        """
        path = Path(path)
        kind = recognise(path)
        if not kind.is_model:
            raise InputError(f"is {kind.title}, not an ONNX model", where=str(path))
        text: TextFormat | None = None
        if kind is FileKind.ONNX_TEXT:
            from dld_tui.core.files.text_model import open_text  # lazy: its parsers

            source, text = open_text(path)
        else:
            source = Source.open(path)
        try:
            blobs = BlobTable()
            parts = cut(source, blobs, progress=progress, cancelled=cancelled)
            try:
                model, nodes = _parsed(parts)
            except DecodeError as error:
                raise CorruptFileError(f"not an ONNX protobuf: {error}", where=str(path)) from None
            if not model.HasField("graph"):
                raise InputError("Model has no graph", where=str(path))
            if crowd := crowd_of_model(model):
                raise InputError(f"has {crowd}, more than programs go through", where=str(path))
            external = ExternalFiles(path, allow_linked=allow_linked_data)
            with collector_paused():
                document = cls(
                    model,
                    path=path,
                    source=source,
                    blobs=blobs,
                    external=external,
                    journaled=journaled,
                    parts=parts.nodes(only_apart=bool(nodes) and not model.functions),
                    nodes=nodes,
                )
            document.text = text
            return document
        except BaseException as error:
            if isinstance(error, InputError) and not (error.where or "").startswith(str(path)):
                error.where = f"{path}: {error.where}"
            source.close()
            raise

    @classmethod
    def new(cls, opsets: dict[str, int]) -> Document:
        """Return an empty model that imports the given operator sets, ``""`` being ai.onnx."""
        from onnx import helper

        model = onnx.ModelProto(producer_name="dld-tui")
        imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        model.opset_import.extend(imports)
        model.ir_version = helper.find_min_ir_version_for(imports, ignore_unknown=True)
        model.graph.name = "main"
        return cls(model)

    def journal_as_new(self, new: NewModel) -> None:
        """Write edits of a model that has no file yet to a journal, which says how it began."""
        self._recorder = Recorder(EditJournal(None, new))

    def close(self, *, keep_journal: bool = False) -> None:
        """Close the files. The journal goes too, unless the edits are to be offered again."""
        if self._recorder is not None and not keep_journal:
            self._recorder.journal.close()
        if self.source is not None:
            self.source.close()
        self.external.close()
        self.spill.close()
        self.payloads.close()

    @property
    def functions(self) -> list[Scope]:
        """Local functions, in the order of the file."""
        return self.main.records["function"]

    def forget_types(self) -> None:
        """Forget what shape inference found."""
        for scope in self.scopes():
            scope.inferred = {}
        self.call_types = CallTypes()

    def scopes(self) -> Iterator[Scope]:
        """Yield every scope: the main graph and its subgraphs depth first, then the functions."""
        yield from self.main.walk()
        for function in self.functions:
            yield from function.walk()

    def need_types(self) -> None:
        """Infer the types that the model does not declare, where somebody can and nobody did."""
        if self.ask_types is not None and not self.main.inferred:
            self.ask_types()

    def scope_at(self, path: Sequence[str]) -> Scope:
        """Return a scope by its path.

        Raises:
            EditError: There is none.
        """
        steps = list(path)
        scope = self.main
        if steps and steps[0].startswith("function "):
            wanted = steps.pop(0)
            scope = self._only([f for f in self.functions if f.step == wanted], path)
        for step in steps:
            name, _, attribute = step.rpartition(":")
            owner = scope.find(name)
            if owner is not None:  # however it is named
                step = f"{owner.ref}:{attribute}"
            candidates = owner.subgraphs() if owner is not None else scope.children()
            scope = self._only([child for child in candidates if child.step == step], path)
        return scope

    def find_node(self, path: Sequence[str], ref: str) -> Node | None:
        """Return a node by its scope and what names it there; None when it is not there."""
        try:
            return self.scope_at(path).find(ref)
        except EditError:
            return None

    @staticmethod
    def _only(scopes: list[Scope], path: Sequence[str]) -> Scope:
        if len(scopes) != 1:
            raise EditError("there is no such scope", where=" › ".join(path))
        return scopes[0]

    @property
    def opset_imports(self) -> dict[str, int]:
        """Operator set versions by domain, ``""`` being ai.onnx. Untrusted text."""
        imports = {text_of(entry.domain): int(entry.version) for entry in self.model.opset_import}
        if not imports and 0 < self.model.ir_version < FIRST_IR_WITH_IMPORTS:
            return {"": 1}  # there was one version
        if "ai.onnx" in imports:
            imports.setdefault("", imports.pop("ai.onnx"))
        return imports

    @property
    def title(self) -> str:
        """A short name for tabs. Untrusted text."""
        return self.path.name if self.path is not None else "new model"

    @property
    def journal_error(self) -> str | None:
        """Why edits are not being written to the journal, or None."""
        return self._recorder.journal.error if self._recorder is not None else None

    @property
    def dirty(self) -> bool:
        """True when there is something to save."""
        return self.path is None or self.history.dirty

    def apply(self, edit: Edit | str, /, **arguments: JSON) -> Transaction:
        """Run an edit of :mod:`dld_tui.core.model.edits` and return what it did.

        Args:
            edit: The edit, or the name of one that has these arguments.

        Raises:
            EditError: It does not fit the model, which is then as it was before.
        """
        from dld_tui.core.model.document.edit_registry import (
            run_edit,  # lazy: a look needs no edits
        )

        if isinstance(edit, str):
            edit = Edit(edit, arguments)
        transaction = Transaction.of(edit)
        run_edit(self, transaction)
        if transaction.primitives:
            self.history.add(transaction)
            if self._recorder is not None:
                self._recorder.edited(transaction)
            self._tell("edit", transaction)
        return transaction

    def undo(self) -> Transaction | None:
        """Take back the last edit and return it, or None when there is none."""
        if not self.history.done:
            return None
        last = self.history.done[-1]
        if self._recorder is not None and not self._recorder.undoes(last):
            from dld_tui.core.model.document.edit_registry import INVERSES

            # Describing the inverse takes the edit back step by step, so make it again after.
            try:
                arguments = INVERSES["restore"](self, last)
            except SaveError as error:
                last.repeat()
                self._recorder.lost(error.message)
            else:
                last.repeat()
                self._recorder.inverted(last, arguments)
        self.history.undo()
        self._tell("undo", last)
        return last

    def redo(self) -> Transaction | None:
        """Do again what was undone last and return it, or None when there is nothing."""
        transaction = self.history.redo()
        if transaction is not None:
            if self._recorder is not None and not self._recorder.redoes(transaction):
                self._recorder.edited(transaction)
            self._tell("redo", transaction)
        return transaction

    def hold_changes(self) -> None:
        """Notify no listeners until :meth:`tell_changes`: a thread is about to make edits."""
        self._held = []
        self.shown_types.is_locked = True

    @property
    def is_locked(self) -> bool:
        """Whether a thread may be making edits."""
        return self._held is not None

    def tell_changes(self, *, as_reset: bool = False) -> None:
        """Tell of the edits since :meth:`hold_changes`, in the thread that calls it.

        Args:
            as_reset: Tell once that everything may have changed.
        """
        changes, self._held = self._held or [], None
        self.shown_types.is_locked = False
        for change in [DocumentChange("reset", None)] if as_reset else changes:
            self._send(change)

    def _tell(self, kind: str, transaction: Transaction) -> None:
        change = DocumentChange(kind, transaction)
        if self._held is not None:
            self._held.append(change)
        else:
            self._send(change)

    def _send(self, change: DocumentChange) -> None:
        self.shown_types.clear()
        for listener in list(self.on_change):
            listener(change)

    def changed_on_disk(self) -> bool:
        """Return whether another program has changed or removed a file since it was read."""
        own = self.source is not None and self.source.changed_on_disk()
        return own or bool(self.external.changed_on_disk())

    def about_to_save(self, new_file: Path) -> None:
        """Note in the journal how its file will be, before the rename that saves it.

        Args:
            new_file: What is renamed over the document's own file next. For :mod:`.serialise`.
        """
        if self._recorder is not None:
            self._recorder.journal.about_to_save(new_file)

    def saved_as(self, path: Path, source: Source, text: TextFormat | None = None) -> None:
        """Take note that the present state is what `path` now holds. For :mod:`.serialise`."""
        old = self.source
        self.path, self.source, self.text = path, source, text
        self.external.moved_to(path)
        self.history.mark_saved()
        if self._recorder is not None:
            self._recorder.saved(path)
        # Payloads that only the undo history refers to still need the old file open.
        if old is not None and not self.history.done and not self.history.undone:
            old.close()


def _parsed(parts: ModelParts) -> tuple[onnx.ModelProto, Sequence[NodeBytes]]:
    """Return a model without nodes, and the nodes; or with its nodes, where they are not adjacent.

    Raises:
        DecodeError: protobuf does not read it.
    """
    rest, nodes = parts.split
    if nodes:
        model = onnx.ModelProto.FromString(rest)
        if not model.graph.node:
            return model, nodes
    return onnx.ModelProto.FromString(parts.model), ()
