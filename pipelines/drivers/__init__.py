"""Drivers: from parsed options to a finished output, one a command."""
