"""``dld convert restore``: a stripped model with its weights again."""

from __future__ import annotations

from dld_tui.cli.activity import activity_command
from dld_tui.cli.convert_result import show_result

command = activity_command("restore", "convert_restore", show_result)
"""The command."""
