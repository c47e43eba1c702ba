"""The content of a scenario's world: terrain, objects, light and floor, free space, BARN worlds."""
