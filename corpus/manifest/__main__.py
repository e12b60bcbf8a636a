"""``python -m bioshards.corpus.manifest DOCS``: write manifest.md and manifest.schema.json to a folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bioshards.corpus.manifest import reference


def main() -> int:
    """Write the files; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bioshards.corpus.manifest",
        description="Generate the documentation and the JSON Schema of manifests.",
    )
    parser.add_argument(
        "docs", metavar="DOCS", type=Path, help="folder to write manifest.md and its schema to"
    )
    docs: Path = parser.parse_args().docs
    (docs / "manifest.md").write_text(reference.markdown(), encoding="utf-8")
    (docs / "manifest.schema.json").write_text(reference.json_schema(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
