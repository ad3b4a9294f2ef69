"""Fixtures of pytest: is a new model slower, and does it compute the same results?

::

    def test_release(assert_not_slower, assert_same_results):
        assert_same_results("release.onnx", "candidate.onnx", atol=1e-3)
        assert_not_slower("release.onnx", "candidate.onnx", tolerance_percent=1)

The package registers them; nothing is imported before a test uses one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def assert_not_slower() -> Callable[..., Any]:
    """Return a function that takes what :func:`dld_tui.api.gate` takes and gives its result.

    It fails the test if the new version is slower than it may be, or the gate is undecided.
    """

    def check(*versions: Any, **settings: Any) -> Any:
        from dld_tui.api import gate

        __tracebackhide__ = True
        result = gate(*versions, **settings)
        if result.is_regression or result.is_undecided:
            from dld_tui.core.compare.gate import listed_nodes, more_nodes
            from dld_tui.core.text import visible

            nodes = [f"  {visible(row.key)}: {row.text}" for row in listed_nodes(result)]
            more = [f"  {text}" for text in [more_nodes(result)] if text]
            pytest.fail("\n".join([result.line, *nodes, *more]))
        return result

    return check


@pytest.fixture
def assert_same_results() -> Callable[..., Any]:
    """Return a function that takes what :func:`dld_tui.api.same_results` takes.

    It fails the test when an output is not within its tolerance, and gives the report else.
    """

    def check(*versions: Any, **settings: Any) -> Any:
        from dld_tui.api import same_results

        __tracebackhide__ = True
        report = same_results(*versions, **settings)
        if not report.is_good:
            from dld_tui.core.text import visible

            wrong = [row for row in report.found.outputs if row.problem]
            lines = [f"  {visible(row.name)}: {visible(row.problem)}" for row in wrong]
            pytest.fail("\n".join(["results differ", *lines]))
        return report

    return check
