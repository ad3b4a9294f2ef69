"""Where the panes of a workspace are: pure arithmetic on cells.

Wide: the panes side by side and the findings below them. Narrow: two of them in rows. A pane has
one place at every size: where there is no room for three, the nodes slide over the graph; where
there are two rows, the findings slide over the parameters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from itertools import pairwise

from dld_tui.core.dataclass import dataclass
from dld_tui.core.types import JSON

WIDE = 100
"""Columns from which two panes are side by side: the graph or the nodes, and the parameters."""
WIDEST = 140
"""Columns from which three are: nodes, graph and parameters."""
EXPLORER, GRAPH, PARAMETERS, FINDINGS = "explorer", "graph", "parameters", "findings"
NUMBERS: Mapping[int, str] = {1: EXPLORER, 2: GRAPH, 3: PARAMETERS, 4: FINDINGS}
"""Pane by the key that goes to it."""
TITLES = {EXPLORER: "nodes", GRAPH: "graph", PARAMETERS: "params", FINDINGS: "findings"}
_UPPER, _LOWER = (EXPLORER, GRAPH), (PARAMETERS, FINDINGS)
"""The panes that share a place where there is no room for all."""
_LEAST_COLUMNS, _LEAST_ROWS = 24, 4
_ORDER = (EXPLORER, GRAPH, PARAMETERS)
"""The panes that are side by side, as they are at first; the findings stay at the bottom."""
DEFAULT_SHARES: Mapping[str, float] = {
    "left columns": 0.6,
    "explorer columns of three": 0.28,
    "parameters columns of three": 0.27,
    "findings rows": 0.22,
    "upper rows": 0.6,
}
"""Parts of the width or height, by what they are parts of."""


@dataclass
class Layout:
    """What the user chose: what is on top, the maximised pane, order, sizes, what is hidden."""

    upper: str = GRAPH
    """The one of nodes and graph that is seen where there is no room for both."""
    lower: str = PARAMETERS
    """The one of parameters and findings that is seen where there is no room for both: the findings
    while they have the keys."""
    maximised: str | None = None
    shares: dict[str, float] = field(default_factory=lambda: dict(DEFAULT_SHARES))
    order: list[str] = field(default_factory=lambda: list(_ORDER))
    """The panes that are side by side, from the left; stacked ones from the top."""
    hidden: set[str] = field(default_factory=set)

    def bring_forward(self, pane: str) -> None:
        """Let a pane be the one that is seen of those that share its place."""
        if self.maximised is not None:
            self.maximised = pane
        if pane in _UPPER:
            self.upper = pane
        self.lower = FINDINGS if pane == FINDINGS else PARAMETERS

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
        shown.remove(EXPLORER if layout.upper == GRAPH else GRAPH)
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
    return f"{pane} columns of three" if three else "left columns"


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
    places = [
        top if top in panes else next((pane for pane in place if pane in panes), None)
        for place, top in ((_UPPER, layout.upper), (_LOWER, layout.lower))
    ]
    shown = [pane for pane in (*layout.order, FINDINGS) if pane in places]
    if len(shown) < 2:
        return Arrangement(False, {}, dict.fromkeys(shown, height))
    size = _part(height, layout.shares["upper rows"], _LEAST_ROWS)
    return Arrangement(False, {}, {shown[0]: size, shown[1]: height - size})


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
        name = "upper rows"
        upper = next(iter(_stacked(layout, height, {*panes} - layout.hidden).rows))
        sign = 1 if pane == upper else -1
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
