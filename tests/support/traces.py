"""Events of Chrome traces for tests."""

from __future__ import annotations

from typing import Any


def x(name: Any, ts: Any, dur: Any, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 2, **more}
