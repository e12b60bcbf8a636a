"""The folder of real data, and the marker of tests that need it."""

from __future__ import annotations

import os

import pytest

DATA = os.environ.get("BIOSHARDS_DATA")


needs_data = pytest.mark.skipif(not DATA, reason="BIOSHARDS_DATA is not set: the real records are not here")
