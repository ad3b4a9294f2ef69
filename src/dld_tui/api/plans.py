"""An engine plan as an object for notebooks.

::

    import pandas
    from dld_tui.api import Plan

    plan = Plan("resnet.onnx.engine.graph.json")
    layers = pandas.DataFrame(plan.layers)
    layers.groupby("precision")["time_ms"].sum()
    plan.summary["total_ms"], plan.findings[0]["hazard"]
    pandas.DataFrame(plan.table("convolutions"))

Everything is plain data: dicts, lists, text, numbers, and None where the files do not say. Times
are in milliseconds, sizes in bytes; texts are foreign, as they stand in the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from dld_tui.core.tables.table import json_of
from dld_tui.core.tensorrt.plan.export import finding_json, plan_json, summary_json, timing_json
from dld_tui.core.tensorrt.plan.lint import findings as lint
from dld_tui.core.tensorrt.plan.mapping import LayerNodes, map_plan
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.summary import GROUPINGS, matching
from dld_tui.core.tensorrt.plan.tables import VIEWS, group_table, make_table

Record: TypeAlias = "dict[str, Any]"


class Plan:
    """An engine of TensorRT by the files that describe it.

    Attributes:
        path: The file that was opened.
        title: The engine's name.
        notes: What could not be read or joined, one sentence each.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        profile: str | Path | None = None,
        timing: str | Path | None = None,
        metadata: Sequence[str | Path] = (),
        model: str | Path | None = None,
        beside: bool = True,
        profile_index: int | None = None,
    ) -> None:
        """Open an engine plan.

        Args:
            path: Layer information, a ``.tea`` archive, a log of trtexec, or another file of a set.
            profile: Layer times (``trtexec --exportProfile``).
            timing: Inference times (``trtexec --exportTimes``).
            metadata: Metadata files of TREx.
            model: The ONNX model, for matching the layers with its nodes.
            beside: Use the other files of the set beside `path` as well.
            profile_index: The optimization profile; by default that of the times, else the first.

        Raises:
            dld_tui.core.errors.InputError: A file cannot be read, or is of another kind.
        """
        self._plan = open_plan(
            path,
            profile=Path(profile) if profile is not None else None,
            timing=Path(timing) if timing is not None else None,
            metadata=[Path(file) for file in metadata],
            beside=beside,
            profile_index=profile_index,
        )
        self._model = Path(model) if model is not None else None
        self.path = self._plan.path
        self.title = self._plan.title
        self.notes: tuple[str, ...] = self._plan.notes

    def __repr__(self) -> str:
        return f"Plan({self.path!r}): {len(self._plan.layers)} layers"

    def __len__(self) -> int:
        return len(self._plan.layers)

    @cached_property
    def layers(self) -> list[Record]:
        """A record a layer, constants and NoOps folded: the fields of ``dld plan --json``, flat.

        ``nodes``, ``inputs``, ``outputs`` and ``constants`` are lists; all other values are plain.
        """
        rows: Any = plan_json(self._plan, (), self._mapping)["layers"]
        return list(rows)

    @cached_property
    def summary(self) -> Record:
        """The figures of the whole engine: layers, total time, weights, activations, spread."""
        return dict(summary_json(self._plan))

    @cached_property
    def timing(self) -> Record | None:
        """Statistics of whole inferences, by ``latency compute h2d d2h enqueue``; None without."""
        figures = timing_json(self._plan.timing)
        return dict(figures) if isinstance(figures, dict) else None

    @cached_property
    def inferences(self) -> dict[str, list[float]]:
        """One value an inference, by the same names; empty when only a summary is known."""
        timing = self._plan.timing
        return {} if timing is None else {name: list(v) for name, v in timing.series.items()}

    @cached_property
    def findings(self) -> list[Record]:
        """What probably costs time, the worst first: rule, level, hazard, mitigation, layer …."""
        findings: Any = [finding_json(finding) for finding in lint(self._plan, self._mapping)]
        return list(findings)

    @cached_property
    def bindings(self) -> list[Record]:
        """Inputs and outputs of the engine."""
        return self.table("bindings")

    def table(self, view: str, filter: str = "") -> list[Record]:
        """Return the rows of a view or grouping of ``dld plan`` as records.

        Args:
            view: One of :data:`VIEWS` (``layers``, ``convolutions``, ``memory`` …) or of
                :data:`GROUPINGS` (``type``, ``precision``, ``tactic`` …).
            filter: Only layers that pass this, as in ``dld plan --filter``.

        Raises:
            ValueError: The view is unknown.
            dld_tui.core.errors.UsageError: There is a filter, and the view is not of layers.
        """
        if view in VIEWS:
            return json_of(make_table(self._plan, view, filter, self._mapping))
        if view in GROUPINGS:
            return json_of(group_table(self._plan, view, filter, self._mapping))
        raise ValueError(f"no view {view!r}: there are {', '.join((*VIEWS, *GROUPINGS))}")

    def select(self, filter: str) -> list[Record]:
        """Return the records of the layers that pass a filter, such as ``origin:qdq ms>0.1``."""
        chosen = {layer.index for layer in matching(self._plan, filter, self._mapping)}
        return [record for record in self.layers if record["index"] in chosen]

    @cached_property
    def _mapping(self) -> dict[int, LayerNodes]:
        if self._model is None:
            return map_plan(self._plan)
        from dld_tui.core.llm.folder import open_document

        document = open_document(self._model)
        try:
            return map_plan(self._plan, document)
        finally:
            document.close()
