"""From source files to published shards: stage, decide versions and duplicates, finalize, publish."""
