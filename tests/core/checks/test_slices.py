"""A check that edits interrupt says what a new one says."""

from __future__ import annotations
