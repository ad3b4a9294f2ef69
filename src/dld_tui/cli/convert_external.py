"""``dld convert external``: weights in a data file."""

from __future__ import annotations

from dld_tui.cli.activity import activity_command
from dld_tui.cli.convert_result import show_result

command = activity_command("external", "convert_external", show_result)
"""The command."""
