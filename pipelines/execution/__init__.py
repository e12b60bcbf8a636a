"""Executing a graph: runners, their worker processes, progress."""
