"""Statistics of a finished directory: counts, distributions, tables and an HTML report."""
