"""Builds with the fake of TensorRT, as the activities do them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from dld_tui.backends.tensorrt.builder import BuiltEngine, build
from dld_tui.backends.tensorrt.library import using
from dld_tui.core.events import Event
from dld_tui.core.model.document import Document
from dld_tui.core.tensorrt.profiles import profiles_for
from dld_tui.core.tensorrt.settings import BuildSettings


def fake_build(
    trt: Any, model: Path, events: list[Event] | None = None, **settings: Any
) -> tuple[BuiltEngine, Any, Any]:
    """Build; return what was built and the network and configuration that the fake got."""
    wanted = BuildSettings(model, **settings)
    taken = [] if events is None else events
    engine = model.with_suffix(".engine")
    with using(trt) as library, contextlib.closing(Document.open(model)) as document:
        profiles = profiles_for(document, wanted).ranges
        steps = build(library, document, wanted, profiles, engine, engine.with_suffix(".log"))
        while True:
            try:
                taken.append(next(steps))
            except StopIteration as stop:
                network, config = trt.fake.builds[-1]
                return stop.value, network, config
