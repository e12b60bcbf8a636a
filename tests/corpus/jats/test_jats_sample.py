"""The sample's full-text articles are invented, as the sample's README states."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from tests.support.paths import PMC_SAMPLE

ARTICLE_ID = re.compile(r'article-id pub-id-type="(doi|pmid|pmc|pmcid)">(.*?)</')
INVENTED_IDS = {
    "doi": re.compile(r"(https://doi\.org/)?10\.5555/\S+"),
    "pmid": re.compile(r"999900\d\d"),
    "pmc": re.compile(r"(PMC)?9990\d{3}"),
    "pmcid": re.compile(r"(PMC)?9990\d{3}"),
}


@pytest.mark.parametrize("path", sorted(PMC_SAMPLE.iterdir()), ids=lambda path: path.name)
def test_ids_of_articles_are_invented(path: Path) -> None:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    ids = ARTICLE_ID.findall(text)
    assert ids
    for kind, value in ids:
        assert INVENTED_IDS[kind].fullmatch(value)
    assert not re.search(r"\b10\.(?!5555)\d{4}/", text)
