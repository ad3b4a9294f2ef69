"""List the TensorRT libraries, their features, and why one cannot be used.

Each is loaded in a separate process, so that a crash or hang of one does not hide the others.

Result: ``{"libraries": [FACTS, …]}``, in the order of preference; FACTS as
:class:`dld_tui.core.tensorrt.capabilities.LibraryCapabilities` writes them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event, Finished, Progress, events_of
from dld_tui.core.params import param
from dld_tui.core.tensorrt.capabilities import MODULES, TITLES, LibraryCapabilities


@dataclass(frozen=True)
class Request:
    """Folders to search, besides the installed libraries."""

    paths: tuple[str, ...] = param(
        (), label="Folders", help="Folders with a TensorRT library.", kind="folder"
    )


@dataclass(frozen=True)
class Result:
    """The libraries, usable or not."""

    libraries: list[LibraryCapabilities]


def run(request: Request) -> Iterator[Event]:
    """Look at all of them."""
    choices = [*MODULES, *request.paths]
    libraries = []
    for at, choice in enumerate(choices):
        progress = Progress(at, len(choices), "libraries", TITLES.get(choice, choice))
        yield progress
        libraries.append((yield from _facts(choice, progress)))
    yield Finished(Result(libraries))


def _facts(choice: str, progress: Progress) -> Generator[Event, None, LibraryCapabilities]:
    """Ask a library; the same progress is repeated wherever the worker may stop."""
    from dld_tui.backends.tensorrt.library import probe_in_process

    return (yield from events_of(probe_in_process(choice), lambda _: progress))
