"""``dld convert inline``: weights in the model itself."""

from __future__ import annotations

from dld_tui.cli.activity import activity_command
from dld_tui.cli.convert_result import show_result

command = activity_command("inline", "convert_inline", show_result)
"""The command."""
