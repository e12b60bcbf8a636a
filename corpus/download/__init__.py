"""From the servers where PubMed and PMC lie in 2026 to a mirror folder that can be trusted.

One file a source says where it is and how its listings look (``pubmed.py``, ``europepmc.py``,
``pmc*.py``): when a source changes, that file is the one to mend.  The rest is the same for all: how
often a server may be asked (``rate_limit.py``), how it is asked (``http_client.py``), what a downloaded file
must be (``verifier.py``) and where it is kept (``mirror.py``).
"""
