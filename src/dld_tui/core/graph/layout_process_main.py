"""What runs in the child process of :mod:`dld_tui.core.graph.layout_process`; imports little."""

from __future__ import annotations

import gc
import sys

from dld_tui.core.graph.columns import arranged_bytes, graph_of
from dld_tui.core.graph.folding import Overview


def main() -> None:
    """Arrange the graph on standard input, and write the answer to standard output."""
    gc.disable()  # many objects that all stay
    overview = Overview(graph_of(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(arranged_bytes(overview.arranged()))
    sys.stdout.buffer.flush()
