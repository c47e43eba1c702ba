"""Readers for URDF, xacro and SDF: files in standard formats become one `Model` or `World`."""
