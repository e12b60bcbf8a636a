"""The output directory: its layout, its configuration and its lock."""
