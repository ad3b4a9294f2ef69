"""What notebooks and scripts use of this program as a library.

Only what is named here is kept from version to version; the rest of the package may change.
"""

from __future__ import annotations

from dld_tui.api.plans import Plan

__all__ = ["Plan"]
