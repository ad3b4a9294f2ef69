"""Comparing reports, engines and models: where the time went, what is more than noise.

- :mod:`.model`: what is compared (`Comparable`) and what comes out (`Row`, `Cell`).
- :mod:`.comparison`: `Comparison`, what a screen or a command reads.
- :mod:`.subject`: a report as something to compare; engines: :mod:`..tensorrt.plan.subject`.
- :mod:`.matching`: which layers of one report are which of another.
- :mod:`.rows`: times by layer, ONNX node, operator, scope, provider or precision.
- :mod:`.engines`: tactics and precisions that are not the same, inserted layers.
- :mod:`.conditions`: settings and environment that differ, and what makes a comparison unfair.
- :mod:`.gate`: whether a new version is slower than a base, by runs that take turns.
- :mod:`.tables`, :mod:`.export`: what the screen and commands show, JSON and CSV for programs.
- :mod:`.diff`: what changed between two models.

docs/compare.md has the method, with its sources.
"""
