"""Parts of the encoder from text to token ids."""
