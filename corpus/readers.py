"""make_reader: to be described."""

from __future__ import annotations

from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.jats.reader import ArticleReader
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.pubmed.reader import CitationReader
from bioshards.corpus.source_record import RecordReader
from bioshards.corpus.text_config import TextConfig


def make_reader(document_config: TextConfig, keep_dropped: bool) -> RecordReader:
    """What reads sources by these rules: citations or articles."""
    if isinstance(document_config, PmcConfig):
        return ArticleReader(document_config, keep_dropped)
    assert isinstance(document_config, PubMedConfig)
    return CitationReader(document_config)
