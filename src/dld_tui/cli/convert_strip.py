"""``dld convert strip``: a model without its weights."""

from __future__ import annotations

from dld_tui.cli.activity import activity_command
from dld_tui.cli.convert_result import show_result

command = activity_command("strip", "convert_strip", show_result)
"""The command."""
