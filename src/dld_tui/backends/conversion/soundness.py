"""Whether the result of a conversion is as sound as its model was.

Native code looks at the models, which can end the process: call it only in one that may end.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from dld_tui.backends.onnxruntime.limits import time_limit
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.verdict import (
    Fault,
    external_bytes,
    finding_of,
    place_of,
    settings_to_load,
)
from dld_tui.core.checks import check
from dld_tui.core.checks.demands import broken_demands
from dld_tui.core.checks.findings import (
    KERNEL,
    Finding,
    ToolFinding,
    complaints_of,
    findings_of,
    joined,
    name_of,
)
from dld_tui.core.document.document import Document
from dld_tui.core.document.locations import Labels
from dld_tui.core.document.serialise import skeleton_bytes
from dld_tui.core.document.types.inference import (
    import_known_domains,
    infer,
    inline_small_data,
    store_types,
)
from dld_tui.core.errors import ActivityError, DldError, TimeLimitError, UnavailableError
from dld_tui.core.files.model_set import discard_view, external_view

_LESS_OPTIMIZED: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "the session entry session.disable_quant_qdq = 1",
        {"config": {"session.disable_quant_qdq": "1"}},
    ),
    ("optimization level basic", {"optimization_level": "basic"}),
    ("optimization disabled", {"optimization_level": "disabled"}),
)
"""Settings of a session by which a fault of the optimizer is avoided, the fastest first."""
_LIMIT_S = 20.0
"""So long ONNX Runtime may take to load a model, with weights of zeros."""
_NO_FAULT = {"tensor-without-data", KERNEL}
"""Errors that a conversion may cause on purpose: a model without weights, or for other devices."""


def require_sound(before: Document, after: Document) -> None:
    """Refuse a result with kinds of errors that its original model does not have.

    Args:
        before: The model that was converted.
        after: The result.

    Raises:
        ActivityError: The result has new errors.
    """
    errors = _errors(all_findings(after, after.path or before.path))
    if not errors:
        return
    known = {finding.rule for finding in _errors(all_findings(before))} | _NO_FAULT
    added = [finding for finding in errors if finding.rule not in known]
    if added:
        more = f" (and {len(added) - 1} more)" if added[1:] else ""
        raise ActivityError(f"the result is not valid: {_described(added[0])}{more}")


def require_loadable(before: Document, after: Document) -> None:
    """Refuse a result that ONNX Runtime does not load with default options, unlike its original.

    Raises:
        ActivityError: It does not; the hint says with which options it does, where its optimizer is
            at fault.
    """
    refused = [one for one in _runtime_faults(after) if one.rule not in _NO_FAULT]
    if not refused or _runtime_faults(before):
        return
    (finding, *_) = findings_of(after, refused)
    way_round = next(
        (words for words, changes in _LESS_OPTIMIZED if not _runtime_faults(after, **changes)), None
    )
    if way_round is None:
        raise ActivityError(f"the result is not valid: {_described(finding)}")
    raise ActivityError(
        f"ONNX Runtime's optimizer makes an invalid model of the result: {_described(finding)}",
        hint=f"The result would load with {way_round}",
    )


def all_findings(document: Document, home: Path | None = None) -> list[Finding]:
    """Return all findings of a document. Types that are inferred are noted in it."""
    model = onnx.ModelProto.FromString(skeleton_bytes(document))
    home = home or document.path
    if home is not None:
        inline_small_data(model, home)
    import_known_domains(model)
    inference = infer(model)
    document.forget_types()  # those of before a conversion may be other ones
    with contextlib.suppress(KeyError):
        store_types(document, inference.model)
    told = [*complaints_of(inference), *broken_demands(document), *_runtime_faults(document)]
    # Errors of rules count even where ONNX Runtime takes them: other readers do not.
    return joined(findings_of(document, told), None, check(document))


def _runtime_faults(document: Document, **changes: Any) -> list[ToolFinding]:
    """Return why ONNX Runtime refuses a document; nothing if it is missing or takes too long.

    Args:
        changes: Of the default settings.
    """
    view = external_view(
        skeleton_bytes(document), document.blobs, external=document.external, loadable=True
    )
    try:
        labels = Labels.of_file(view, repeated=True)
        model = onnx.ModelProto.FromString(view.read_bytes())
        with time_limit(time.monotonic() + _LIMIT_S):
            Session(view, replace(settings_to_load(external_bytes(model)), **changes))
    except (TimeLimitError, UnavailableError):
        return []
    except DldError as error:
        cause = error.__cause__ or error
        fault = Fault("load", type(cause).__name__, str(cause))
        place = place_of(fault.text, model, labels)
        return [finding_of(fault, labels, place)]
    finally:
        discard_view(view)
    return []


def _described(finding: Finding) -> str:
    name = name_of(finding.node.ref) if finding.node is not None else ""
    return finding.message if name in finding.message else f"{name}: {finding.message}"


def _errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level == "error"]
