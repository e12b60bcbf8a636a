"""Builders of pretraining rows, one a pretraining objective."""
