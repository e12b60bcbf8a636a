"""Task adapters: how each kind of task is encoded, predicted and scored."""
