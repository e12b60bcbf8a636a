"""Inputs of a run: local files, mirrored files and files to download."""
