"""Exit codes of the ``beam`` command."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
"""Something went wrong while running; what was done is kept and the next run continues."""
USAGE_ERROR: Final = 2
"""The command line, the input or the output folder is not right; nothing was begun."""
NOT_PUBLISHED: Final = 3
"""The run came to its end, but no manifest was written: a file could not be fetched, more input was
rejected than --max-rejected allows, or no document was kept."""
INTERRUPTED: Final = 130
"""Ctrl-C or a termination signal; the next run continues."""
