"""Targets: the list of machines that are reached over SSH, and the form of one."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_APP = table(
    "app",
    ("app.targets", "targets", "", "", "targets",
     "Add, change and test the machines that activities run on over SSH."),
)
_LIST = table(
    "targets",
    ("targets.add", "add", "a", "", "add", "Save a connection to another machine."),
    ("targets.edit", "edit", "e", "target", "edit", "Change the connection."),
    ("targets.test", "test", "t,f5", "target", "test",
     "Connect, and say each step with the remedy for what fails."),
    ("targets.remove", "remove", "d,delete", "target", "remove",
     "Forget the connection, after asking."),
    ("targets.jobs", "jobs", "J", "", "jobs",
     "List the jobs that were started on targets and not fetched yet."),
    ("targets.copy", "copy", "y", "target", "copy", "Copy the name, or what the test said."),
    footer="targets.add targets.edit targets.test targets.jobs targets.remove",
)
_JOBS = table(
    "target_jobs",
    ("target_jobs.attach", "attach", "enter,a", "job", "go on",
     "Show how far the job is, and fetch its result to the path that was asked for."),
    ("target_jobs.stop", "stop", "c,delete", "job", "stop it",
     "Stop the job, after asking; nothing of it is left on the target."),
    ("target_jobs.again", "again", "f5", "", "look again", "Ask the targets how their jobs are."),
    footer="target_jobs.attach target_jobs.stop target_jobs.again",
)
_FORM = table(
    "target_form",
    ("target_form.save", "save", "f5,ctrl+s", "valid", "save", "Save the connection."),
    ("target_form.next_page", "next_page", "ctrl+pagedown", "", "next page",
     "Show the next page."),
    ("target_form.previous_page", "previous_page", "ctrl+pageup", "", "previous page",
     "Show the previous page."),
    footer="target_form.save target_form.next_page", priority=True,
)
# fmt: on

ROWS: tuple[Command, ...] = (*_APP, *_LIST, *_JOBS, *_FORM)
