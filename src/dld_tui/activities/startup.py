"""How long a session takes to start, by stage, and where ONNX Runtime puts each node."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.model.inputs.settings import InputSettings
from dld_tui.core.params import FIRST_PAGE, like, param
from dld_tui.core.report.startup import SessionStartup, Stage

Result = SessionStartup
_LATER = 5


@dataclass(frozen=True)
class Request:
    """Which model, on which provider."""

    model: Path = param(
        label="Model", help="The ONNX model.", kind="file", positional=True, metavar="MODEL"
    )
    provider: str = like(
        Profile,
        "provider",
        help=(
            "Execution provider, such as CPU or CUDA; several in order of preference, separated "
            "by commas."
        ),
    )
    repeats: int = param(
        3,
        label="Repeats",
        help="Number of sessions of each kind.",
        minimum=1,
        maximum=1000,
        spellings=("--repeats",),
        metavar="N",
    )
    device_id: int = like(Profile, "device_id", page=FIRST_PAGE)
    shape: tuple[str, ...] = like(InputSettings, "shape")
    inputs: Path | None = like(InputSettings, "inputs")
    seed: int = like(InputSettings, "seed")


def run(request: Request) -> Iterator[Event]:
    """Make sessions.

    Raises:
        InputError: The model or an input cannot be read.
        UnavailableError: ONNX Runtime or the provider is missing.
        ActivityError: The model cannot be run.
    """
    from dld_tui.activities.profile.onnxruntime import Request as Profile
    from dld_tui.backends.onnxruntime.limits import limit_trials, naming
    from dld_tui.backends.onnxruntime.runtime import version
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.backends.onnxruntime.startup import node_placements, stages
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.inputs.feeds import input_feeds
    from dld_tui.core.model.inputs.guess import specs_for

    asked = Profile(
        model=request.model, provider=request.provider, device_id=request.device_id
    ).session_settings()
    settings = replace(asked, quiet=True)
    stage_times: list[Stage] = []
    whole = 0.0
    first: list[float] = []
    later: list[float] = []
    with contextlib.closing(open_document(request.model)) as document:
        if settings.providers == ("CPU",):
            limit_trials(document, shapes=request.shape)
        with naming(document):
            yield Progress(0, None, stage="Finding the provider of each node")
            nodes = node_placements(request.model, settings)
            session = Session(request.model, settings)
            feeds = input_feeds(
                specs_for(session.inputs, document), request.inputs, request.shape, [request.seed],
                document, lambda values: session.try_once(session.feed(dict(values))),
            )  # fmt: skip
            for done, of, steps, session_ms in stages(request.model, settings, request.repeats):
                yield Progress(done, of, "sessions", "Making sessions")
                stage_times, whole = steps, session_ms
            for repeat in range(request.repeats):
                yield Progress(repeat, request.repeats, "sessions", "First passes")
                session = Session(request.model, settings)
                feed = session.feed(feeds.sets[0])
                for number in range(1 + _LATER):
                    begin = time.perf_counter()
                    session.try_once(feed)
                    (later if number else first).append(1000 * (time.perf_counter() - begin))
    yield Finished(
        SessionStartup(
            str(request.model),
            f"ONNX Runtime {version()}",
            tuple(stage_times),
            whole,
            statistics.median(first),
            statistics.median(later),
            request.repeats,
            tuple(nodes),
        )
    )
