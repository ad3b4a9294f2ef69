"""Types and shapes from a child process: what a workspace shows beside what the file declares."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any, cast

from dld_tui.core.document.values import ValueType
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.targets import registry

_LOOK_S = 0.2


def infer_types(path: Path, cancelled: CancelCheck) -> dict[tuple[str, ...], dict[str, ValueType]]:
    """Return the inferred types of a model's values, by scope path and name.

    Blocks until the child process has ended: call it on a thread.

    Raises:
        ActivityError: Inference refuses the model.
        CancelledError: `cancelled` said so.
    """
    with registry.get().start("infer_shapes", {"model": str(path)}) as job:
        ended = False

        def watch() -> None:
            while not ended:
                if cancelled():
                    job.cancel()
                    return
                sleep(_LOOK_S)

        Thread(target=watch, daemon=True, name="watch shapes").start()
        try:
            return _types_of(job.result())
        finally:
            ended = True


def _types_of(result: Mapping[str, JSON]) -> dict[tuple[str, ...], dict[str, ValueType]]:
    scopes = cast("dict[str, dict[str, Any]]", result.get("scopes", {}))
    return {
        tuple(json.loads(path)): {name: _value_type(data) for name, data in types.items()}
        for path, types in scopes.items()
    }


def _value_type(data: list[Any]) -> ValueType:
    dtype, dims, *container = data
    return ValueType(dtype, None if dims is None else tuple(dims), *container)
