"""Other models added behind a document, as one edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.errors import DldError, EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import imported_versions, text_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.edit_registry import edit, strings
from dld_tui.core.model.document.locations import bodies
from dld_tui.core.model.document.opset_imports import (
    import_messages,
    message_content,
    raise_ir_version,
)
from dld_tui.core.model.document.parts.fragment import defined_in, moved, take_in
from dld_tui.core.model.document.parts.merging import Added, find_links, merge, rename_outputs
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.document.transactions import Transaction
from dld_tui.core.model.edits.model_swap import SwapModel, read_model
from dld_tui.core.model.operators.registry import same_meaning
from dld_tui.core.text import quoted, shortened
from dld_tui.core.types import FIRST_IR_WITH_IMPORTS, JSON, plain_domain


@edit
def merge_models(
    document: Document,
    transaction: Transaction,
    *,
    models: Sequence[JSON],
    links: Mapping[str, str] | None = None,
    prefixes: Sequence[str] = (),
    keep: Mapping[str, str] | None = None,
) -> str:
    """Add other models behind this one: its outputs become inputs of the next, and so on.

    Outputs go to inputs of their name; where there are none, to the one input of their type and
    shape. Operator sets and format versions are brought together.

    Args:
        document: The first model.
        models: The others in their order; each is a path, also as ``{"file": PATH}``, or a payload,
            perhaps with a ``name`` for people.
        links: The tensor by the input that it becomes, instead of the rule above; in each added
            model that has the input. A tensor may also be an input, which both models then share.
        prefixes: Of the names of each of the others that are taken, one a model, or one for all;
            by default such names get a number.
        keep: Outputs that stay outputs although an input takes them, and new names of outputs; by
            their names.

    Raises:
        EditError: They cannot be merged; says which and why.
    """
    merge_into(document, transaction, models, links or {}, strings(prefixes, "prefixes"), keep)
    return f"merge with {shortened(_title(models[0], 0))}" if len(models) == 1 else (
        f"merge with {fmt.plural(len(models), 'model')}"
    )  # fmt: skip


def merge_into(
    document: Document,
    transaction: Transaction,
    models: Sequence[JSON],
    links: Mapping[str, str],
    prefixes: Sequence[str],
    keep: Mapping[str, str] | None,
) -> list[Added]:
    """Do what :func:`merge_models` does; return what the others became.

    Raises:
        EditError: They cannot be merged; says which and why.
    """
    if not models:
        raise EditError("there is no other model to merge")
    if len(prefixes) not in (0, 1, len(models)):
        raise EditError(
            f"{len(prefixes)} prefixes are given for {fmt.plural(len(models), 'model')}"
        )
    models = [{"file": one} if isinstance(one, str) else one for one in models]
    base = onnx.ModelProto.FromString(skeleton_bytes(document))
    kept = dict(keep or {})
    used = set[str]()
    known = set[str]()
    added: list[Added] = []
    taken = set[str]()
    for number, described in enumerate(models):
        other = _read(document, described)
        inputs, defined = {text_of(info.name) for info in other.graph.input}, defined_in(base.graph)
        given = {
            name: value for name, value in links.items() if name in inputs and value in defined
        }
        prefix = prefixes[number if len(prefixes) > 1 else 0] if prefixes else ""
        lost = [name for name in links if name in inputs and name not in given]
        try:
            if lost and number == len(models) - 1 and lost[0] not in used:
                raise EditError(f"there is no tensor {quoted(links[lost[0]])}")
            resolved = find_links(base.graph, other.graph, given, taken)
            bring_together(base, other)
            one = merge(
                base, other, resolved, prefix=prefix, keep=kept,
                content=lambda function: message_content(document.blobs, function),
            )  # fmt: skip
        except EditError as error:
            raise EditError(
                error.message, where=_title(described, number), hint=error.hint
            ) from None
        used.update(given)
        known.update(inputs)
        added.append(one)
        taken.update(added[-1].links.values())
    for name in links.keys() - used:
        if name in known:
            raise EditError(f"there is no tensor {quoted(links[name])} for input {quoted(name)}")
        raise EditError(f"no added model has an input {quoted(name)}")
    rename_outputs(base.graph, kept)
    transaction.do(SwapModel(document, base))
    return added


def _title(described: JSON, number: int) -> str:
    if not isinstance(described, dict):
        return Path(described).name if isinstance(described, str) else f"model {number + 2}"
    plain = described.get("file") if "sha256" not in described else None
    return Path(str(described.get("name") or plain or f"model {number + 2}")).name


def _read(document: Document, described: JSON) -> onnx.ModelProto:
    """Return a model whose payloads are those of the document; data files stay data files."""
    is_plain = isinstance(described, dict) and "file" in described and "length" not in described
    if not is_plain:
        return read_model(document, described)
    assert isinstance(described, dict)
    opened = Document.open(str(described["file"]))
    try:
        model = onnx.ModelProto.FromString(skeleton_bytes(opened))
        model = moved(model, opened.blobs, document.blobs, own=True)
        take_in(opened, model, document.blobs, pending=True)
        return model
    finally:
        opened.close()


def bring_together(base: onnx.ModelProto, other: onnx.ModelProto) -> None:
    """Give two models the same versions of the format and of all operator sets, which both import.

    The ai.onnx operators of the older one are converted up; where that cannot be, those of the
    newer one down. Other operator sets take the newer version if it means the same.

    Raises:
        EditError: An operator cannot be converted, or means something else; names it.
    """
    sets = [_imports(model) for model in (base, other)]
    here, there = (one.get("") for one in sets)
    if here is not None and there is not None and here != there:
        older, newer = (base, other) if here < there else (other, base)
        why = _convert(older, max(here, there))
        if why and _convert(newer, min(here, there)):
            raise EditError(f"opsets {here} and {there} cannot be brought together: {why}")
        sets = [_imports(model) for model in (base, other)]
    imports = dict(sets[0])
    for domain, version in sets[1].items():
        present = imports.setdefault(domain, version)
        if present != version and domain:
            _require_same(base if present < version else other, domain, present, version)
            imports[domain] = max(present, version)
    format_version = max(int(base.ir_version), int(other.ir_version), FIRST_IR_WITH_IMPORTS)
    for model in (base, other):
        raise_ir_version(model, format_version)
        del model.opset_import[:]
        model.opset_import.extend(import_messages(imports))


def _imports(model: onnx.ModelProto) -> dict[str, int]:
    imports = imported_versions(model)
    if not imports and model.ir_version < FIRST_IR_WITH_IMPORTS:
        return {"": 1}  # there was one version
    return imports


def _convert(model: onnx.ModelProto, version: int) -> str:
    """Convert the ai.onnx operators; return why that cannot be done, the model then unchanged."""
    from dld_tui.core.conversion.opset import convert_opset  # lazy: NumPy and onnx's schemas

    converted = onnx.ModelProto()
    converted.CopyFrom(model)
    try:
        changes = convert_opset(converted, version)
    except DldError as error:
        return error.message
    if changes.unconverted:
        return changes.unconverted[0]
    model.CopyFrom(converted)
    return ""


def _require_same(model: onnx.ModelProto, domain: str, present: int, version: int) -> None:
    """Refuse operators of a set that mean something else in the newer version."""
    there, here = sorted((present, version))
    for _, body in bodies(model):
        for node in body.node:
            op_type = text_of(node.op_type)
            if plain_domain(text_of(node.domain)) == domain and not same_meaning(
                op_type, domain, there, here
            ):
                raise EditError(
                    f"{quoted(op_type)} is not the same in {quoted(domain)} {there} and {here}"
                )
