"""PubMed citation XML: records, citations, documents and drop rules."""
