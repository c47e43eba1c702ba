"""Metrics and report sections of arms."""
