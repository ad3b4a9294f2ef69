"""One file a job: its request (a dataclass) and ``run(request)``, a generator of events.

Activities run in a child process (:mod:`dld_tui.activities.worker`), here or on a target, and do
not know each other. :mod:`dld_tui.activities.registry` lists them without importing them.
"""
