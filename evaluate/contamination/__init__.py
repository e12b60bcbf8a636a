"""Find benchmark texts in a pretraining corpus, and the documents to exclude."""
