"""Models: opened, edited, checked, compared, saved.

>>> model = open_model(path)
>>> [node.op_type for node in model.main.nodes]
['Relu', 'Relu']
>>> model.edit.rename_node(node="act", name="activation")
"rename node 'act' to 'activation'"
>>> [node.name for node in model.find("Relu")]
['conv', 'activation']
>>> model.check()
[]
>>> changed = diff(path, model)
>>> changed.same, [change.name for _, change in changed.all_changes()]
(False, ['activation'])
>>> model.save(path.with_name("renamed.onnx"))
[]
>>> _ = model.undo()
>>> diff(path, model).same
True
>>> edits()["rename_node"]
'Give a node another name; nothing refers to nodes by name inside the model.'
>>> model.close()
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.api.requests import in_python_words, opened, request_of
from dld_tui.core.checks import check as _check
from dld_tui.core.checks.findings import Finding
from dld_tui.core.compare.diff import ModelDiff, diff_documents
from dld_tui.core.errors import EditError, InputError, UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.source import read_text
from dld_tui.core.model import document as core
from dld_tui.core.model.document.new_model import NewModel
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    import numpy as np

    from dld_tui.core.model.document.scripting.scripts import ReplayResult
    from dld_tui.core.model.document.summary import ModelSummary
    from dld_tui.core.model.edits.rewriting import RewriteResult
    from dld_tui.core.model.graph.pictures.drawing import Picture
    from dld_tui.core.model.rewrite.matcher import Hit

__all__ = ["Document", "check", "diff", "edits", "new_model", "open_model"]


class Document(core.Document):
    """A model: its graph is :attr:`main`, whose ``nodes``, ``inputs`` and ``initializers`` it has.

    ``with open_model(path) as model`` closes it; :meth:`undo` and :meth:`redo` take back and repeat
    edits.
    """

    _is_closed = False

    def close(self, *, keep_journal: bool = False) -> None:
        """Close the files; once more does nothing."""
        if not self._is_closed:
            self._is_closed = True
            super().close(keep_journal=keep_journal)

    def __enter__(self) -> Document:
        """Return the model."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{len(self.main.nodes)} nodes"
        return f"Document({self.title!r}): {state}{', edited' if self.dirty else ''}"

    def _repr_html_(self) -> str:
        """Return the inputs, outputs and counts as a table, for notebooks."""
        summary = self.summary()
        rows = [
            (side, tensor.name, tensor.type.text if tensor.type is not None else "?")
            for side, tensors in (("input", summary.inputs), ("output", summary.outputs))
            for tensor in tensors
        ]
        rows.append(("nodes", f"{summary.nodes_total:,}", summary.weights_text))
        cells = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        return f"<table><caption>{escape(self.title)}</caption>{cells}</table>"

    def apply(self, edit: core.Edit | str, /, **arguments: JSON) -> core.Transaction:
        """Make an edit by its name, as edit scripts do; :attr:`edit` has them as methods.

        Raises:
            EditError: It does not fit the model, which stays as it was; or the model is closed.
        """
        if self._is_closed:
            raise EditError("the model is closed", where=self.title)
        return super().apply(edit, **arguments)

    @property
    def edit(self) -> Edits:
        """All edits as methods."""
        return Edits(self)

    def summary(self) -> ModelSummary:
        """Return inputs, outputs, operators, opsets and weights."""
        from dld_tui.core.model.document.summary import summarise

        return summarise(self)

    def check(self) -> list[Finding]:
        """Return errors and oddities, errors first; nothing is run."""
        return _check(self)

    def infer_types(self) -> bool:
        """Infer types and shapes that the model does not declare; return whether there are any."""
        from dld_tui.api.inference import infer

        return infer(self, self._own_file)

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """Return the values of an initializer of the main graph, or of a Constant node's output.

        Raises:
            InputError: There is none of this name, or its data cannot be read.
        """
        tensor = self.main.initializer(name)
        if tensor is None:
            producer = self.main.producer(name)
            tensor = producer.tensor("value") if producer is not None else None
        if tensor is None:
            raise InputError(f"there is no initializer {name!r}", where=self.title)
        return tensor.read().reshape(tensor.shape)

    def find(self, query: str) -> list[core.Node]:
        """Return nodes by a condition, such as ``Conv where group > 1``, as ``dld find`` does.

        Raises:
            UsageError: The query is malformed.
        """
        from dld_tui.core.model.rewrite.query import parse_query

        wanted = parse_query(query)
        if wanted.needs_types:
            self._infer_missing()
        return list(wanted.nodes(self))

    def match(self, pattern: str) -> list[Hit]:
        """Return the places of a pattern, such as ``Mul(x, Sigmoid(x))``, as ``dld match`` does.

        Raises:
            UsageError: The pattern is malformed.
        """
        from dld_tui.core.model.rewrite.matcher import Matcher
        from dld_tui.core.model.rewrite.pattern import parse_pattern

        wanted = parse_pattern(pattern)
        if wanted.needs_types:
            self._infer_missing()
        return list(Matcher(wanted).hits(self))

    def rewrite(self, *rules: str, preview: bool = False) -> RewriteResult:
        """Apply rules until none matches, as one edit, and return what they did.

        Args:
            rules: Names of built-in rules, files of rules, or rules such as ``Identity(x) => x``.
            preview: Change nothing.

        Raises:
            UsageError: A rule is malformed.
        """
        from dld_tui.core.model.edits import rewriting
        from dld_tui.core.model.rewrite.rule import rules_of, text_of_rules

        wanted = rules_of(rules)
        if any(rule.needs_types for rule in wanted):
            self._infer_missing()
        text = text_of_rules(wanted)
        rewritten = rewriting.preview(self, text)
        if rewritten.counts and not preview:
            self.apply(rewriting.rewrite(rules=text))
        return rewritten

    def extract(
        self,
        *,
        nodes: Sequence[str | core.Node] = (),
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        subgraph: str = "",
        function: str = "",
        scope: Sequence[str] = (),
    ) -> Document:
        """Return a part as a model: it shares weights with this one, so save it before closing.

        Args:
            nodes: Nodes, or their references; or
            inputs: tensors to start at, with
            outputs: tensors to end at; or
            subgraph: ``NODE:ATTRIBUTE``; or
            function: ``DOMAIN:NAME``.
            scope: The path of the graph in which names are looked for first.

        Raises:
            UsageError: There is no such thing, or nothing is named.
        """
        from dld_tui.core.model.document.parts.extraction import extract_part

        if not (nodes or inputs or outputs or subgraph or function):
            raise UsageError(
                "say what to extract", hint="Give nodes, inputs and outputs, subgraph or function"
            )
        with in_python_words():
            part = extract_part(
                self, scope=scope, nodes=[_ref(node) for node in nodes], inputs=inputs,
                outputs=outputs, subgraph=subgraph, function=function,
            ).document  # fmt: skip
        part.__class__ = Document
        assert isinstance(part, Document)
        return part

    def run_script(self, script: str | Path) -> ReplayResult:
        """Replay an edit script: lines that do not fit are skipped, and returned with the reason.

        Args:
            script: Its text, or its file.

        Raises:
            InputError: A line is not JSON, or the file cannot be read.
        """
        from dld_tui.core.model.document.scripting.scripts import locate_files, parse_script, replay

        is_file = isinstance(script, Path) or ("\n" not in script and not script.startswith("{"))
        path = Path(script) if is_file else None
        if path is not None and not path.is_file():
            raise InputError("there is no such file", where=str(path))
        text = str(script) if path is None else read_text(path)
        entries = parse_script(text, where=None if path is None else str(path))
        folder = Path.cwd() if path is None else path.absolute().parent
        return replay(self, locate_files(entries, folder))

    def save(self, path: str | Path | None = None, *, force: bool = False) -> list[str]:
        """Write the model and return remarks, mostly none.

        Args:
            path: Where to; by default the file that it was opened from, which is replaced.
            force: Replace another file, or a file that another program has changed.

        Raises:
            UsageError: The file exists, or a new model has no path.
            SaveError: It could not be written; the old file is unchanged.
        """
        from dld_tui.core.model.document.serialise import save
        from dld_tui.core.model.edits.late_types import declare_late

        target = None if path is None else Path(path)
        if target is not None and (self.path is None or target.resolve() != self.path.resolve()):
            require_free([target], force, hint="Give force=True to replace it")
        untyped = [f"the type of {quoted(name)} is unknown" for name in declare_late(self)]
        return [*save(self, target, force=force), *untyped]

    def draw(
        self,
        path: str | Path | None = None,
        *,
        scope: Sequence[str] = (),
        node: str | None = None,
        hops: int = 2,
        folded: bool | None = None,
        constants: bool = False,
        report: str | Path | None = None,
        scheme: str = "light",
        scale: float | None = None,
        force: bool = False,
    ) -> Picture:
        """Return a picture of the graph, which notebooks show; write it as well where `path` says.

        Args:
            path: Ends in .svg, .html, .png, .jpg or .txt, which is the format; SVG without.
            scope: A subgraph, or a function, as `Scope.path` has it.
            node: Draw the neighbourhood of this node, by its name or one of its outputs.
            hops: The size of the neighbourhood.
            folded: Whether repeated blocks are single boxes; None if all would be too large.
            constants: Draw constant subexpressions, too.
            report: A profile whose times are shown.
            scheme: ``light``, ``dark``, ``colour-blind`` or ``mono``.
            scale: Of the picture.
            force: Replace a file that exists.

        Raises:
            InputError: The report is of another model.
            UsageError: There is no such node, graph, format or scheme, the picture is too large for
                its format, or the file exists.
        """
        from dld_tui.core.files.writer import write_bytes
        from dld_tui.core.model.document.parts.extraction import body_at
        from dld_tui.core.model.graph.pictures import style
        from dld_tui.core.model.graph.pictures.drawing import kind_of
        from dld_tui.core.reading.model_pictures import Drawing, lacks_types, picture_of_scope

        if scheme not in style.SCHEMES:
            hint = f"There are {', '.join(style.SCHEMES)}"
            raise UsageError(f"there is no scheme {scheme!r}", hint=hint)
        target = None if path is None else Path(path)
        kind = "svg" if target is None else kind_of(target)
        if target is not None:
            require_free([target], force, hint="Give force=True to replace it")
        graph = body_at(self, tuple(scope))
        if lacks_types(graph):
            self._infer_missing()
        picture = picture_of_scope(
            self, graph, " › ".join([self.title, *graph.path]),
            Drawing(kind, "canvas", node, hops, folded, constants,
                    None if report is None else Path(report), style.Look(style.SCHEMES[scheme]),
                    scale),
            logging.getLogger("dld_tui").warning,
        )  # fmt: skip
        if target is not None:
            write_bytes(target, picture.data)
        return picture

    def _infer_missing(self) -> None:
        from dld_tui.api.inference import infer_missing

        infer_missing(self, self._own_file)

    @property
    def _own_file(self) -> Path:
        """Its file, or one that it might have: data files are looked for beside it."""
        return self.path or Path.cwd() / "new.onnx"


class Edits:
    """The edits of a model as methods, in words of edit scripts.

    ``scope`` is the main graph by default. A node is given by its reference or as an object, which
    knows its graph. Each returns what it did.
    """

    def __init__(self, document: Document) -> None:
        self._document = document

    def __dir__(self) -> list[str]:
        return sorted(_table())

    def __getattr__(self, name: str) -> Callable[..., str]:
        function = _table().get(name)
        if function is None:
            raise AttributeError(f"there is no edit {name!r}; edits() lists them")
        signature = inspect.signature(function)
        own = list(signature.parameters.values())[2:]

        def edit(**arguments: Any) -> str:
            scope = signature.parameters.get("scope")
            home = _home(arguments.values())
            if scope is not None and (home or scope.default is scope.empty):
                arguments.setdefault("scope", home)
            pairs = {p.name: scope is None and p.annotation != "Sequence[str]" for p in own}
            given = {
                key: _plain(value, pairs=pairs.get(key, False)) for key, value in arguments.items()
            }
            return self._document.apply(name, **given).title

        edit.__name__, edit.__doc__ = name, inspect.getdoc(function)
        edit.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[
                p.replace(default=()) if p.name == "scope" and p.default is p.empty else p
                for p in own
            ]
        )
        return edit


def _home(values: Any) -> list[JSON]:
    """Return the path of the graph of the first node among arguments; the main graph's without."""
    for value in values:
        nodes = value if isinstance(value, (list, tuple)) else [value]
        for node in nodes:
            if isinstance(node, core.Node):
                return [*node.scope.path]
    return []


def _plain(value: Any, *, pairs: bool) -> Any:
    """Return an argument as JSON data: nodes by their references, arrays as lists."""
    if isinstance(value, core.Node):
        return value.ref
    if isinstance(value, Mapping):
        return {key: _plain(item, pairs=pairs) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [
            [[*item.scope.path], item.ref]
            if pairs and isinstance(item, core.Node)
            else _plain(item, pairs=pairs)
            for item in value
        ]
    if isinstance(value, Path):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else value


def _ref(node: str | core.Node) -> str:
    return node.ref if isinstance(node, core.Node) else node


def _table() -> Mapping[str, Callable[..., str]]:
    from dld_tui.core.model.document.edit_registry import known_edits

    return known_edits()


def open_model(path: str | Path) -> Document:
    """Open an ONNX model; its weights stay in the file until they are needed.

    Raises:
        InputError: It cannot be read, or is no model.
    """
    from dld_tui.core.llm.folder import model_in

    document = Document.open(model_in(Path(path)))
    document.ask_types = document.infer_types
    return document


def new_model(**settings: Any) -> Document:
    """Return an empty model.

    Args:
        settings: As ``dld new`` has them: ``opset=17``, ``inputs={"x": "float32[N,3]"}``, …

    Raises:
        UsageError: A setting is wrong.
    """
    from dld_tui.core.model.edits.new_document import new_document

    with in_python_words(NewModel), request_of(NewModel, settings) as request:
        document = new_document(request)
    document.__class__ = Document
    assert isinstance(document, Document)
    return document


def edits() -> dict[str, str]:
    """Return all edits with the first sentence of each; methods of :attr:`Document.edit`."""
    return {
        name: (inspect.getdoc(function) or "").partition("\n")[0]
        for name, function in sorted(_table().items())
    }


def check(model: core.Document | str | Path) -> list[Finding]:
    """Return errors and oddities of a model, errors first; nothing is run.

    Raises:
        InputError: The file cannot be read, or is no model.
    """
    with opened(model) as document:
        return _check(document)


def diff(
    old: core.Document | str | Path, new: core.Document | str | Path, *, weights: bool = True
) -> ModelDiff:
    """Return the differences of two models; nodes are matched by name, then by structure.

    Args:
        old: A model, or its file.
        new: The other model, or its file.
        weights: Compare the values of initializers as well.

    Raises:
        InputError: A file cannot be read, or is no model.
    """
    with opened(old) as first, opened(new) as second:
        return diff_documents(first, second, weights=weights)
