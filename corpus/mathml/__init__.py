"""Presentation MathML to plain text."""
