"""Where the panes of a workspace are: pure arithmetic on cells.

Wide: the panes side by side and the findings below them. Narrow: one main pane and one beside it in
rows, always in the same order from top to bottom, so that nothing jumps about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from dld_tui.core.types import JSON

WIDE = 100
"""Columns from which two panes are side by side: the layers or the graph, and the parameters."""
WIDEST = 140
"""Columns from which three are: layers, graph and parameters."""
EXPLORER, GRAPH, PARAMETERS, FINDINGS = "explorer", "graph", "parameters", "findings"
NUMBERS: Mapping[int, str] = {1: EXPLORER, 2: GRAPH, 3: PARAMETERS, 4: FINDINGS}
"""Pane by the key that goes to it."""
TITLES = {EXPLORER: "nodes", GRAPH: "graph", PARAMETERS: "params", FINDINGS: "findings"}
_BESIDE = {EXPLORER: PARAMETERS, GRAPH: PARAMETERS, PARAMETERS: EXPLORER, FINDINGS: EXPLORER}
"""Narrow: the pane that is seen with a main one."""
_LEAST_COLUMNS, _LEAST_ROWS = 24, 4
_ORDER = (EXPLORER, GRAPH, PARAMETERS)
"""The panes that are side by side, as they are at first; the findings stay at the bottom."""
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
    """What the user chose: the main pane, the maximised one, order, sizes, what is hidden."""

    main: str = EXPLORER
    left: str = EXPLORER
    """The one of layers and graph that is seen where there is no room for both."""
    maximised: str | None = None
    is_first: bool = False
    """Whether no pane was chosen yet: the graph is in front, with the layers at its side."""
    shares: dict[str, float] = field(default_factory=lambda: dict(DEFAULT_SHARES))
    order: list[str] = field(default_factory=lambda: list(_ORDER))
    """The panes that are side by side, from the left; stacked ones from the top."""
    hidden: set[str] = field(default_factory=set)

    @property
    def front(self) -> str:
        """The main pane."""
        return GRAPH if self.is_first else self.main

    def to_json(self) -> dict[str, JSON]:
        """Return what is remembered."""
        return {
            "shares": dict(self.shares),
            "order": [*self.order],
            "hidden": [*sorted(self.hidden)],
        }

    def load(self, data: Mapping[str, JSON]) -> None:
        """Take over what was remembered; what makes no sense is left out."""
        shares = data.get("shares")
        for name, value in shares.items() if isinstance(shares, dict) else ():
            if name in self.shares and isinstance(value, float) and 0 < value < 1:
                self.shares[name] = value
        order = data.get("order")
        if isinstance(order, list) and sorted(map(str, order)) == sorted(_ORDER):
            self.order = [str(name) for name in order]
        hidden = data.get("hidden")
        if isinstance(hidden, list):
            self.hidden = set()
            for pane in hidden:
                self.hide(str(pane))

    def reset(self) -> None:
        """Show all panes in their first order and sizes."""
        self.shares = dict(DEFAULT_SHARES)
        self.order, self.hidden = list(_ORDER), set()
        self.maximised = None

    def hide(self, pane: str) -> bool:
        """Hide a pane; False when it is the last one besides the findings."""
        if pane not in TITLES or {*_ORDER} <= {*self.hidden, pane}:
            return False
        self.hidden.add(pane)
        if self.maximised == pane:
            self.maximised = None
        return True

    def move(self, pane: str, step: int, shown: Collection[str]) -> bool:
        """Let a pane change places with the shown one before (-1) or after (1) it.

        Returns:
            False when there is none, as for the findings.
        """
        seen = [name for name in self.order if name in shown]
        at = seen.index(pane) + step if pane in seen else -1
        if not 0 <= at < len(seen):
            return False
        first, second = self.order.index(pane), self.order.index(seen[at])
        self.order[first], self.order[second] = self.order[second], self.order[first]
        return True


@dataclass(frozen=True)
class Arrangement:
    """The cells of each pane that is seen: columns in a wide screen, rows in a narrow one."""

    wide: bool
    columns: Mapping[str, int]
    """Wide: columns of the panes that are side by side, from the left."""
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
    panes = {pane for pane in panes if pane not in layout.hidden}
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
    shown = [pane for pane in layout.order if pane in panes]
    if width < WIDEST and len(shown) == len(_ORDER):
        left = layout.left if layout.left in shown else EXPLORER
        pair = (EXPLORER, GRAPH) if layout.is_first else (left, PARAMETERS)
        shown = [pane for pane in shown if pane in pair]
    if len(shown) < 2:
        return dict.fromkeys(shown, width)
    sizes = {}
    free = width - _LEAST_COLUMNS * len(shown)
    for pane in (EXPLORER, PARAMETERS) if _graph_gives_way(shown, width) else (_owner(shown),):
        if pane in shown:
            least = min(_LEAST_COLUMNS, width // 2)
            wanted = round(width * layout.shares[_share(pane, shown, width)])
            sizes[pane] = max(least, min(wanted, least + max(free, 0)))
            free -= sizes[pane] - least
    rest = width - sum(sizes.values())
    return {pane: sizes.get(pane, rest) for pane in shown}


def _graph_gives_way(shown: Collection[str], width: int) -> bool:
    """Whether the graph has what the other panes leave."""
    return width >= WIDEST and GRAPH in shown


def _owner(shown: Collection[str]) -> str:
    """Return which of two panes has a size of its own; the other one has what is left."""
    return GRAPH if GRAPH in shown else EXPLORER


def _share(pane: str, shown: Collection[str], width: int) -> str:
    """Return the name of a pane's share of the width."""
    three = _graph_gives_way(shown, width)
    return f"{pane} columns of three" if three else "explorer columns"


def border_at(columns: Mapping[str, int], width: int, x: int) -> str:
    """Return the pane whose size changes when the border at a column is dragged; or nothing.

    It is the one at the border's other side than the graph, as the graph gives way.
    """
    shown, edge = list(columns), 0
    for at, (left, right) in enumerate(pairwise(shown)):
        edge += columns[left]
        if x in (edge - 1, edge):
            if not _graph_gives_way(shown, width):
                return _owner(shown)
            return right if shown.index(GRAPH) <= at else left
    return ""


def drag(layout: Layout, columns: Mapping[str, int], width: int, pane: str, x: int) -> None:
    """Move the border of a pane, as :func:`border_at` returned it, to a column."""
    shown = list(columns)
    at = shown.index(pane)
    start = sum(columns[name] for name in shown[:at])
    from_right = at == len(shown) - 1 or (GRAPH in shown[:at] and pane != GRAPH)
    cells = start + columns[pane] - x if from_right else x - start
    layout.shares[_share(pane, shown, width)] = min(0.9, max(0.1, cells / width))


def _stacked(layout: Layout, height: int, panes: Collection[str]) -> Arrangement:
    shown = [pane for pane in (*layout.order, FINDINGS) if pane in panes]
    if len(shown) < 2:
        return Arrangement(False, {}, dict.fromkeys(shown, height))
    main = next(pane for pane in (layout.front, EXPLORER, *shown) if pane in shown)
    others = [pane for pane in (_BESIDE[main], PARAMETERS, *shown) if pane in shown]
    beside = next(pane for pane in others if pane != main)
    size = _part(height, layout.shares["main rows"], _LEAST_ROWS)
    return Arrangement(False, {}, {main: size, beside: height - size})


def _part(total: int, share: float, least: int) -> int:
    """Return a share in whole cells that leaves both parts their least."""
    least = min(least, total // 2)
    return max(least, min(round(total * share), total - least))


def grow(
    layout: Layout,
    pane: str,
    cells: int,
    width: int,
    height: int,
    panes: Collection[str] = tuple(TITLES),
) -> None:
    """Make a pane larger by some cells, or smaller when negative, as far as there is room."""
    if width >= WIDE and pane != FINDINGS:
        _grow_column(layout, pane, cells, width, {*panes} - layout.hidden)
        return
    if width >= WIDE:
        name, sign = "findings rows", 1
    else:
        name = "main rows"
        sign = 1 if pane == layout.front else -1
    present = _part(height, layout.shares[name], _LEAST_ROWS)
    wanted = max(_LEAST_ROWS, min(present + sign * cells, height - _LEAST_ROWS))
    layout.shares[name] = wanted / height if height else DEFAULT_SHARES[name]


def _grow_column(layout: Layout, pane: str, cells: int, width: int, panes: Collection[str]) -> None:
    """Make one of the panes side by side larger, at the cost of the one that gives way."""
    columns = _columns(layout, width, panes)
    if pane not in columns or len(columns) < 2:
        return
    owner = pane
    if _graph_gives_way(columns, width):
        if pane == GRAPH:
            owner = EXPLORER if EXPLORER in columns else PARAMETERS
        others = sum(columns.values()) - columns[GRAPH] - columns[owner]
    else:
        owner, others = _owner(columns), 0
    change = cells if pane == owner else -cells
    wanted = max(_LEAST_COLUMNS, min(columns[owner] + change, width - others - _LEAST_COLUMNS))
    layout.shares[_share(owner, columns, width)] = wanted / width
