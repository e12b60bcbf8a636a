"""Download PubMed, Europe PMC and PMC to a verified mirror folder.

URLs and formats of a source are in one module or package: ``pubmed.py``, ``europepmc.py``, ``pmc/``.  All
sources share the rate limiter (``rate_limit.py``), the HTTP client (``http_client.py``) and the mirror of
verified files (``mirror.py``).
"""
