"""Comparing profile reports: where the time went, and which differences are more than noise.

- :mod:`.model`: what is compared (`Comparable`) and what comes out (`Row`, `Cell`).
- :mod:`.comparison`: `Comparison`, what a screen or a command reads.
- :mod:`.subject`: a report as something to compare.
- :mod:`.matching`: which layers of one report are which of another.
- :mod:`.rows`: times by layer, ONNX node, operator, scope, provider or precision.
- :mod:`.noise`: how far a difference of medians can come from chance.
- :mod:`.conditions`: settings and environment that differ, and what makes a comparison unfair.
- :mod:`.explain`, :mod:`.export`: text for people, JSON and CSV for programs.

docs/compare.md has the method, with its sources.
"""
