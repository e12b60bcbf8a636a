"""Storage behind URLs: Google Cloud Storage, S3 and Beam's file systems."""
