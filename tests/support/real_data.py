"""The folder of real data, and the marker of tests that need it (tests/conftest.py applies it)."""

from __future__ import annotations

import os

import pytest

DATA = os.environ.get("BIOSHARDS_DATA")
"""Folder of real data; None if it is not there."""

needs_data = pytest.mark.needs_data
"""The test is thorough, and skipped without :data:`DATA`."""
