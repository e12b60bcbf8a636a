"""bioshards: from PubMed and PMC to biomedical language models.

The functions below are imported on first use, so that ``import bioshards`` takes no time.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as type checkers know it by name; typing takes half of the time of this import
if TYPE_CHECKING:
    from typing import Any, Final

    from bioshards.api import (
        Document,
        Row,
        Section,
        clean,
        load_vocabulary,
        open_documents,
        open_rows,
        read_article,
        read_pubmed,
        split,
    )

__version__ = "0.2.0"

__all__ = [
    "Document",
    "Row",
    "Section",
    "clean",
    "load_vocabulary",
    "open_documents",
    "open_rows",
    "read_article",
    "read_pubmed",
    "split",
]

_API: Final = "bioshards.api"


def __getattr__(name: str) -> Any:
    """Import a name of :mod:`bioshards.api` when it is used for the first time (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module 'bioshards' has no attribute {name!r}")
    value = getattr(import_module(_API), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
