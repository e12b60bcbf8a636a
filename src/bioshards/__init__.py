"""bioshards: from PubMed and PMC to biomedical language models."""

import sys

from bioshards import early_interrupt

__version__ = "0.1.0"

if early_interrupt.is_command(sys.orig_argv):
    early_interrupt.install()
