"""Reports: results beside published scores."""
