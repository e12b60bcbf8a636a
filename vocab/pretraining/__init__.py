"""Documents and a vocabulary to pretraining examples."""
