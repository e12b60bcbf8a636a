"""Streaming XML: decoding files, splitting them into elements, checking that tags balance."""
