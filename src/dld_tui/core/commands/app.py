"""Commands that work everywhere, and on the start page."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_APP = table(
    "app",
    ("app.help", "help", "question_mark,f1", "", "help",
     "Show the keys and what the focused pane does."),
    ("file.open", "open_file", "ctrl+o", "", "open", "Open a model or a report by path."),
    ("model.new", "new_model", "ctrl+n", "", "new model",
     "Start a model: operator sets, inputs, outputs."),
    ("app.start", "start_page", "ctrl+t", "", "start page", "Show recent files and activities."),
    ("app.activities", "activities", "f4", "", "activities", "Start a job, such as a profile."),
    ("tab.next", "next_tab", "ctrl+pagedown,right_curly_bracket", "tabs", "next tab",
     "Show the next open file."),
    ("tab.previous", "previous_tab", "ctrl+pageup,left_curly_bracket", "tabs", "previous tab",
     "Show the previous open file."),
    ("tab.close", "close_tab", "ctrl+w", "tab", "close tab",
     "Close this file; asks when it has unsaved edits."),
    ("app.close", "close_front", "q", "", "close",
     "Close what is in front; with the last tab leave the program."),
    ("app.ended_jobs", "ended_jobs", "", "", "ended jobs",
     "Show how the jobs of this session ended, their results and logs."),
    ("app.compare", "compare", "", "", "compare models", "Show what differs between two models."),
    ("app.settings", "settings", "f2", "", "settings", "Change theme, glyphs, mouse and more."),
    ("app.theme", "next_theme", "", "", "next theme", "Try the next theme; settings keep it."),
    ("app.redraw", "redraw", "ctrl+l", "", "redraw", "Draw the whole screen again."),
    footer="app.help app.close",
)
_PALETTE = table(
    "app",
    ("app.palette", "command_palette", "ctrl+p", "", "commands", "Search and run any command."),
    palette=False, priority=True, footer="app.palette",
)
_QUIT = table(
    "app",
    ("app.quit", "quit", "ctrl+q", "", "quit",
     "Leave, from anywhere; asks when there are unsaved edits."),
    priority=True,
)
_START = table(
    "start",
    ("start.profile", "profile", "f5", "model_file", "profile",
     "Measure the model under the cursor with ONNX Runtime."),
    ("recent.forget", "forget", "delete,d", "", "forget", "Take the file from this list."),
    ("start.path", "path", "i", "", "type a path", "Go to the field for a path."),
    footer="start.profile start.path",
)
# fmt: on

ROWS: tuple[Command, ...] = (*_APP, *_PALETTE, *_QUIT, *_START)
