"""The commands of trtexec: printed from settings, read into settings, explained for a version."""

from __future__ import annotations

from dld_tui.core.tensorrt.trtexec_explain import Explained, explain
from dld_tui.core.tensorrt.trtexec_parse import Parsed, for_build, parse_command
from dld_tui.core.tensorrt.trtexec_print import print_command

__all__ = ["Explained", "Parsed", "explain", "for_build", "parse_command", "print_command"]
