"""Where the panes of a workspace are: pure arithmetic on cells.

Wide: the panes side by side and the findings below them. Narrow: one main pane and one beside it in
rows, always in the same order from top to bottom, so that nothing jumps about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from dld_tui.core.types import JSON

WIDE = 100
"""Columns from which two panes are side by side: the layers or the graph, and the parameters."""
WIDEST = 140
"""Columns from which three are: layers, graph and parameters."""
EXPLORER, GRAPH, PARAMETERS, FINDINGS = "explorer", "graph", "parameters", "findings"
NUMBERS: Mapping[int, str] = {1: EXPLORER, 2: GRAPH, 3: PARAMETERS, 4: FINDINGS}
"""Pane by the key that goes to it."""
TITLES = {EXPLORER: "layers", GRAPH: "graph", PARAMETERS: "params", FINDINGS: "found"}
_BESIDE = {EXPLORER: PARAMETERS, GRAPH: PARAMETERS, PARAMETERS: EXPLORER, FINDINGS: EXPLORER}
"""Narrow: the pane that is seen with a main one."""
_LEAST_COLUMNS, _LEAST_ROWS = 24, 4
DEFAULT_SHARES: Mapping[str, float] = {
    "explorer columns": 0.52,
    "explorer columns of three": 0.28,
    "parameters columns of three": 0.27,
    "findings rows": 0.22,
    "main rows": 0.6,
}
"""Parts of the width or height, by what they are parts of."""


@dataclass
class Layout:
    """What the user chose: the main pane, the maximised one, the sizes."""

    main: str = EXPLORER
    left: str = EXPLORER
    """The one of layers and graph that is seen where there is no room for both."""
    maximised: str | None = None
    shares: dict[str, float] = field(default_factory=lambda: dict(DEFAULT_SHARES))

    def to_json(self) -> dict[str, JSON]:
        """Return what is remembered."""
        return {"shares": dict(self.shares)}

    def load(self, data: Mapping[str, JSON]) -> None:
        """Take over what was remembered; what makes no sense is left out."""
        shares = data.get("shares")
        for name, value in shares.items() if isinstance(shares, dict) else ():
            if name in DEFAULT_SHARES and isinstance(value, float) and 0 < value < 1:
                self.shares[name] = value

    def reset(self) -> None:
        """Go back to the first sizes."""
        self.shares = dict(DEFAULT_SHARES)
        self.maximised = None


@dataclass(frozen=True)
class Arrangement:
    """The cells of each pane that is seen: columns in a wide screen, rows in a narrow one."""

    wide: bool
    columns: Mapping[str, int]
    """Wide: columns of the panes that are side by side."""
    rows: Mapping[str, int]
    """Narrow: rows of the panes. Wide: the rows of the findings."""

    @property
    def shown(self) -> Collection[str]:
        """The panes that are seen."""
        return {*self.columns, *self.rows}


def arrange(
    layout: Layout, width: int, height: int, panes: Collection[str], findings: int = 0
) -> Arrangement:
    """Return the sizes of the panes.

    Args:
        layout: What the user chose.
        width: Columns of the area.
        height: Rows of the area.
        panes: The panes that have something to show.
        findings: Rows that the findings need, their border included; they take no more.
    """
    wide = width >= WIDE
    pane = layout.maximised
    if pane is not None and pane in panes:
        return Arrangement(wide, {pane: width} if wide else {}, {pane: height})
    if wide:
        return _side_by_side(layout, width, height, panes, findings)
    return _stacked(layout, height, panes)


def _side_by_side(
    layout: Layout, width: int, height: int, panes: Collection[str], findings: int
) -> Arrangement:
    columns = _columns(layout, width, panes)
    rows = {}
    if FINDINGS in panes:
        most = _part(height, layout.shares["findings rows"], _LEAST_ROWS)
        rows[FINDINGS] = min(most, findings or most)
    return Arrangement(True, columns, rows)


def _columns(layout: Layout, width: int, panes: Collection[str]) -> dict[str, int]:
    if width >= WIDEST and GRAPH in panes:
        explorer, parameters = _outer(layout, width)
        graph = width - explorer - parameters
        return {EXPLORER: explorer, GRAPH: graph, PARAMETERS: parameters}
    left = _part(width, layout.shares["explorer columns"], _LEAST_COLUMNS)
    shown = layout.left if layout.left in panes else EXPLORER
    return {shown: left, PARAMETERS: width - left}


def _outer(layout: Layout, width: int) -> tuple[int, int]:
    """Return the columns of the explorer and the parameters; the graph has what is left."""
    least = _LEAST_COLUMNS
    explorer = round(width * layout.shares["explorer columns of three"])
    explorer = max(least, min(explorer, width - 2 * least))
    parameters = round(width * layout.shares["parameters columns of three"])
    return explorer, max(least, min(parameters, width - explorer - least))


def _stacked(layout: Layout, height: int, panes: Collection[str]) -> Arrangement:
    main = layout.main if layout.main in panes else EXPLORER
    beside = _BESIDE[main]
    size = _part(height, layout.shares["main rows"], _LEAST_ROWS)
    return Arrangement(False, {}, {main: size, beside: height - size})


def _part(total: int, share: float, least: int) -> int:
    """Return a share in whole cells that leaves both parts their least."""
    least = min(least, total // 2)
    return max(least, min(round(total * share), total - least))


def grow(layout: Layout, pane: str, cells: int, width: int, height: int) -> None:
    """Make a pane larger by some cells, or smaller when negative, as far as there is room."""
    if width >= WIDEST and pane != FINDINGS:
        _grow_outer(layout, pane, cells, width)
        return
    if width >= WIDE:
        name, total = ("findings rows", height) if pane == FINDINGS else ("explorer columns", width)
        sign = -1 if pane == PARAMETERS else 1
    else:
        name, total = "main rows", height
        sign = 1 if pane == layout.main else -1
    least = _LEAST_ROWS if name.endswith("rows") else _LEAST_COLUMNS
    present = _part(total, layout.shares[name], least)
    wanted = max(least, min(present + sign * cells, total - least))
    layout.shares[name] = wanted / total if total else DEFAULT_SHARES[name]


def _grow_outer(layout: Layout, pane: str, cells: int, width: int) -> None:
    """Make one of three panes larger; the graph gives way, or grows at the explorer's cost."""
    least = _LEAST_COLUMNS
    explorer, parameters = _outer(layout, width)
    if pane == PARAMETERS:
        wanted = max(least, min(parameters + cells, width - explorer - least))
        layout.shares["parameters columns of three"] = wanted / width
    else:
        change = -cells if pane == GRAPH else cells
        wanted = max(least, min(explorer + change, width - parameters - least))
        layout.shares["explorer columns of three"] = wanted / width
