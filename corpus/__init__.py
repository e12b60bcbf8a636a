"""Bytes to documents to shards, as pure functions.

Nothing here imports Apache Beam or torch: everything can be tested, and used, as plain Python.
"""
