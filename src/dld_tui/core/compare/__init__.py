"""Comparing reports and engines: where the time went, which differences are more than noise.

- :mod:`.model`: what is compared (`Comparable`) and what comes out (`Row`, `Cell`).
- :mod:`.comparison`: `Comparison`, what a screen or a command reads.
- :mod:`.subject`: a report as something to compare; engines are in :mod:`..plan.subject`.
- :mod:`.matching`: which layers of one report are which of another.
- :mod:`.rows`: times by layer, ONNX node, operator, scope, provider or precision.
- :mod:`.engines`: tactics and precisions that are not the same, inserted layers.
- :mod:`.noise`: how far a difference of medians can come from chance.
- :mod:`.conditions`: settings and environment that differ, and what makes a comparison unfair.
- :mod:`.explain`, :mod:`.export`: text for people, JSON and CSV for programs.

docs/compare.md has the method, with its sources.
"""
