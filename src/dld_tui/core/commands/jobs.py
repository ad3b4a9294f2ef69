"""Jobs and their settings, targets, custom tools."""

from __future__ import annotations

from dld_tui.core.commands.model import Command, table

# fmt: off
# Forms and running jobs, settings.
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

# Targets: the list of machines that are reached over SSH, and the form of one.
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

# Custom tools: the list of programs that are run on models, and the form of one.
_TOOLS_APP = table(
    "app",
    ("app.tools", "tools", "f10", "", "custom tools",
     "Run programs of yours on the open model; add and change them."),
)
_TOOLS_LIST = table(
    "tools",
    ("tools.run", "run", "f5", "document tool", "run",
     "Run the tool on the open model, edits included."),
    ("tools.add", "add", "a", "", "add", "Save a program and its arguments as a tool."),
    ("tools.edit", "edit", "e", "tool", "edit", "Change the tool."),
    ("tools.remove", "remove", "d,delete", "tool", "remove", "Forget the tool, after asking."),
    ("tools.copy", "copy", "y", "tool", "copy", "Copy the application and its arguments."),
    footer="tools.run tools.add tools.edit tools.remove",
)
_TOOLS_FORM = table(
    "tool_form",
    ("tool_form.save", "save", "f5,ctrl+s", "valid", "save", "Save the tool."),
    footer="tool_form.save", priority=True,
)
# fmt: on

ROWS: tuple[Command, ...] = (
    *_JOB,
    *_ENDED,
    *_MANY,
    *_ACTIVITY,
    *_SETTINGS,
    *_APP,
    *_LIST,
    *_JOBS,
    *_FORM,
    *_TOOLS_APP,
    *_TOOLS_LIST,
    *_TOOLS_FORM,
)
