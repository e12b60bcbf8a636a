"""Dataflow templates: classic templates, flex templates and their launcher."""
