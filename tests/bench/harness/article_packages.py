"""Packages of articles like Europe PMC's, of real articles with new PMC ids."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Final

from bioshards.corpus.jats import article_stream
from tests.support.paths import PMC_SAMPLE

PACKAGE_COUNT: Final = 8
_PMC_IDS: Final = re.compile(rb'<article-id pub-id-type="(?:pmc|pmcid|pmcid-ver)">[^<]*</article-id>')
_ARTICLE_META: Final = re.compile(rb"<article-meta[^<>]*>")


def find_articles() -> list[Path]:
    """Find the articles to measure with: Europe PMC's, which come from many publishers.

    Without real data they are the bundled sample's, but for its packages of several articles.
    """
    data = os.environ.get("BIOSHARDS_DATA")
    if data:
        return sorted(Path(data, "jats", "petermr__tigr2ess").rglob("*.xml"))
    return sorted(PMC_SAMPLE.glob("*.[0-9].xml"))


def write_packages(work: Path, paths: list[Path], articles: int) -> list[str]:
    """Write packages of a number of articles with distinct PMC ids."""
    work.mkdir(parents=True, exist_ok=True)
    bodies = [xml for path in paths for xml in article_stream.iter_articles(io.BytesIO(path.read_bytes()))]
    packages = []
    for package in range(PACKAGE_COUNT):
        first = 1 + package * 10_000
        path = work / f"PMC{first}_PMC{first + articles - 1}.xml.gz"
        with gzip.open(path, "wb", compresslevel=6) as out:
            out.write(b"<articles>")
            for index in range(articles):
                body = _PMC_IDS.sub(b"", bodies[(index + package * articles) % len(bodies)])
                own = b'<article-meta><article-id pub-id-type="pmcid">PMC%d</article-id>' % (first + index)
                out.write(_ARTICLE_META.sub(own, body, count=1))
            out.write(b"</articles>")
        packages.append(str(path))
    return packages


def main() -> None:
    """Make the inputs of bench_corpus.py, and print their description as JSON."""
    work, articles = Path(sys.argv[1]), int(sys.argv[2])
    paths = find_articles()
    read_singly = paths[:articles]
    (work / "paths").write_text("\n".join(map(str, read_singly)))
    description = {
        "files": write_packages(work, paths, articles),
        "single": write_packages(work / "single", paths, 1)[:2],
        "script_input": str(work / "paths"),
        "script_units": len(read_singly),
        "xml_bytes": sum(path.stat().st_size for path in read_singly),
    }
    print(json.dumps(description))


if __name__ == "__main__":
    main()
