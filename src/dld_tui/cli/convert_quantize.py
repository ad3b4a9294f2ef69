"""``dld convert quantize``: a quantized model."""

from __future__ import annotations

from dld_tui.cli.activity import activity_command
from dld_tui.cli.convert_result import show_result

command = activity_command("quantize", "convert_quantize", show_result)
"""The command."""
