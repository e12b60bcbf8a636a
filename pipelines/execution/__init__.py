"""Executing a graph: session, local runner, progress."""
