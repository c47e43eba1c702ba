"""Getting somewhere: costmaps, planners, controllers, recovery, and coming home."""
