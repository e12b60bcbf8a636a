"""From documents to vocabularies, token ids and pretraining rows.

Words are counted exactly, subwords are trained on the counts, and the files load in Hugging Face's libraries.
``encode.Encoder`` encodes text, and ``pretraining`` builds the rows that models are trained on.
"""
