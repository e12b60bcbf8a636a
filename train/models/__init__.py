"""Pretraining objectives and the models behind them."""
