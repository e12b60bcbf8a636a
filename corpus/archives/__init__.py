"""Members of tar and zip archives, bounded in size and checked for damage."""
