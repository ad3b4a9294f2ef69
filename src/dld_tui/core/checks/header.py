"""Rules about the model as a whole: versions, operator sets, functions."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from dld_tui.core.checks.findings import Finding, name_of
from dld_tui.core.document import Document, Scope
from dld_tui.core.document.wiretext import text_of


def check_header(document: Document) -> Iterator[Finding]:
    """Yield what is wrong with the IR version and the operator set imports."""
    model = document.model
    newest_ir = int(onnx.IR_VERSION)
    if not model.ir_version:
        yield Finding("error", "ir-missing", "ir_version missing")
    elif model.ir_version > newest_ir:
        yield Finding(
            "warning",
            "ir-unsupported",
            f"IR version {model.ir_version} unsupported: newer than {newest_ir}",
        )
    if not model.opset_import:
        yield Finding("error", "opset-missing", "No opset_import: invalid for IR >= 3")
    newest_opset = onnx.defs.onnx_opset_version()
    version = document.opset_imports.get("", 0)
    if version > newest_opset:
        yield Finding(
            "warning",
            "opset-future",
            f"Opset {version} is newer than this tool knows ({newest_opset})",
        )


def check_functions(document: Document) -> Iterator[Finding]:
    """Yield local functions that call themselves, directly or through others."""
    calls: dict[tuple[str, str], set[tuple[str, str]]] = {}
    scopes: dict[tuple[str, str], Scope] = {}
    for function in document.functions:
        key = (text_of(function.proto.domain), text_of(function.proto.name))  # type: ignore[union-attr]
        scopes[key] = function
        called = {(n.domain, n.op_type) for scope in function.walk() for n in scope.nodes}
        calls.setdefault(key, set()).update(called)
    for key, scope in scopes.items():
        seen: set[tuple[str, str]] = set()
        waiting = list(calls[key])
        while waiting:
            callee = waiting.pop()
            if callee in seen or callee not in calls:
                continue
            seen.add(callee)
            waiting += calls[callee]
        if key in seen:
            yield Finding(
                "error",
                "recursive-function",
                f"Function {name_of('::'.join(key))} calls itself",
                scope,
            )
