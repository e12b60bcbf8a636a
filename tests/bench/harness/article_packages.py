"""Make the packages that bench_articles.py reads, in another process so that the benchmark stays small.

python -m tests.bench.harness.article_packages WORK ARTICLES
"""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
from pathlib import Path

from bioshards.corpus.jats import article_stream
from tests.support.paths import PMC_SAMPLE

PACKAGE_COUNT = 8


def find_articles(data: str | None) -> list[Path]:
    """Find the articles to measure with: Europe PMC's, which come from many publishers."""
    if data:
        return sorted(Path(data, "jats", "petermr__tigr2ess").rglob("*.xml"))
    return sorted(PMC_SAMPLE.glob("*.xml"))


def write_packages(work: Path, paths: list[Path], articles: int) -> list[str]:
    """Write packages of a number of articles with distinct PMC ids."""
    work.mkdir(exist_ok=True)
    bodies = [xml for path in paths for xml in article_stream.iter_articles(io.BytesIO(path.read_bytes()))]
    paths_made = []
    for package in range(PACKAGE_COUNT):
        first = 1 + package * 10_000
        path = work / f"PMC{first}_PMC{first + articles - 1}.xml.gz"
        with gzip.open(path, "wb", compresslevel=6) as out:
            out.write(b"<articles>")
            for index in range(articles):
                xml = bodies[(index + package * articles) % len(bodies)]
                out.write(_replace_id(xml, first + index))
            out.write(b"</articles>")
        paths_made.append(str(path))
    return paths_made


def _replace_id(xml: bytes, number: int) -> bytes:
    """Replace the PMC id of an article."""
    kept = re.sub(rb'<article-id pub-id-type="(?:pmc|pmcid|pmcid-ver)">[^<]*</article-id>', b"", xml)
    ours = b'<article-meta><article-id pub-id-type="pmcid">PMC%d</article-id>' % number
    return re.sub(rb"<article-meta[^<>]*>", ours, kept, count=1)


def main() -> None:
    """Make the packages, the list of the articles to read one by one, and packages of one article."""
    work, articles = Path(sys.argv[1]), int(sys.argv[2])
    article_paths = find_articles(os.environ.get("BIOSHARDS_DATA"))
    (work / "paths").write_text("\n".join(map(str, article_paths[:articles])))
    write_packages(work / "single", article_paths, 1)
    print("\n".join(write_packages(work, article_paths, articles)))


if __name__ == "__main__":
    main()
