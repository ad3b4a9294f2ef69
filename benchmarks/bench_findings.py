"""Edit a model of 10,000 nodes: from the last key to findings of the model as it is."""

from __future__ import annotations

import asyncio
import statistics
import sys
from pathlib import Path
from time import perf_counter

from benchmarks import harness, models
from tests.support.workspace import opened

MOST_MS = 500.0
"""From the last key of an edit to the findings after it."""

REST_S = 2.0
"""Between two edits: the graph of the one before is arranged, and types are inferred."""


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--nodes", type=int, default=10_000, help="nodes of the model")
    parser.add_argument("--edits", type=int, default=15, help="edits that are measured")
    options = parser.parse_args(argv)
    with harness.work_folder() as folder:
        path = folder / "many.onnx"
        models.write_many_nodes(path, nodes=options.nodes, weights=options.nodes // 3)
        times = asyncio.run(_edits(path, options.edits))
    table = harness.Table(f"{options.nodes:,} nodes, {len(times)} edits")
    rule = f"{MOST_MS:g} ms"
    table.add("findings after the last key, median", statistics.median(times))
    table.add("findings after the last key, slowest", max(times), bound=MOST_MS, rule=rule)
    return table.finish()


async def _edits(path: Path, count: int) -> list[float]:
    """Return the milliseconds from a key that deletes a node, or takes that back, to findings."""
    times = []
    async with opened(path) as session:
        checks, nodes = session.screen.checks, session.screen.document.main.nodes
        await session.until(lambda: checks.is_checked)
        name = nodes[len(nodes) // 2].name
        for number in range(count + 1):
            before, delete = len(nodes), not number % 2
            if delete:  # asks, since others use it: `d` deletes it all the same
                await session.go(name)
                await session.press("d")
            await asyncio.sleep(REST_S)
            began = perf_counter()
            session.app.simulate_key("d" if delete else "u")  # the pilot waits after a key
            while len(session.screen.document.main.nodes) == before or not checks.is_checked:
                await asyncio.sleep(0.001)
            if number:  # the first one fills caches
                times.append((perf_counter() - began) * 1000)
    return times


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
