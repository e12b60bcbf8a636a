"""MathML to plain text."""
