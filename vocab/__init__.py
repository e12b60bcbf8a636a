"""In-domain vocabularies from every word of a corpus, and the encoder that uses them.

Words are counted exactly, pieces are trained on the counts, and what is written loads in Hugging Face's
libraries as it is.  Nothing here imports Apache Beam or torch.
"""
