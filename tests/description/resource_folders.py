"""Packages and model folders that the tests of resources and includes write."""

from __future__ import annotations

from pathlib import Path

STL = b"solid x\nendsolid x\n"


def make_package(folder: Path, name: str) -> Path:
    """Write a ROS package with a mesh, and return its folder."""
    (folder / "meshes").mkdir(parents=True)
    (folder / "urdf").mkdir()
    (folder / "package.xml").write_text(f"<package><name>{name}</name></package>")
    (folder / "meshes" / "part.stl").write_bytes(STL)
    return folder


def make_model_folder(folder: Path, name: str, content: str) -> Path:
    """Write a Gazebo model with the given ``model.sdf`` and a mesh, and return its folder."""
    model_folder = folder / name
    (model_folder / "meshes").mkdir(parents=True)
    (model_folder / "model.config").write_text(f'<model><name>{name}</name><sdf version="1.9">model.sdf</sdf></model>')
    (model_folder / "model.sdf").write_text(content)
    (model_folder / "meshes" / "part.stl").write_bytes(STL)
    return model_folder
