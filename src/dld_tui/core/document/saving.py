"""Saving a document: streamed, atomic, and never half."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.document.serialise import skeleton_bytes
from dld_tui.core.errors import FileChangedError, SaveError, UsageError
from dld_tui.core.files.external import in_huggingface_cache
from dld_tui.core.files.model_set import plan_model
from dld_tui.core.types import CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


def save(
    document: Document,
    path: Path | None = None,
    *,
    overwrite: bool = True,
    force: bool = False,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> list[str]:
    """Write a document to a file and return remarks for the user, mostly none.

    Payloads are streamed from where they are; what does not fit in 2 GiB goes to external data, and
    external data comes along to another folder.

    Args:
        document: The document; afterwards it belongs to the file that was written.
        path: Where to; by default the file that it was opened from.
        overwrite: False refuses a file that exists, other than the document's own.
        force: Write even if another program has changed the document's own file.
        progress: Called with bytes done and bytes in all.
        cancelled: Asked now and then.

    Raises:
        UsageError: The document has no file and no path is given.
        FileChangedError: Another program has changed the file since it was read.
        SaveError: It could not be written; the old file is untouched.
        CancelledError: `cancelled` said so; the old file is untouched.
    """
    target = path or document.path
    if target is None:
        raise UsageError("a new model needs a path to be saved to")
    if in_huggingface_cache(target):
        # Its files are links to blobs that every model of the cache shares.
        raise SaveError(
            "the Hugging Face cache is not written to", where=str(target), hint="Save elsewhere"
        )
    own = document.path is not None and target.resolve() == document.path.resolve()
    if own and not force and document.changed_on_disk():
        raise FileChangedError(
            "another program has changed the file since it was opened",
            where=str(target),
            hint="Save under another name, or overwrite on purpose",
        )
    plan = plan_model(
        skeleton_bytes(document),
        document.blobs,
        target,
        external=document.external,
        spill=document.spill,
    )
    remarks = plan.write(
        overwrite=overwrite or own,
        like=None if force else document.source,
        progress=progress,
        cancelled=cancelled,
        sealed=document.about_to_save if own else None,
    )
    document.saved_as(target, plan.adopt(document.blobs, document.external))
    return remarks
