"""A module or package an activity: its request (a dataclass) and ``run(request)``, its events.

Activities run in a child process (:mod:`dld_tui.activities.worker`), here or on a target. Some use
others: several take settings of ``profile onnxruntime`` into their requests, and ``tune``,
``sweep`` and ``selftest`` start others as jobs. :mod:`dld_tui.activities.registry` lists them
without importing them.
"""
