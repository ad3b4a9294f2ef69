"""An ONNX Runtime profile JSON into a report.

:func:`add_ort_profile` adds the layers and passes of a profile to a report that an activity writes;
:func:`report_from_ort_profile` opens a profile from anywhere as a report of its own.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.cost.roofline import Roof, kernel_work, placed
from dld_tui.core.cost.sharing import SHARED_BY
from dld_tui.core.report.attribution import Attribution
from dld_tui.core.report.formats.ort_profile import Kernel, OrtProfile, ProfilePass
from dld_tui.core.report.formats.trace_events import depths
from dld_tui.core.report.model import Report, temporary_report
from dld_tui.core.report.records import Layer, PassState
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.types import CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

_FILE_NAME = re.compile(r"^(.*?)_?(\d{4}-\d{2}-\d{2})_(\d{2})-(\d{2})-(\d{2})(_\d+)?$")
_HOST_PROVIDERS = frozenset({"CPUExecutionProvider", "unknown"})
_ALIGNMENT_ATTEMPTS = 3

PassObserver: TypeAlias = "Callable[[ProfilePass, Mapping[int, int]], None]"


@dataclass(frozen=True)
class ImportSummary:
    """What a profile held."""

    layers: int
    passes: int
    """Measured ones: without warm-up and incomplete passes."""
    version: str
    """The ONNX Runtime versions that write such a profile, e.g. ``1.12 to 1.15``."""
    providers: dict[str, int]
    """Kernels by execution provider, the most frequent first."""
    kernels: tuple[Kernel, ...] = ()
    """In order of first execution."""


def add_ort_profile(
    writer: ReportWriter,
    json_path: str | os.PathLike[str],
    document: Document | None,
    optimised_document: Document | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
    *,
    warm_up: int = 0,
    start_us: float = 0.0,
    on_pass: PassObserver | None = None,
    roofs: Mapping[str, Roof] | None = None,
) -> ImportSummary:
    """Add the layers, passes and samples of a profile, with what is wrong with it as notes.

    Args:
        writer: An open report; it is left open.
        json_path: What ``InferenceSession.end_profiling`` returned.
        document: The model that was run, for the links to its nodes; None to leave them out.
        optimised_document: What ``SessionOptions.optimized_model_filepath`` saved. With it, fused
            kernels are joined by their tensors.
        progress: Called with (bytes read, bytes in all).
        cancelled: Asked about once a megabyte.
        warm_up: How many passes at the start are not to count in statistics.
        start_us: When the profile began, on the report's clock.
        on_pass: Called with every pass after it was added, and the number that the report has for
            each kernel of the profile.
        roofs: What the devices of the execution providers can do at most.

    Raises:
        InputError: The file cannot be read, is empty, or is not such a profile.
        CancelledError: `cancelled` said so; what was read so far is in the report.
        SaveError: The report cannot be written.
    """
    profile = OrtProfile(Path(json_path))
    importer = _Importer(
        writer, profile, document, optimised_document, warm_up, start_us, on_pass, roofs or {}
    )
    return importer.run(progress, cancelled)


def report_from_ort_profile(
    json_path: str | os.PathLike[str],
    document: Document | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Report:
    """Return a profile as a report, whose file is temporary and goes when it is closed.

    Raises:
        InputError: The file cannot be read, is empty, or is not such a profile.
        CancelledError: `cancelled` said so.
        SaveError: There is no room in the folder for temporary files.
    """
    path = Path(json_path)
    name = _FILE_NAME.match(path.stem)

    def fill(writer: ReportWriter) -> None:
        found = add_ort_profile(writer, path, document, None, progress, cancelled)
        writer.set_fact("backend", f"ONNX Runtime {found.version}".rstrip())
        writer.set_fact("execution_provider", ", ".join(found.providers))
        writer.set_fact("created", _created(name))

    network = (name.group(1) if name else "") or path.name
    return temporary_report(path, fill, network=network, backend="ONNX Runtime")


def open_ort_profile(
    path: Path, progress: ProgressCallback | None = None, cancelled: CancelCheck | None = None
) -> Report:
    """Return a profile as a report, without links to a model; see above."""
    return report_from_ort_profile(path, None, progress, cancelled)


def _created(name: re.Match[str] | None) -> str:
    """Return when a profile was begun, in the local time of the machine that wrote it."""
    return f"{name[2]}T{name[3]}:{name[4]}:{name[5]}" if name else ""


class _Importer:
    def __init__(
        self,
        writer: ReportWriter,
        profile: OrtProfile,
        document: Document | None,
        optimised: Document | None,
        warm_up: int,
        start_us: float,
        on_pass: PassObserver | None,
        roofs: Mapping[str, Roof],
    ) -> None:
        self._roofs = roofs
        self._writer = writer
        self._start_us = start_us
        self._on_pass = on_pass
        self._profile = profile
        self._attribution = Attribution(document, optimised) if document is not None else None
        self._attempts = _ALIGNMENT_ATTEMPTS if optimised is not None else 0
        self._warm_up = warm_up
        self._layers: dict[int, int] = {}
        self._measured: list[ProfilePass] = []
        self._threads: set[int] = set()

    def run(
        self, progress: ProgressCallback | None, cancelled: CancelCheck | None
    ) -> ImportSummary:
        for found in self._profile.passes(progress, cancelled):
            self._add(found)
        self._drop_short_passes()
        for warning in self._profile.warnings:
            self._writer.note(warning, "warning")
        providers = self._providers()
        for provider in providers:
            if provider not in _HOST_PROVIDERS:
                self._writer.note(
                    f"layers of {provider} are timed on the CPU side, where they are launched"
                )
        self._writer.flush()
        version, kernels = self._profile.version, tuple(self._profile.kernels)
        return ImportSummary(len(self._layers), len(self._measured), version, providers, kernels)

    def _add(self, found: ProfilePass) -> None:
        if self._attempts and self._attribution is not None:
            aligned = self._attribution.align(self._top_level(found))
            self._attempts = 0 if aligned else self._attempts - 1
        rows = []
        for event in found.events:
            layer = self._layers.get(event.kernel)
            if layer is None:
                layer = self._writer.add_layer(self._layer(self._profile.kernels[event.kernel]))
                self._layers[event.kernel] = layer
            self._threads.add(event.thread)
            times = (event.duration_us, event.self_us, event.thread)
            rows.append((layer, self._start_us + event.start_us, *times))
        state = found.state
        if state == "measured":
            if found.index < self._warm_up:
                state = "warm-up"
            else:
                # Without its events: only what comes after needs to know of it.
                self._measured.append(
                    ProfilePass(
                        found.index, found.start_us, found.duration_us, state, (), found.top_level
                    )
                )
        self._add_pass(found, state)
        self._writer.add_samples(found.index, rows)
        if self._on_pass is not None:
            self._on_pass(found, self._layers)

    def _add_pass(self, found: ProfilePass, state: PassState) -> None:
        start_us = self._start_us + found.start_us
        self._writer.add_pass(found.index, start_us, found.duration_us, state)

    def _drop_short_passes(self) -> None:
        """Mark the runs that failed on the way: they ran fewer nodes of the main graph."""
        # With several threads, the body of an If may run on another one than the If.
        if not self._measured or len(self._threads) > 1:
            return
        whole = max(found.top_level for found in self._measured)
        short = [found for found in self._measured if found.top_level < whole]
        for found in short:
            self._add_pass(found, "incomplete")
            self._measured.remove(found)
        if short:
            self._writer.note(
                f"passes that ran fewer kernels than the others are left out: {len(short)}",
                "warning",
            )

    def _top_level(self, found: ProfilePass) -> list[Kernel]:
        spans = [(event.thread, event.start_us, event.duration_us) for event in found.events]
        return [
            self._profile.kernels[event.kernel]
            for event, depth in zip(found.events, depths(spans), strict=True)
            if depth == 0
        ]

    def _layer(self, kernel: Kernel) -> Layer:
        nodes, confidence = (
            self._attribution.links(kernel) if self._attribution is not None else ((), "none")
        )
        details = {**kernel.details}
        node = None
        if self._attribution is not None:
            node = self._attribution.subject(kernel, nodes)
            if self._attribution.shared_by is not None:
                details[SHARED_BY] = self._attribution.shared_by
        details.update(kernel_work(kernel, node))
        roof = self._roofs.get(kernel.provider or "")
        if roof is not None:
            details.update(placed(details, kernel.input_types, roof))
        return Layer(
            name=kernel.name,
            type=kernel.op_type,
            provider=kernel.provider,
            precision=kernel.precision,
            input_dims=kernel.input_dims,
            output_dims=kernel.output_dims,
            input_types=kernel.input_types,
            output_types=kernel.output_types,
            nodes=nodes,
            confidence=confidence,
            details=details,
        )

    def _providers(self) -> dict[str, int]:
        counts = Counter(kernel.provider or "unknown" for kernel in self._profile.kernels)
        return dict(counts.most_common())
