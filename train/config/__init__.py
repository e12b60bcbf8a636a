"""Training recipes, model presets and their command-line options."""
