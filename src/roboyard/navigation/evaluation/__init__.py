"""Metrics and report sections of navigation, exploration and homing."""
