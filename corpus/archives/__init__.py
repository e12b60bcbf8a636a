"""Streaming readers of tar and zip archives."""
