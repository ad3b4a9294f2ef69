"""Profile reports: the file, what it says, and how kernels are joined to ONNX nodes.

- :mod:`.report`: `Report` and `open_report`, what a screen or a command reads.
- :mod:`.store`: `ReportWriter`, what an activity writes.
- :mod:`.records`: the rows of both.
- :mod:`.roofline`, :mod:`.sharing`: what limits a layer; the time of a fused one by its nodes.
- :mod:`.generation`: measurements of prefill and decode.
- :mod:`.formats`: files of other profilers into a report, and out of one.
- :mod:`.triage`: remarks on how far its figures hold. What it says: :mod:`dld_tui.core.reading`.

The file is SQLite 3; docs/reference/report-format.md documents its tables.
"""
