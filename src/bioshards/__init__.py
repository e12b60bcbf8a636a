"""bioshards: from PubMed and PMC to biomedical language models."""

__version__ = "0.1.0"
