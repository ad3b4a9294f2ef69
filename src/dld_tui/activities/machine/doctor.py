"""Say what works where this worker runs: Python, backends, GPUs, folders."""

from __future__ import annotations

from collections.abc import Iterator

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.backends.machine import probe
from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.machine.health import Check, folder_checks, python_checks
from dld_tui.core.params import FIRST_PAGE, like


@dataclass(frozen=True)
class Request:
    """What else to look at."""

    ep_library: tuple[str, ...] = like(
        Profile,
        "ep_library",
        help=(
            "Library with plugin execution providers, to list its devices. Loading it runs its "
            "code."
        ),
        page=FIRST_PAGE,
    )


@dataclass(frozen=True)
class Result:
    """The results of the checks."""

    checks: list[Check]


def run(request: Request) -> Iterator[Event]:
    """Run all checks."""
    checks = [*python_checks(), *folder_checks()]
    steps = probe.steps()
    for index, (title, look) in enumerate(steps):
        yield Progress(index, len(steps), "checks", stage=title)
        checks += look()
    if request.ep_library:
        from dld_tui.backends.onnxruntime.runtime import library_checks

        checks += library_checks(request.ep_library)
    yield Finished(Result(checks))
