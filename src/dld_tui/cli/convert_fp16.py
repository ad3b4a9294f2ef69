"""``dld convert fp16``: a model in float16."""

from __future__ import annotations

from dld_tui.cli.activity import activity_command
from dld_tui.cli.convert_result import show_result

command = activity_command("fp16", "convert_fp16", show_result)
"""The command."""
