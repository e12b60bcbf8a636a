"""Exit codes of every command."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
"""The run failed. Completed work is kept; rerunning the command resumes it."""
USAGE_ERROR: Final = 2
"""The command line, an input or the output directory is invalid. Nothing was started."""
NOT_PUBLISHED: Final = 3
"""The run completed, but no manifest was written: a download failed, the reject threshold was
exceeded, or no document passed the filters."""
INTERRUPTED: Final = 130
"""Ctrl-C or a termination signal. Rerunning the command resumes the run."""
