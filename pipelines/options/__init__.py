"""Command-line options that several pipelines share."""
