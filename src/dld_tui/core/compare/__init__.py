"""Comparison of reports, engines and models: where the time went, and what exceeds the noise.

- :mod:`.records`: the input (`Subject`) and the result (`ComparisonRow`, `Cell`) of a comparison.
- :mod:`.comparison`: `Comparison`, for screens and commands, and what makes it unfair;
  `open_subject`: a report as a `Subject` (engines: :mod:`.engine_subject`).
- :mod:`.matching`: matching the layers of reports.
- :mod:`.rows`: times by layer, ONNX node, operator, scope, provider or precision.
- :mod:`.engines`: differing tactics and precisions, inserted layers.
- :mod:`.gate`: whether a new version is slower than a base, by runs in alternation.
- :mod:`.export`: tables, JSON, CSV and HTML.
- :mod:`.diff`: the differences of two models.

docs/method/comparisons.md describes the method, with its sources.
"""
