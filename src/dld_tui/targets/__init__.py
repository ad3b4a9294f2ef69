"""Where a job runs: a child process, here or over SSH; the protocol is the same everywhere."""
