"""Marked nodes: marking, copying, pasting, extracting, editing many."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
ROWS: tuple[Command, ...] = table(
    "workspace",
    ("mark.menu", "selection.mark_more", "w", "", "mark more",
     "Mark by filter, by name, along the links, or all others."),
    ("mark.filter", "selection.mark_filter", "", "", "mark by filter",
     "Mark the nodes of some operator types or that meet conditions."),
    ("mark.name", "selection.mark_name", "", "", "mark by name",
     "Mark the nodes whose names begin so, such as those of a name scope."),
    ("mark.same", "selection.mark_same", "", "node", "mark same type",
     "Mark the nodes of the same operator type."),
    ("mark.between", "selection.mark_between", "", "marks", "mark between",
     "Mark all nodes on paths between the marked ones."),
    ("mark.upstream", "selection.mark_upstream", "", "nodes", "mark upstream",
     "Mark what the marked nodes are computed from."),
    ("mark.downstream", "selection.mark_downstream", "", "nodes", "mark downstream",
     "Mark what is computed from the marked nodes."),
    ("mark.invert", "selection.mark_invert", "", "", "invert marks",
     "Mark the nodes that are shown and not marked, and no others."),
    ("mark.clear", "selection.mark_clear", "", "marks", "clear marks", "Mark nothing."),
    ("edit.copy", "selection.copy", "y", "nodes", "copy nodes",
     "Copy the marked nodes, or the one at the cursor, with their weights."),
    ("edit.cut", "selection.cut", "ctrl+x", "nodes", "cut nodes",
     "Copy the marked nodes, or the one at the cursor, and delete them."),
    ("edit.paste", "selection.paste", "p", "copied", "paste nodes",
     "Add the copied nodes to the graph at the cursor, of any tab."),
    ("edit.extract", "extraction.extract", "x", "", "extract",
     "Write the marked nodes, a body or a function as a model of its own."),
    ("edit.many", "selection.edit_many", "E", "nodes", "edit many",
     "Set the attributes that the marked nodes share."),
    ("edit.rewrite", "rewriting.show", "Q", "", "find and rewrite",
     "Find a pattern, at first that of the marked nodes, and mark or replace what it finds."),
    ("edit.export_script", "extraction.export_script", "", "can_undo", "export edits",
     "Write the edits of this session as a script that `dld edit` replays."),
    common="document",
    menus={"edit.paste": "scope", "edit.extract": "node scope", "mark.menu": "node scope"},
)
