"""What changed between two models: nodes matched by name, then by structure."""

from __future__ import annotations

from dld_tui.core.compare.diff.compare import diff_documents
from dld_tui.core.compare.diff.model_diff import Field, ModelChange, ModelDiff, ScopeDiff
from dld_tui.core.compare.diff.tensors import TensorDifference

__all__ = ["Field", "ModelChange", "ModelDiff", "ScopeDiff", "TensorDifference", "diff_documents"]
