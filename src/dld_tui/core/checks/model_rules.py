"""Rules about the model as a whole: versions, operator sets, size, functions, depth, names."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator

from dld_tui.core import fmt
from dld_tui.core import protos as onnx
from dld_tui.core.checks.findings import Finding, Level, Repair, found, name_of
from dld_tui.core.checks.signatures import Key, Root, function_key
from dld_tui.core.checks.state import ScopeState
from dld_tui.core.document import Document, Node, Scope
from dld_tui.core.document.proto_text import text_of

LARGEST_FILE = 2**31 - 1
"""Bytes of the largest protobuf message."""
DEEPEST = 31
"""Subgraphs inside each other that protobuf still reads: a level takes 3 of 100 messages."""


def check_model(
    document: Document, roots: list[Root], states: Iterable[ScopeState]
) -> Iterator[Finding]:
    """Yield what is wrong with a model as a whole; `roots` begin with the main graph's."""
    every = list(states)
    yield from _check_versions(document, roots[0])
    yield from _check_imports(roots)
    if not document.main.proto.name:
        yield found("graph-name", "The graph has no name", repair=Repair("name_graph"))
    main = document.main
    if not (main.nodes or main.inputs or main.outputs or main.records["initializer"]):
        yield found("empty-graph", "The graph has no nodes, inputs, outputs and weights")
    size = sum(sum(state.inline.values()) for state in every)
    if size > LARGEST_FILE:
        text = f"{fmt.size(size)} of weights are in the model's file; more than 2 GiB cannot be"
        yield found("model-size", text)
    for state in every:
        if state.depth == DEEPEST + 1:
            text = f"Subgraphs are nested more than {DEEPEST} deep; protobuf may refuse the file"
            yield found("nesting-depth", text, state.scope)
    yield from _check_functions(roots)


def _check_versions(document: Document, root: Root) -> Iterator[Finding]:
    model = document.model
    newest_ir = int(onnx.IR_VERSION)
    if not model.ir_version:
        from dld_tui.core.operators.registry import least_ir_version

        repair = _set_ir(max([4, *(least_ir_version({d: v}) for d, v in root.entries)]))
        level: Level = "warning" if model.HasField("ir_version") else "error"  # 0 is taken
        yield found("ir-missing", "ir_version missing", repair=repair, level=level)
    elif model.ir_version > newest_ir:
        text = f"IR version {model.ir_version} unsupported: newer than {newest_ir}"
        yield found("ir-unsupported", text)
    elif model.ir_version < 4:
        names = set(document.main.named("initializer")) - set(document.main.inputs)
        if names:
            text = (
                f"{fmt.plural(len(names), 'initializer')} not among the graph inputs, as IR version"
                f" {model.ir_version} wants it"
            )
            yield found("initializer-not-input", text, repair=_set_ir(4))
    if not root.entries:
        yield found("opset-missing", "No opset_import: invalid for IR >= 3")
    newest = onnx.defs().schema_version_map()[""][1]
    version = root.imports.get("", 0)
    if version > newest:
        text = f"Opset {version} is newer than this tool knows ({newest})"
        yield found("opset-future", text)


def _set_ir(version: int) -> Repair:
    return Repair("set_model_field", {"field": "ir_version", "value": version}, scoped=False)


def _check_imports(roots: list[Root]) -> Iterator[Finding]:
    known: set[str] = set()
    if roots[0].operators:
        from dld_tui.core.operators.registry import known_domains

        known.update(known_domains())
    counts: Counter[str] = Counter()
    functions = roots[0].functions
    for root in roots:
        scope = None if root is roots[0] else root.scope
        for domain, count in Counter(domain for domain, _ in root.entries).items():
            if count > 1:
                text = f"Operator set {name_of(domain or 'ai.onnx')} is imported {count} times"
                yield found("duplicate-opset", text, scope)
        for (domain, op_type), count in root.calls.items():
            if domain not in known and (domain, op_type) not in functions:
                counts[domain] += count
    for domain, count in counts.items() if known else ():
        text = (
            f"{fmt.plural(count, 'node')} of the operator set {name_of(domain)}"
            f" {'is' if count == 1 else 'are'} not checked: it is not known here"
        )
        yield found("unknown-domain", text)
    called = {domain for domain, _ in roots[0].calls}
    for domain in roots[0].imports:
        if domain and domain not in called:
            repair = Repair("set_opset", {"domain": domain, "version": None}, scoped=False)
            text = f"Operator set {name_of(domain)} is imported and never used"
            # The edit looks at functions too, which have imports of their own.
            in_functions = any(domain == key[0] for root in roots[1:] for key in root.calls)
            yield found("unused-opset", text, repair=None if in_functions else repair)


def _check_functions(roots: list[Root]) -> Iterator[Finding]:
    seen: set[tuple[str, str, str]] = set()
    callers: dict[Key, list[Root]] = {}
    for root in roots[1:]:
        callers.setdefault(function_key(root.scope), []).append(root)
        proto = root.scope.proto
        full = (*function_key(root.scope), text_of(getattr(proto, "overload", "")))
        if full in seen:
            text = f"Function {_title(root.scope)} is defined more than once"
            yield found("duplicate-function", text, root.scope)
        seen.add(full)
    used = _reached(roots[0].calls, callers)
    for key, found_roots in callers.items():
        calls: Counter[Key] = Counter()
        for root in found_roots:
            calls += root.calls
        scope = found_roots[0].scope
        if key in _reached(calls, callers):
            yield found("recursive-function", f"Function {_title(scope)} calls itself", scope)
        if key not in used:
            yield found("unused-function", f"Function {_title(scope)} is never called", scope)


def _reached(calls: Counter[Key], functions: dict[Key, list[Root]]) -> set[Key]:
    """Return the functions that some calls reach, directly or through others."""
    seen: set[Key] = set()
    waiting = [key for key in calls if key in functions]
    while waiting:
        key = waiting.pop()
        if key not in seen:
            seen.add(key)
            waiting += [k for root in functions[key] for k in root.calls if k in functions]
    return seen


def _title(scope: Scope) -> str:
    return name_of("::".join(function_key(scope)))


_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp"})
_RENAME = Repair("rename_duplicate_nodes")


def odd_name(scope: Scope, name: str, node: Node | None = None) -> list[Finding]:
    """Return what is odd about a name that is not printable as it is."""
    what = "Node" if node is not None else "Value"
    value = None if node is not None else name
    if any("\udc80" <= char <= "\udcff" for char in name):
        text = f"{what} name {name_of(name)} is not UTF-8"
    elif any(unicodedata.category(char) in _INVISIBLE for char in name):
        text = f"{what} name {name_of(name)} has control or invisible characters"
    else:
        return []
    return [found("odd-name", text, scope, node, value=value)]


def check_node_name(state: ScopeState, name: str) -> None:
    """Find out again whether several nodes have this name."""
    nodes = state.scope.nodes_named(name) if name else []
    if len(nodes) < 2:
        state.name_findings.pop(name, None)
        return
    second = sorted(nodes, key=lambda node: state.positions.get(node, 0))[1]
    message = f"{len(nodes)} nodes are called {name_of(name)}"
    # Readers make weights of constants: their names are then no nodes' any more.
    others = sum(node.op_type != "Constant" for node in nodes)
    level: Level = "error" if others > 1 else "warning"
    state.name_findings[name] = [
        found("duplicate-node-name", message, state.scope, second, repair=_RENAME, level=level)
    ]
