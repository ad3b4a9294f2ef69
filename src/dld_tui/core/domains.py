"""Names of operator sets."""

from __future__ import annotations


def plain_domain(domain: str) -> str:
    """Return a domain with ``ai.onnx``, which is another name of the default one, as ``""``."""
    return "" if domain == "ai.onnx" else domain
