"""Forms and running jobs, settings."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
_JOB = table(
    "job",
    ("job.cancel", "cancel", "escape", "", "cancel or close",
     "Stop the job, after asking when it has run for a while; close the page when it has ended."),
    ("job.result", "result", "enter", "result", "open result", "Open what the job made."),
    ("job.again", "again", "f5", "finished", "run again", "Run the same job again."),
    ("job.node", "go_to_node", "s", "failed_node", "go to node",
     "Show the node of the model that the job failed at."),
    ("job.copy", "copy_log", "y", "", "copy log", "Copy the log and the error, if there is one."),
    footer="job.cancel job.result job.node job.again job.copy",
)
_ENDED = table(
    "ended_jobs",
    ("ended_jobs.result", "result", "enter", "result", "open result", "Open what the job wrote."),
    ("ended_jobs.copy", "copy_log", "y", "", "copy log", "Copy the result and the log."),
    footer="ended_jobs.result ended_jobs.copy",
)
_MANY = table(
    "many_jobs",
    ("many_jobs.cancel", "cancel", "escape", "", "cancel or close",
     "Stop all jobs; close the page when they have ended."),
    ("many_jobs.result", "result", "enter", "result", "compare", "Compare the reports."),
    ("many_jobs.copy", "copy_log", "y", "", "copy log", "Copy what the jobs said."),
    footer="many_jobs.cancel many_jobs.result many_jobs.copy",
)
_ACTIVITY = table(
    "activity",
    ("activity.run", "run", "f5", "valid", "run", "Run it with these settings."),
    ("activity.run_on", "run_on", "f6", "targets", "run on …",
     "Mark several targets: it runs on all at once, and the reports are compared."),
    ("activity.next_page", "next_page", "ctrl+pagedown", "", "next page", "Show the next page."),
    ("activity.previous_page", "previous_page", "ctrl+pageup", "", "previous page",
     "Show the previous page."),
    ("activity.tick", "tick", "f2", "tickable", "tick in list",
     "Tick in a list what of the model is meant, for the field under the cursor."),
    ("activity.defaults", "defaults", "f8", "", "defaults", "Set every field to its default."),
    ("activity.copy", "copy_command", "f9", "", "copy command", "Copy the equal command line."),
    ("activity.copy_trtexec", "copy_trtexec", "f7", "trtexec", "copy trtexec",
     "Copy the equal command of trtexec."),
    ("activity.save_preset", "presets.save", "ctrl+s", "valid", "save as preset",
     "Keep these settings under a name."),
    ("activity.load_preset", "presets.load", "f4", "presets", "load preset",
     "Fill the form with settings that were kept under a name."),
    footer="activity.run activity.next_page activity.defaults activity.copy", priority=True,
)
_SETTINGS = table(
    "settings",
    ("settings.save", "save", "f5,ctrl+s", "valid", "save", "Write the settings and use them."),
    footer="settings.save", priority=True,
)
# fmt: on

ROWS: tuple[Command, ...] = (*_JOB, *_ENDED, *_MANY, *_ACTIVITY, *_SETTINGS)
