"""The parser of the command lines of all packages."""

from __future__ import annotations

import argparse
from typing import Any


class ExactArgumentParser(argparse.ArgumentParser):
    """A parser that takes options by their whole names only, also in its subcommands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
