"""Planners of step plans: sampling, metaheuristics, splitting, and ARA* over a graph of stances."""
