"""Moving in lists, tables and pages."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_PAGE = table(
    "page",
    ("page.close", "close", "escape,q", "", "close", "Close this page."),
    footer="page.close", palette=False,
)
_LIST = table(
    "list",
    ("list.up", "cursor_up", "up,k", "", "up", "Move up."),
    ("list.down", "cursor_down", "down,j", "", "down", "Move down."),
    ("list.left", "cursor_left", "left,h", "", "left", "Scroll left, or fold."),
    ("list.right", "cursor_right", "right,l", "", "right", "Scroll right, or unfold."),
    ("list.page_up", "page_up", "pageup,ctrl+b", "", "page up", "Move one page up."),
    ("list.page_down", "page_down", "pagedown,ctrl+f", "", "page down", "Move one page down."),
    ("list.first", "first", "home,g", "", "first", "Move to the first line."),
    ("list.last", "last", "end,G", "", "last", "Move to the last line."),
    ("list.activate", "activate", "enter", "", "open", "Open or jump to the cursor's line."),
    ("list.mark", "mark", "space", "", "mark", "Mark or unmark the line and move down."),
    ("list.mark_range", "mark_range", "M", "", "mark range", "Mark from the last mark to here."),
    ("list.search_next", "finder.next", "n", "", "next match", "Go to the next match."),
    ("list.search_previous", "finder.previous", "N", "", "previous match",
     "Go to the previous match."),
    ("list.copy", "copy_line", "Y", "", "copy line", "Copy the line's text to the clipboard."),
    palette=False,
)
_SEARCH = table(
    "list",
    ("list.search", "finder.ask", "slash", "", "search", "Search in this list."),
)
_SORT = table(
    "table",
    ("table.sort", "sort_next", "o", "", "sort", "Sort by the next column."),
    ("table.reverse", "sort_reverse", "O", "", "reverse order", "Reverse the order."),
)
_COLUMNS = table(
    "table",
    ("table.left", "columns_left", "left,h,shift+left", "", "columns left",
     "Show the columns to the left."),
    ("table.right", "columns_right", "right,l,shift+right", "", "columns right",
     "Show a column more to the right; the one with the name stays."),
    palette=False,
)
# fmt: on

ROWS: tuple[Command, ...] = (*_PAGE, *_LIST, *_SEARCH, *_SORT, *_COLUMNS)
