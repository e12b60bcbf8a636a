"""Reading of directories by the ``datasets`` library."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def load_with_datasets(folder: Path) -> Any:
    """Load a directory with ``datasets.load_from_disk``; return a Dataset or a DatasetDict."""
    # Imported here because it takes half a second, also where no such test is selected.
    import datasets

    return datasets.load_from_disk(str(folder))
