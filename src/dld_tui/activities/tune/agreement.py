"""Whether a candidate computes what the original model does, or as well on labelled samples."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from dld_tui.activities.tune.found import Found, failed
from dld_tui.activities.tune.original import OriginalModel
from dld_tui.core.compare.gate import Outcome
from dld_tui.core.conversion.accuracy_criteria import SAME, AccuracyCriteria
from dld_tui.core.events import Progress, events_of, result_of
from dld_tui.core.text import visible
from dld_tui.core.tune.changes import DEFAULT_LIMIT, Setup
from dld_tui.core.tune.result import Closeness, Exclusion

if TYPE_CHECKING:
    from dld_tui.backends.onnxruntime.contest import Contestant
    from dld_tui.core.accuracy.metrics import Array, Metric
    from dld_tui.core.accuracy.tensor_errors import Tolerances


class Agreement:
    """Judges the outputs of candidates, or what a metric makes of them on a dataset.

    With a dataset, a candidate counts if its loss is certainly within what is allowed; its outputs
    have to be within a tolerance only where one was given, too.

    Args:
        subject: The original model.
        found: Gets how near candidates are.
    """

    def __init__(self, subject: OriginalModel, found: Found) -> None:
        from dld_tui.core.accuracy.tensor_errors import parse_tolerances

        self.subject, self.found = subject, found
        tolerance = subject.request.tolerance
        self._strict = parse_tolerances(tolerance) if tolerance else None
        self._metric: Metric | None = None
        self._rows: Array | None = None
        """Of the original model, with a dataset."""

    @property
    def is_by_metric(self) -> bool:
        """Whether a metric decides."""
        return self.subject.request.dataset is not None

    @property
    def limit_text(self) -> str:
        """What a candidate has to keep to."""
        asked = self.subject.request
        parts = [" ".join(asked.tolerance)] if asked.tolerance else []
        if asked.dataset is not None and asked.most_loss is not None:
            name = visible(asked.dataset.name)
            parts.append(f"{asked.metric} on {name} at most {asked.most_loss:g} worse")
        return ", ".join(parts) or f"{DEFAULT_LIMIT} (default)"

    def prepare(self) -> Generator[Progress, None, None]:
        """Judge the original model, where a metric decides.

        Raises:
            UsageError: There is no such metric.
            InputError: The dataset cannot be read, or does not fit the model.
        """
        from dld_tui.core.accuracy.metrics import find_metric

        if not self.is_by_metric:
            return
        self._metric = find_metric(self.subject.request.metric)

        def progress(batches: tuple[int, int]) -> Progress:
            return Progress(*batches, "batches", "Judging the original model")

        self._rows = yield from events_of(self._rows_of(self.subject.base), progress)

    def compared(self, setup: Setup, contestant: Contestant) -> dict[str, Exclusion]:
        """Return why a candidate does not count, by its key; empty where it does."""
        if not setup.changes:
            return {}
        problem, closeness = "", Closeness()
        if self._strict is not None or not self.is_by_metric:
            problem, closeness = self._by_outputs(setup, contestant, setup.criteria, self._strict)
        if self.is_by_metric and not problem:
            # What differs by rounding alone, such as threads, has nothing to lose: few samples
            # would leave it undecided.
            differs, closeness = self._by_outputs(setup, contestant, SAME)
            if differs:
                problem, closeness = self.by_metric(setup)
        self.found.near[setup.key] = closeness
        return {setup.key: failed(problem)} if problem else {}

    def by_metric(self, setup: Setup) -> tuple[str, Closeness]:
        """Return why a set-up loses too much, empty where it does not, and what it loses."""
        from dld_tui.core.accuracy.metrics import Judged, dataset_scores
        from dld_tui.core.accuracy.scores import loss_text

        asked = self.subject.request
        assert self._metric is not None
        assert self._rows is not None
        assert asked.dataset is not None
        rows = result_of(self._rows_of(setup))
        judged = [
            Judged(str(self.subject.base.model), "", self._rows), Judged(str(setup.model), "", rows)
        ]  # fmt: skip
        scores = dataset_scores(self._metric, asked.dataset, judged, asked.most_loss)
        text = loss_text(scores)
        if scores.outcome is Outcome.PASS:
            return "", Closeness(text)
        more = "; more samples would tell" if scores.outcome is Outcome.UNDECIDED else ""
        return f"{scores.outcome}: {text}{more}", Closeness(text)

    def _rows_of(self, setup: Setup) -> Generator[tuple[int, int], None, Array]:
        from dld_tui.backends.accuracy.scoring import model_rows

        asked = self.subject.request
        assert self._metric is not None
        assert asked.dataset is not None
        # A CUDA graph needs outputs that are bound; its kernels are the same.
        settings = self.subject.settings(setup).without_graph()
        return model_rows(setup.model, settings, asked.dataset, asked.labels, self._metric)

    def _by_outputs(
        self,
        setup: Setup,
        contestant: Contestant,
        criteria: AccuracyCriteria,
        strict: Tolerances | None = None,
    ) -> tuple[str, Closeness]:
        """Return why outputs are not near enough, empty where they are, and how near they are.

        Args:
            setup: The candidate.
            contestant: Its session.
            criteria: What is near enough.
            strict: Is used in their place, where it is given.
        """
        from dld_tui.backends.onnxruntime.contest import accuracy, first_item
        from dld_tui.core.accuracy.tensor_errors import Tolerances

        if not self.subject.reference:
            return "an output has a type that cannot be compared", Closeness()
        outputs = contestant.outputs()
        if setup.batch > 1:
            pairs = zip(outputs, self.subject.reference, strict=True)
            outputs = [first_item(mine, single) for mine, single in pairs]
        tolerances = strict or Tolerances(criteria.tolerance)
        return accuracy(
            self.subject.reference, outputs, tolerances, criteria if strict is None else None
        )
