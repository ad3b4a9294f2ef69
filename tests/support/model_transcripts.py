"""Transcripts of what is done to models: ``tests/core/model/transcripts/*.txt``.

``model NAME`` or ``model`` with ONNX text below says what the next lines are about: NAME is a text
of :mod:`tests.support.models` or :mod:`tests.support.body_models`; ``model weighted`` draws weights
for what no node of the text makes. Lines behind ``+`` add to it, as text of protobuf, what ONNX
text cannot say. ``> NAME {ARGUMENTS}`` makes an
edit of that model, ``>> …`` one of the model as the line before left it. Below stands its title,
then the lines of the model that it took away and added (:mod:`tests.support.model_lines`), behind
``! `` why it is refused, behind ``? `` that onnx's checker takes the model no more.

``> library`` rewrites by rules of the library, ``> preview`` tells what rules would do; ``> find``
and ``> ask`` look for nodes and their values, ``> pattern`` writes that of nodes; ``> check`` lists
findings and what their fixes do, ``> speed`` those about speed, ``> decoders`` those on decoders,
``> types`` what inference tells, of the first three variants of functions, too, ``> stale`` what
types are not sure after an edit, ``> sizes`` and ``> follow`` what follows from sizes, ``>
fitting`` where they do not fit, ``> costs`` what nodes cost and a run needs, ``> values`` what
rules can ask of values, and ``> weights`` weights in few bits; ``> guess`` what a model is fed
with; ``> accept`` what inputs take, ``> suggest`` shapes of new weights; ``> dimensions`` gives
inputs other sizes; ``> functions``, ``> inline``, ``> part`` and ``> merge`` are about models of
several parts; ``> paste`` pastes nodes, ``> providers`` tells what they do not take.
Conversions are in :mod:`tests.support.model_conversions`.

``pytest tests/core/model/test_transcripts.py --write-transcripts`` writes what is done now, to be
read as a diff.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf import text_format

from dld_tui.core import fmt
from dld_tui.core.checks import check
from dld_tui.core.checks.decoders import decoder_findings
from dld_tui.core.checks.demands import broken_demands
from dld_tui.core.checks.findings import Finding, repair_steps
from dld_tui.core.checks.providers import TableReader
from dld_tui.core.checks.speed import speed_findings
from dld_tui.core.conversion.changed_dimensions import change_dimensions
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.model.cost.memory import memory_lines, memory_plan, plan_json
from dld_tui.core.model.cost.nodes import ModelCosts, cost_json, cost_lines, cost_table
from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.document.inlining import inline_local_functions
from dld_tui.core.model.document.local_functions import function_rows
from dld_tui.core.model.document.locations import bodies, scope_at
from dld_tui.core.model.document.operator_matching import (
    is_required,
    mismatch,
    wanted_type,
    weight_dims,
)
from dld_tui.core.model.document.packed_weights import misfits, weights_of, why_unread
from dld_tui.core.model.document.parts.extraction import extract_part
from dld_tui.core.model.document.parts.fragment import fragment_of
from dld_tui.core.model.document.parts.merging import merge
from dld_tui.core.model.document.summary import summarise
from dld_tui.core.model.document.transactions import Edit
from dld_tui.core.model.edits.inputs_outputs import declare_inputs
from dld_tui.core.model.edits.repairs import repair_of
from dld_tui.core.model.edits.restore import inverse_arguments
from dld_tui.core.model.edits.rewriting import preview
from dld_tui.core.model.inputs.guess import candidate_guesses, input_specs
from dld_tui.core.model.inputs.roles import cache_pairs, state_pairs
from dld_tui.core.model.operators.provider_tables import Support, tables
from dld_tui.core.model.rewrite.expression import UNKNOWN
from dld_tui.core.model.rewrite.matcher import find_hits, pattern_of
from dld_tui.core.model.rewrite.pattern import parse_pattern
from dld_tui.core.model.rewrite.query import parse_columns, parse_query, shown_value
from dld_tui.core.model.rewrite.rule import rules_of, text_of_rules
from dld_tui.core.model.rewrite.views import VALUE_FIELDS, NodeView, ValueView
from dld_tui.core.model.rewrite.why import why_nothing
from dld_tui.core.model.shapes.evaluation import Evaluation
from dld_tui.core.model.shapes.following import Following
from dld_tui.core.model.shapes.inference import infer, infer_types, store_types
from dld_tui.core.model.shapes.noting import follow_shapes
from dld_tui.core.model.shapes.size import size_of, sizes_text, symbol
from dld_tui.core.model.shapes.staleness import Staleness
from dld_tui.core.model.shapes.value import Value
from dld_tui.core.model.tensors.value_types import parse_type, value_type_of
from tests.support import body_models, model_conversions, models
from tests.support.model_lines import changes, lines_of
from tests.support.recorded import fields_of
from tests.support.sessions import bytes_of

FOLDER = Path(__file__).resolve().parents[1] / "core" / "model" / "transcripts"
_SPOILT = "? onnx's checker does not take it any more"
_MODEL, _TEXT, _ADDED, _FRESH, _MORE, _ABOUT = "model", "  | ", "  + ", "> ", ">> ", "## "
_WEIGHTED = "weighted"
_MOST_VALUES = 1 << 17


def written(path: Path, folder: Path) -> str:
    """Return a transcript with what is done now.

    Args:
        path: The transcript.
        folder: An empty folder, for the files of the models.
    """
    given, printed, file = path.read_text("utf-8").splitlines(), [], folder / "m.onnx"
    about: list[str] = []
    document = None
    for line in given:
        if line.startswith(_ABOUT):
            printed += ["", line]
        elif line.split(" ")[0] == _MODEL:
            about = [line]
            printed += ["", line]
        elif line.startswith((_TEXT, _ADDED)):
            about.append(line)
            printed.append(line)
        elif line.startswith((_FRESH, _MORE)):
            if document is None or line.startswith(_FRESH):
                if document is not None:
                    document.close()
                file.write_bytes(_model_of(about).SerializeToString())
                document = Document.open(file)
            printed += ["", line]
            name, _, arguments = line.split(" ", 1)[1].partition(" ")
            printed += _done(document, name, json.loads(arguments or "{}"))
    if document is not None:
        document.close()
    return "\n".join(printed).strip() + "\n"


def _model_of(lines: Sequence[str]) -> onnx.ModelProto:
    name = lines[0][len(_MODEL) + 1 :]
    text = _text_of(name) if name not in ("", _WEIGHTED) else ""
    text += "\n".join(line.removeprefix(_TEXT) for line in lines if line.startswith(_TEXT))
    added = "\n".join(line.removeprefix(_ADDED) for line in lines if line.startswith(_ADDED))
    model: onnx.ModelProto = text_format.Merge(added, models.parse(text))
    return models.weighted(model) if name == _WEIGHTED else model


def models_of(name: str) -> Iterator[onnx.ModelProto]:
    """Yield the models of a transcript."""
    for part in re.split(r"(?m)^(?=model\b)", (FOLDER / f"{name}.txt").read_text("utf-8"))[1:]:
        yield _model_of(part.splitlines())


def _done(document: Document, name: str, arguments: dict[str, Any]) -> Iterator[str]:
    try:
        yield from (
            _LOOKS[name](document, *arguments.pop("", ()), **arguments)
            if name in _LOOKS
            else _edited(document, name, arguments)
        )
    except DldError as error:
        where = f"{error.where}: " if error.where else ""
        yield f"! {where}{error.message}"
        if error.hint:
            yield f"!   {error.hint}"


def _edited(document: Document, name: str, arguments: dict[str, Any]) -> list[str]:
    before = bytes_of(document)
    try:
        done = document.apply(name, **arguments)
    except DldError:
        assert bytes_of(document) == before, "a refused edit leaves a trace"
        raise
    after = bytes_of(document)
    if done.primitives:
        inverse = inverse_arguments(document, done)
        for primitive in done.primitives:
            primitive.do()
        document.apply("restore", **json.loads(json.dumps(inverse)))
        assert bytes_of(document) == before, "what the journal has gives other bytes"
        document.undo()
        document.undo()
        assert bytes_of(document) == before, "undo gives other bytes"
        document.redo()
        assert bytes_of(document) == after, "redo gives other bytes"
    models_of = [*map(onnx.ModelProto.FromString, (before, after))]
    spoilt = [_SPOILT] if _is_valid(models_of[0]) and not _is_valid(models_of[1]) else []
    return [done.title, *changes(*models_of), *spoilt]


def _is_valid(model: onnx.ModelProto) -> bool:
    """Return whether the checker of onnx takes a model."""
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError:
        return False
    return True


def _checked(
    document: Document, find: Callable[[Document], list[Finding]] = check
) -> Iterator[str]:
    """Yield the findings on a model, and what the fix of each does to it."""
    with suppress(DldError):
        store_types(document, infer_types(onnx.ModelProto.FromString(bytes_of(document)), None)[0])
    told, fixes = find(document), list[Edit]()
    for finding in told:
        place = [] if finding.scope is None else [*finding.scope.path] or ["main"]
        at = [finding.node.ref] if finding.node is not None else []
        about = [f"({finding.value})"] if finding.value is not None else []
        where = " ".join([" › ".join([*place, *at]), *about])
        yield f"{finding.level} {finding.rule} at {where}: {finding.message}"
        if finding.command:
            yield f"    {finding.command}"
        fix, repair = finding.fix, finding.repair is not None
        assert finding.is_fixable == (fix is not None)
        assert bool(repair_steps([finding])) == (finding.is_fixable and repair)
        if fix is not None and fix not in fixes:
            fixes.append(fix)
            said = {key: str(value).partition("\n")[0] if key == "rules" else value
                    for key, value in fix.arguments.items()}  # fmt: skip
            yield f"    {fix.name} {json.dumps(said)}"
            yield from ("    " + line for line in _edited(document, fix.name, fix.arguments))
            left = [*map(_known_as, find(document))]
            assert _known_as(finding) not in left, finding.message
            document.undo()
    for rule in dict.fromkeys(finding.rule for finding in told if finding.repair is not None):
        mended = [one for one in told if one.rule == rule and one.is_fixable and one.repair]
        if steps := repair_steps(mended):
            document.apply(repair_of(steps))
            left = [*map(_known_as, find(document))]
            assert not any(_known_as(one) in left for one in mended), rule
            document.undo()


def _slow(document: Document) -> Iterator[str]:
    """Yield what costs speed, as findings of a check."""
    return _checked(document, speed_findings)


def _of_decoders(document: Document) -> Iterator[str]:
    return _checked(document, decoder_findings)


def _known_as(finding: Finding) -> tuple[object, ...]:
    return (finding.rule, finding.scope, finding.node, finding.value, finding.message)


def _typed(document: Document) -> Iterator[str]:
    """Yield what inference says, and each type that it finds."""
    inference = infer(onnx.ModelProto.FromString(bytes_of(document)))
    for said in inference.messages:
        yield f"! {[*(said.place or ())]} {said.index}: {said.message}"
    store_types(document, inference.model)
    for scope in document.scopes():
        named = dict.fromkeys(
            name for node in scope.nodes for name in (*node.inputs, *node.outputs)
        )
        yield " › ".join(scope.path) or "main"
        for name in named:
            known = scope.value_type(name)
            yield f"  {name}: {known.text if known else '-'}"
        calls = document.call_types
        for variant in (None, *range(3)):
            if variant is not None and (types := calls.of(scope, variant)):
                told = (f"{name} {kind.text}" for name, kind in types.items())
                yield f"  variant {variant}: {', '.join(told)}"
            called = ((node.ref, calls.called(node, variant)) for node in scope.nodes)
            told_of = ((ref, number) for ref, number in called if number is not None)
            yield from (f"    {ref} calls variant {number}" for ref, number in told_of)
    for place, body in bodies(inference.model):
        for info in (*body.value_info, *(body.output if isinstance(body, onnx.GraphProto) else ())):
            declared, found = scope_at(document, place), value_type_of(info.type)
            known = declared.value_type(info.name) if declared else None
            if found != known:
                yield f"{[*place]} {info.name}: {found.text if found else '-'}"


def _sized(document: Document, **shapes: list[int]) -> Iterator[str]:
    """Yield what is known of the sizes and elements of all values, and what nodes do not get.

    Args:
        document: The model.
        **shapes: Of inputs; without, names of dimensions stand for sizes.
    """
    kinds = {name: document.main.value_type(name) for name in document.main.inputs}
    given = {
        name: Value(tuple(map(size_of, shapes.get(name, kind.dims))), source=(name, 0))
        for name, kind in kinds.items()
        if kind is not None and kind.dims is not None
    }
    found = Evaluation(document, given, named=not shapes)
    for scope, frames in found.frames.items():
        visits = f" ({len(frames)} times)" if len(frames) > 1 else ""
        yield (" › ".join(scope.path) or "main") + visits
        for frame in [*frames[:2], *frames[2:][-1:]]:
            yield from (
                f"  {name}: {_value_text(frame.get(name))}"
                for node in scope.nodes for name in node.outputs if name
            )  # fmt: skip
    for demand in found.demands.failed:
        yield f"! {demand.node.ref if demand.node else '-'}: {demand.text}"
    for name, bounds in found.demands.bounds.items():
        places = (f"{node.ref} ({sizes_text([size])})" for size, node in bounds)
        yield f"{name} points into {', '.join(places)}"
    for node, taken in found.branches.items():
        yield f"{node.ref} takes {taken}"
    for node, count in found.trips.items():
        yield f"{node.ref} runs {sizes_text([count])} times"


def _followed(document: Document, **shapes: list[int]) -> Iterator[str]:
    """Yield what the way back from each value tells, then what given shapes add to its types."""
    following = Following(unnamed=lambda name, axis: symbol(f"{name}.{axis}"))
    for scope in document.scopes():
        yield " › ".join(scope.path) or "main"
        names = (name for node in scope.nodes for name in node.outputs if name)
        yield from (f"  {name}: {_value_text(following.value(scope, name))}" for name in names)
    branches: dict[Node, str] = {}
    given = {name: tuple(sizes) for name, sizes in shapes.items()}
    yield f"sizes {follow_shapes(document, given, branches)}"
    yield f"branches { ({node.ref: taken for node, taken in branches.items()}) }"
    for scope in document.scopes():
        names = (name for node in scope.nodes for name in node.outputs if name)
        types = ((name, scope.value_type(name)) for name in names)
        yield from (f"  {name}: {known.text}" for name, known in types if known is not None)


def _value_text(value: Value) -> str:
    said = "?" if value.dims is None else sizes_text(value.dims)
    if value.is_sequence:
        items = None if value.items is None else [_value_text(item) for item in value.items]
        said += f" each of {items}"
    numbers = value.values()
    if numbers is not None:
        said += f" = {sizes_text(numbers[:9])}"
    if value.upper_bound is not None:
        said += f" <= {value.upper_bound}"
    return f"{said} from {value.source[0]} + {value.source[1]}" if value.source else said


def _fitting(document: Document) -> Iterator[str]:
    """Yield which inputs do not fit each other, and what the types of the model say of that."""
    for finding in broken_demands(document):
        place = [*(finding.remark.place or ()), finding.remark.index]
        yield f"{finding.level} {finding.rule} at {place}: {finding.remark.message}"


def _provided(document: Document) -> Iterator[str]:
    """Yield which nodes a provider does not take as they are, why, and what would help."""
    with suppress(DldError):
        store_types(document, infer_types(onnx.ModelProto.FromString(bytes_of(document)), None)[0])
    reader = TableReader(document, "m.onnx")
    for table in tables():
        verdicts = reader.verdicts(table)
        taken = [node for node, verdict in verdicts.items() if verdict.support is Support.TAKEN]
        yield f"{table.name} takes {', '.join(node.ref for node in taken)}"
        for node, verdict in verdicts.items():
            if verdict.support is not Support.TAKEN or verdict.reason:
                said = f"{verdict.support.name} {verdict.cause.name} {verdict.reason}"
                yield f"  {node.ref}: {said} {reader.change(table, node, verdict)}".rstrip()


def _weighed(document: Document) -> Iterator[str]:
    """Yield the weights in few bits of each node, and what of them does not fit."""
    for node in (node for scope in document.scopes() for node in scope.nodes):
        yield node.ref
        for weight in weights_of(node):
            sizes = f"{fmt.shape(weight.shape)} along {weight.axis}, {weight.dtype}"
            turned = ", transposed" if weight.is_transposed else ""
            matrix = np.round(weight.matrix().reshape(-1)[:8], 4).tolist()
            yield f"  {weight.name} for input {weight.position}: {weight.format}, {sizes}{turned}"
            yield f"  {matrix}"
        yield from (f"  ! {text}" for text in misfits(node))
        if why := why_unread(node):
            yield f"  not read: {why}"


def _costed(document: Document, **shapes: list[int]) -> Iterator[str]:
    """Yield what nodes cost and a run needs, of given shapes of inputs or with names."""
    given = {name: tuple(dims) for name, dims in shapes.items()}
    sizes = declare_inputs(document, given)
    with suppress(DldError):
        store_types(document, infer(onnx.ModelProto.FromString(bytes_of(document))).model)
    branches: dict[Node, str] = {}
    if given:
        sizes |= follow_shapes(document, given, branches)
    costs = ModelCosts(document, sizes, branches)
    facts = cost_json(costs, summarise(document))
    del facts["nodes"]
    yield from (*cost_lines(costs), json.dumps(facts))
    for scope in document.scopes():
        yield " › ".join(scope.path) or "main"
        for node in scope.nodes:
            cost = costs.of(node)
            moved = f"reads {cost.read}, writes {cost.written}, {cost.parameters} parameters"
            yield f"  {node.ref}: {cost.macs} MACs, {cost.flops} FLOPs, {moved}"
            made = [f"{name} {costs.elements_of(scope, name)} in {costs.bytes_of(scope, name)} B"
                    for name in node.outputs if name]  # fmt: skip
            yield f"    {', '.join(made)}"
    table = cost_table(costs)
    yield f"order of FLOPs {[table.columns[3].order_of(row) for row in table.rows]}"
    plan = memory_plan(costs)
    yield from memory_lines(plan)
    yield json.dumps(plan_json(plan))
    for outputs, keeps in ((False, False), (True, True)):
        other = memory_plan(costs, outputs=outputs, keeps_constants=keeps)
        yield f"outputs {outputs}, constants {keeps}: {other.weights} {other.peak} at {other.at}"


def _asked(document: Document, node: str, of: list[str]) -> Iterator[str]:
    """Yield the values of expressions at a node."""
    target = document.main.find(node)
    assert target is not None
    for text in of:
        try:
            values = [one.value(NodeView(target).field) for one in parse_columns((text,))]
            value = " and ".join(map(str, map(shown_value, values)))
        except UsageError as error:
            value = f"! {error.message}" + (f". {error.hint[:60]}" if error.hint else "")
        yield f"{text}: {value}"


def _extracted(document: Document, **what: Any) -> Iterator[str]:
    """Yield a part of a model as a model, what types it lacks, and what else is said."""
    with closing((found := extract_part(document, **what)).document) as part:
        yield from (f"! {remark}" for remark in found.remarks)
        yield f"untyped: {', '.join(found.untyped)}"
        yield from lines_of(onnx.ModelProto.FromString(bytes_of(part)))


def _valued(document: Document) -> Iterator[str]:
    """Yield what is known of each value of a model."""
    scope = document.main
    for name in [*scope.records["input"], *(name for node in scope.nodes for name in node.outputs)]:
        view = ValueView(scope, getattr(name, "name", name))
        told = {field: view.field(field) for field in VALUE_FIELDS.keys() - {"name", "present"}}
        yield f"{view.name}: " + ", ".join(
            f"{field} {shown_value(value)}"
            for field, value in sorted(told.items())
            if value is not UNKNOWN and value is not False and str(value)
        )


def _staled(document: Document, edit: str, **arguments: Any) -> Iterator[str]:
    """Yield the values whose types are not sure any more after an edit, and after its undo."""
    staleness = Staleness(document)
    document.on_change.append(staleness.changed)
    document.apply(edit, **arguments)
    for step in ("", "undone: "):
        while not staleness.advance(1):
            pass
        for scope in document.scopes():
            told = f"{step}{scope.title}: {', '.join(sorted(scope.stale))}"
            yield f"{told}; touched {', '.join(sorted(scope.touched))}".rstrip()
        if not step:
            staleness.clear()
            document.undo()


def _found(document: Document, query: str = "", pattern: str = "") -> Iterator[str]:
    """Yield the nodes of a query, or the hits of a pattern."""
    if query:
        asked = parse_query(query)
        yield from (" › ".join([*node.scope.path, node.ref]) for node in asked.nodes(document))
        yield f"needs types: {asked.needs_types}"
        return
    for hit in find_hits(document, parse_pattern(pattern)):
        about = {**hit.values, **hit.attributes}
        yield f"{', '.join(node.ref for node in hit.nodes)}: {about} {hit.problem}".rstrip()


def _patterned(document: Document, nodes: list[str], at: list[str] | None = None) -> Iterator[str]:
    """Yield the pattern of some nodes, and what it finds."""
    found = [document.scope_at(at or []).find(node) for node in nodes]
    pattern = pattern_of([node for node in found if node is not None])
    yield pattern
    yield from _found(document, pattern=pattern)


def _previewed(document: Document, rules: str) -> Iterator[str]:
    """Yield what rules would do, and why one of them does nothing."""
    done = preview(document, rules)
    for name, scope, went, came in done.hits:
        yield f"{name} in {' › '.join(scope) or 'main'}"
        yield from (f"- {line}" for line in went)
        yield from (f"+ {line}" for line in came)
    yield f"{done.counts} refused {done.refused}"
    if not done.counts:
        yield from why_nothing(document, rules_of([rules]))


def _accepting(document: Document, types: list[str]) -> Iterator[str]:
    """Yield of each input of a node, and the one behind them, what it takes of some types."""
    for node in document.main.nodes:
        for at in range(len(node.inputs) + 1):
            why = [mismatch(node, at, parse_type(text)) for text in types]
            needed = "needed" if is_required(node, at) else "optional"
            yield f"{node.ref} {at}: {needed}, {wanted_type(node, at) or 'any'}"
            yield from (f"  {text}: {w}" for text, w in zip(types, why, strict=True) if w)


def _resized(document: Document, *dims: str, **shapes: list[int]) -> Iterator[str]:
    """Yield which dimensions are meant, and what of the model follows them."""
    kinds = {name: document.main.value_type(name) for name in document.main.inputs}
    given: dict[str, Sequence[int]] = {
        name: [dim if isinstance(dim, int) else 2 for dim in kind.dims or ()]
        for name, kind in kinds.items()
        if kind is not None
    }
    made = change_dimensions(document, dims, lambda: {**given, **shapes})
    for one in made.asked:
        batch = ", a batch" if one.is_batch else ""
        yield f"{one.key}: {one.name or one.size} of {dict(one.axes)} becomes {one.to}{batch}"
    yield from (*made.notes, *made.nodes)
    yield from changes(onnx.ModelProto.FromString(bytes_of(document)), made.model)


def _guessed(
    document: Document, given: dict[str, list[int]] | None = None, **about: Any
) -> Iterator[str]:
    """Yield the caches and states of a model, what it is fed with, and what else is tried."""
    if not given and not about:
        yield from (fields_of(pair) for pair in (*cache_pairs(document), *state_pairs(document)))
    shapes = {name: tuple(shape) for name, shape in (given or {}).items()}
    guess, *others = candidate_guesses(input_specs(document), document, shapes, **about)
    for one in guess.inputs:
        flags = [flag for flag in ("is_guessed", "is_count", "follows") if getattr(one, flag)]
        flags += [one.container] if one.container else []
        bound = [other.name for other in guess.bound_to(one)]
        reasons = "; ".join(reason.text or "-" for reason in one.reasons)
        yield f"{one.option if one.is_guessed else one.text} {' '.join(flags)}".rstrip()
        if {*reasons} - {*"-; "}:
            others_too = ", ".join(bound[:2] + ["…"] * (len(bound) > 2))
            yield f"  {reasons}{f', with {others_too}' if bound else ''}"
        yield f"  {one.fill.text}, {one.fill.low:g} to {one.fill.high:g}, by {one.fill.reason}"
    if sum(map(math.prod, guess.shapes.values())) < _MOST_VALUES:
        with suppress(DldError):
            made, fills = guess.values(0), {one.name: one.fill for one in guess.inputs}
            yield from (f"{name}: {_rows(made[name])}" for name in made
                        if fills[name].kind != "uniform" or made[name].dtype.kind != "f"
                        or (fills[name].low, fills[name].high) != (0, 1))  # fmt: skip
    yield from (f"- {line}" for line in guess.remarks)
    yield from (f"or {other.text}" for other in others)
    fewer = [*guess.with_fewer()]
    for less in (*fewer[:2], *fewer[2:][-1:]):
        pairs = zip(guess.inputs, less.inputs, strict=True)
        changed = (
            f"{new.name} {new.fill.text} by {new.fill.reason}" for old, new in pairs if old != new
        )
        yield f"or {', '.join(changed)}"


def _rows(made: Any) -> str:
    """Return how often each of the first numbers of the first and the last row is there."""
    if not made.size:
        return "empty"
    rows = made.reshape(-1, made.shape[-1] if made.ndim else 1)
    told = []
    for row in rows[[0, -1]] if len(rows) > 1 else rows:
        runs = [(number, len([*same])) for number, same in itertools.groupby(row.tolist())]
        numbers = (f"{_number(number)}{f' x {n}' if n > 1 else ''}" for number, n in runs[:6])
        told.append(f"[{', '.join(numbers)}{', …' if len(runs) > 6 else ''}]")
    return " … ".join(told)


def _number(number: Any) -> str:
    return f"{number:.4g}" if isinstance(number, float) else str(number)


def _suggested(document: Document, calls: list[Any]) -> Iterator[str]:
    """Yield the dimensions of a new weight for an operator, a place, sizes and attributes."""
    for op_type, at, sizes, settings in calls:
        shapes = [None if one is None else tuple(one) for one in sizes]
        yield f"{op_type} {at} of {shapes} {settings}: {weight_dims(op_type, at, shapes, settings)}"


def _listed_functions(document: Document) -> Iterator[str]:
    for row in function_rows(document):
        calls = ", ".join(node.ref for node in row.instances)
        yield f"{row.signature}: {row.nodes} nodes, called by [{calls}] {row.problem}".rstrip()
        yield from (f"  {one}" for one in row.attributes)


def _merged(document: Document, other: str, links: dict[str, str], **how: Any) -> Iterator[str]:
    """Yield what a model of :mod:`tests.support.models` adds behind this one."""
    base = onnx.ModelProto.FromString(bytes_of(document))
    after = onnx.ModelProto()
    after.CopyFrom(base)
    theirs = models.parse(_text_of(other))
    yield str(merge(after, theirs, links, content=lambda proto: proto.SerializeToString(), **how))
    yield from changes(base, after)


def _inlined(document: Document) -> Iterator[str]:
    model = onnx.ModelProto.FromString(bytes_of(document))
    yield from changes(model, inline_local_functions(model))


def _pasted(
    document: Document, nodes: list[str], source: str = "", at: list[str] | None = None,
    scope: list[str] | None = None, **more: Any,
) -> list[str]:  # fmt: skip
    """Paste nodes of a scope of this model, or of another one, into a scope of this one."""
    other = Document(models.parse(_text_of(source))) if source else document
    found = [other.scope_at(at or []).find(node) for node in nodes]
    fragment = fragment_of([node for node in found if node is not None])
    data = fragment.to_json(document, document.scope_at(scope or []))
    arguments = {"scope": scope or [], "fragment": json.loads(json.dumps(data)), **more}
    return _edited(document, "paste_nodes", arguments)


def _text_of(name: str) -> str:
    """Return the text of a name, or a text itself."""
    if name.startswith("<"):
        return name
    return str(getattr(body_models, name, "") or getattr(models, name))


def _by_library(document: Document, rules: list[str]) -> list[str]:
    """Rewrite by rules of the library, which are named."""
    return _edited(document, "rewrite", {"rules": text_of_rules(rules_of(rules))})


_LOOKS: dict[str, Callable[..., Iterable[str]]] = {
    "accept": _accepting, "ask": _asked, "check": _checked, "costs": _costed,
    "part": _extracted, "find": _found,
    "fitting": _fitting, "guess": _guessed,
    "follow": _followed, "functions": _listed_functions, "inline": _inlined,
    "decoders": _of_decoders, "dimensions": _resized, "library": _by_library, "merge": _merged,
    "paste": _pasted,
    "pattern": _patterned, "preview": _previewed, "providers": _provided, "sizes": _sized,
    "speed": _slow, "stale": _staled, "suggest": _suggested, "types": _typed, "values": _valued,
    "weights": _weighed,
    **model_conversions.LOOKS,
}  # fmt: skip
"""What else than an edit a line may ask for."""
