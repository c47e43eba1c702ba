"""Metrics and report sections of walking."""
