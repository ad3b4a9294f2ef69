"""``dld convert bf16``: a model in bfloat16."""

from __future__ import annotations

from dld_tui.cli.activity import activity_command
from dld_tui.cli.convert_result import show_result

command = activity_command("bf16", "convert_bf16", show_result)
"""The command."""
