"""``dld convert sanitize``: constants folded, what is unused removed."""

from __future__ import annotations

from dld_tui.cli.activity import activity_command
from dld_tui.cli.convert_result import show_result

command = activity_command("sanitize", "convert_sanitize", show_result)
"""The command."""
