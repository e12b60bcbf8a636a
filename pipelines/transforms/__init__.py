"""PTransforms: each wires one function of corpus/ or vocab/ into a pipeline."""
