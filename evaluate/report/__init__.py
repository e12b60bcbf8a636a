"""Results as tables, beside what the papers print."""
