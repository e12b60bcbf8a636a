"""TFRecord files of pretraining rows for the original TensorFlow trainers."""
