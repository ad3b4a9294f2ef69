"""The style sheets."""

from __future__ import annotations

from pathlib import Path

STYLES = Path(__file__).parent
"""The folder of the style sheets: Textual takes relative paths from the folder of a subclass."""
