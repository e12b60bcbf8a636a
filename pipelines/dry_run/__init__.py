"""The plan and the cost of a run before it starts."""
