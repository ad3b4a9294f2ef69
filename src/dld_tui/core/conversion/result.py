"""What a conversion leaves: a file that is written in one step, and a report as JSON data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dld_tui.core.conversion.summary import figures
from dld_tui.core.document.document import Document
from dld_tui.core.document.serialise import skeleton_bytes
from dld_tui.core.errors import SaveError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.files.model_set import plan_model
from dld_tui.core.files.replaced_data import is_data_file, named_data_files, remove_unused
from dld_tui.core.text import visible
from dld_tui.core.types import JSON


def written(
    before: Document,
    after: Document,
    output: Path,
    *,
    notes: Sequence[str] = (),
    more: Mapping[str, JSON] | None = None,
) -> Iterator[Event]:
    """Write a converted model and yield the events that end the job.

    Result: ``{"path", "before": {...}, "after": {...}, "notes": [...], "remarks": [...]}`` and
    `more`; see :func:`.figures`. Notes say what could not be done, remarks what was noteworthy when
    the file was written.

    Args:
        before: The model as it was; it may be what is at `output` now.
        after: The model to write.
        output: The file to write.
        notes: See above.
        more: Further figures.

    Raises:
        SaveError: It cannot be written; what was there is untouched.
    """
    if before.path is not None and is_data_file(output, before.path):
        raise SaveError(
            f"it holds weights of {visible(before.path.name)}", where=str(output),
            hint="Give another path",
        )  # fmt: skip
    yield Progress(0, None, stage="Writing the result")
    told = figures(before), figures(after)
    plan = plan_model(
        skeleton_bytes(after), after.blobs, output, external=after.external, spill=after.spill
    )
    former = named_data_files(output) if output.exists() else []
    remarks: list[JSON] = [*plan.write()]
    remarks += (f"{path.name} is removed: only the former model used it"
                for path in remove_unused(former, output))  # fmt: skip
    yield Finished(
        {
            "path": str(output),
            "before": told[0],
            "after": told[1],
            "notes": [*notes],
            "remarks": remarks,
            **dict(more or {}),
        }
    )
