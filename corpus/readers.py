"""Choose the reader of a source from the type of the document config."""

from __future__ import annotations

from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.source_record import RecordReader
from bioshards.corpus.text_config import TextConfig
from bioshards.corpus.text_files import TextFilesConfig
from bioshards.corpus.text_files.documents import TextFileReader


def make_reader(document_config: TextConfig, keep_dropped: bool) -> RecordReader:
    """Create the reader for the config: of citations, articles or text files.

    Args:
        document_config: filters and text settings.
        keep_dropped: also build documents of articles that the filters drop (PMC only).
    """
    if isinstance(document_config, PmcConfig):
        from bioshards.corpus.jats.reader import ArticleReader  # here, as its patterns take 80 ms to compile

        return ArticleReader(document_config, keep_dropped)
    if isinstance(document_config, TextFilesConfig):
        return TextFileReader(document_config)
    from bioshards.corpus.pubmed.documents import CitationReader

    assert isinstance(document_config, PubMedConfig)
    return CitationReader(document_config)
