"""The graph pane."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_VIEWS = table(
    "graph",
    ("graph.view", "next_view", "v", "graph", "next view",
     "Show the graph as an overview, as rails, as boxes, or around the cursor."),
    ("graph.focus", "focus_around", "t", "graph", "focus",
     "Show only what is near the node, as boxes."),
    ("graph.path", "show_path", "w", "graph", "ways between",
     "Show what lies between two marked nodes, or the marked one and the cursor's, as boxes."),
    ("graph.fold", "toggle_fold", "z", "graph", "fold",
     "Fold or unfold a repeated block or name scope."),
    ("graph.overlay", "colours.next", "o", "graph", "overlay",
     "Colour by operator, precision, findings, weights, FLOPs, or time and errors in other tabs."),
    ("graph.zoom_in", "zoom_in", "plus,equals_sign", "graph", "zoom in",
     "Say more in each box."),
    ("graph.zoom_out", "zoom_out", "minus", "graph", "zoom out", "Say less in each box."),
    footer="graph.view graph.fold",
)
_GRAPH = table(
    "graph",
    ("graph.zoom_reset", "zoom_reset", "0", "graph", "zoom to fit",
     "Say as much in the boxes as fits on the screen."),
    ("graph.more_hops", "more_hops", "right_parenthesis", "graph", "more around",
     "Show what is one link further away, in the focus view."),
    ("graph.fewer_hops", "fewer_hops", "left_parenthesis", "graph", "less around",
     "Show what is one link nearer, in the focus view."),
    ("graph.move_left", "move_box -4", "shift+left,H", "graph", "move left",
     "Move the box to the left; it is kept in the model's metadata."),
    ("graph.move_right", "move_box 4", "shift+right,L", "graph", "move right",
     "Move the box to the right; it is kept in the model's metadata."),
    ("graph.arrange", "arrange", "A", "graph", "arrange again",
     "Put all boxes back to where they would be arranged."),
    ("graph.leave", "leave", "escape", "", "leave",
     "Leave the link, or the focus view; clear marks."),
    palette=False,
)
_LINK = table(
    "graph",
    ("graph.link", "link", "semicolon", "graph", "to link",
     "Go onto a link of the node, or the next one: connect, insert and delete act on it."),
    menus={"graph.link": "node input boundary"},
)
_GRID = table(
    "graph",
    ("graph.grid", "toggle_grid", "number_sign", "graph", "grid",
     "Show or hide a grid of dots between the boxes."),
)
_CANVAS = table(
    "canvas",
    ("canvas.up", "cursor_up", "up,k", "", "up", "Follow the link up."),
    ("canvas.down", "cursor_down", "down,j", "", "down", "Follow the link down."),
    ("canvas.left", "cursor_left", "left,h", "", "left", "Go to the box at the left."),
    ("canvas.right", "cursor_right", "right,l", "", "right", "Go to the box at the right."),
    ("canvas.page_up", "page_up", "pageup,ctrl+b", "", "page up", "Go one page up."),
    ("canvas.page_down", "page_down", "pagedown,ctrl+f", "", "page down", "Go one page down."),
    ("canvas.first", "first", "home,g", "", "first", "Go to the top."),
    ("canvas.last", "last", "end,G", "", "last", "Go to the bottom."),
    ("canvas.activate", "activate", "enter", "", "open", "Open the box under the cursor."),
    ("canvas.mark", "mark", "space", "", "mark", "Mark or unmark the box."),
    ("canvas.search", "finder.ask", "slash", "", "search", "Search in the boxes."),
    ("canvas.search_next", "finder.next", "n", "", "next match", "Go to the next match."),
    ("canvas.search_previous", "finder.previous", "N", "", "previous match",
     "Go to the previous match."),
    palette=False,
)
_WORKSPACE = table(
    "workspace",
    ("graph.picture", "graphs.save_picture", "", "", "save picture",
     "Write what the graph pane shows as SVG, PNG, JPEG or text."),
    common="document",
)
# fmt: on

ROWS: tuple[Command, ...] = (*_WORKSPACE, *_VIEWS, *_GRAPH, *_LINK, *_GRID, *_CANVAS)
