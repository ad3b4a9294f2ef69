"""``dld convert shape``: dimensions dynamic or fixed."""

from __future__ import annotations

from dld_tui.cli.activity import activity_command
from dld_tui.cli.convert_result import show_result

command = activity_command("shape", "convert_shape", show_result)
"""The command."""
