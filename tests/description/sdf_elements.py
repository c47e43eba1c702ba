"""Classify SDF elements by loading documents: the reader reads them, warns that they have no effect, or ignores them.

An element is "read" if another value of it changes the record, and "warned" if a reader warning names it. As a program
this module prints the table of ``docs/reference/sdf-elements.md``.
"""

from __future__ import annotations

from dataclasses import replace

from roboyard.description import load_world

BOX = "<geometry><box><size>1 1 1</size></box></geometry>"
EMPTY_LINK = "<link name='l'/>"
JOINT = "<link name='l'/><link name='k'/><joint name='j' type='{kind}'><parent>l</parent><child>k</child>{{}}</joint>"


def wrap_in_model(content: str) -> str:
    return f"<model name='m'>{content}</model>"


def wrap_in_link(content: str) -> str:
    return wrap_in_model(f"<link name='l'>{content}</link>")


def wrap_in_sensor(kind: str, tag: str, content: str = "{}") -> str:
    body = f"<{tag}>{content}</{tag}>" if tag else content
    return wrap_in_link(f"<sensor name='s' type='{kind}'><update_rate>10</update_rate>{body}</sensor>")


NOISE = {
    f"noise/{tag}": ("0.1", "0.2")
    for tag in ("mean", "stddev", "bias_mean", "bias_stddev", "dynamic_bias_stddev", "dynamic_bias_correlation_time")
}
CONTEXTS: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "world": (
        "{}",
        {
            "gravity": ("0 0 -9", "0 0 -1"), "magnetic_field": ("1e-5 0 0", "2e-5 0 0"), "wind": ("", ""),
            "audio": ("", ""), "atmosphere": ("", ""), "gui": ("", ""), "road": ("", ""), "state": ("", ""),
            "population": ("", ""),
        },
    ),
    "physics": (
        "<physics type='ode'>{}</physics>",
        {
            "max_step_size": ("0.001", "0.002"), "real_time_factor": ("1", "2"), "real_time_update_rate": ("1", "2"),
            "max_contacts": ("3", "4"), "ode": ("", ""), "bullet": ("", ""), "dart": ("", ""), "simbody": ("", ""),
        },
    ),
    "scene": (
        "<scene>{}</scene>",
        {
            "ambient": ("1 0 0 1", "0 1 0 1"), "background": ("1 0 0 1", "0 1 0 1"), "sky": ("", ""),
            "shadows": ("true", "false"), "fog": ("", ""), "grid": ("true", "false"),
            "origin_visual": ("true", "false"),
        },
    ),
    "spherical_coordinates": (
        "<spherical_coordinates>{}</spherical_coordinates>",
        {
            "latitude_deg": ("1", "2"), "longitude_deg": ("1", "2"), "elevation": ("1", "2"), "heading_deg": ("1", "2"),
            "surface_model": ("EARTH_WGS84", "MOON_SCS"), "world_frame_orientation": ("ENU", "NED"),
            "surface_axis_equatorial": ("1", "2"), "surface_axis_polar": ("1", "2"),
        },
    ),
    "light": (
        "<light name='a' type='spot'>{}</light>",
        {
            "pose": ("1 0 0 0 0 0", "2 0 0 0 0 0"), "diffuse": ("1 0 0 1", "0 1 0 1"),
            "specular": ("1 0 0 1", "0 1 0 1"), "direction": ("1 0 0", "0 1 0"),
            "cast_shadows": ("true", "false"), "intensity": ("0.5", "0.7"),
            "light_on": ("true", "false"), "visualize": ("true", "false"), "attenuation/range": ("5", "6"),
            "attenuation/constant": ("1", "2"), "attenuation/linear": ("1", "2"), "attenuation/quadratic": ("1", "2"),
            "spot/outer_angle": ("1", "0.5"), "spot/inner_angle": ("1", "0.5"), "spot/falloff": ("1", "2"),
        },
    ),
    "model": (
        wrap_in_model(EMPTY_LINK + "{}"),
        {
            "static": ("true", "false"), "pose": ("1 0 0 0 0 0", "2 0 0 0 0 0"), "self_collide": ("true", "false"),
            "allow_auto_disable": ("true", "false"), "enable_wind": ("true", "false"), "gripper": ("", ""),
        },
    ),
    "link": (
        wrap_in_link("{}"),
        {
            "pose": ("1 0 0 0 0 0", "2 0 0 0 0 0"), "gravity": ("true", "false"), "self_collide": ("true", "false"),
            "kinematic": ("true", "false"), "must_be_base_link": ("true", "false"), "enable_wind": ("true", "false"),
            "velocity_decay": ("", ""), "projector": ("", ""), "audio_source": ("", ""), "audio_sink": ("", ""),
            "battery": ("", ""), "particle_emitter": ("", ""), "light": ("", ""),
            "inertial/mass": ("1", "2"), "inertial/pose": ("1 0 0 0 0 0", "2 0 0 0 0 0"),
            "inertial/fluid_added_mass": ("", ""), "inertial/inertia/ixx": ("1", "1.5"),
            "inertial/inertia/iyy": ("1", "1.5"), "inertial/inertia/izz": ("1", "1.5"),
            "inertial/inertia/ixy": ("0", "0.1"), "inertial/inertia/ixz": ("0", "0.1"),
            "inertial/inertia/iyz": ("0", "0.1"),
        },
    ),
    "collision": (
        wrap_in_link(f"<collision name='c'>{BOX}{{}}</collision>"),
        {
            "pose": ("1 0 0 0 0 0", "2 0 0 0 0 0"), "laser_retro": ("1", "2"), "max_contacts": ("1", "2"),
            "surface/friction/ode/mu": ("0.5", "0.6"), "surface/friction/ode/mu2": ("0.5", "0.6"),
            "surface/friction/ode/fdir1": ("1 0 0", "0 1 0"), "surface/friction/ode/slip1": ("1", "2"),
            "surface/friction/ode/slip2": ("1", "2"), "surface/friction/bullet/friction": ("0.5", "0.6"),
            "surface/friction/bullet/friction2": ("0.5", "0.6"), "surface/friction/bullet/fdir1": ("1 0 0", "0 1 0"),
            "surface/friction/bullet/rolling_friction": ("0.5", "0.6"),
            "surface/friction/torsional/coefficient": ("0.5", "0.6"),
            "surface/friction/torsional/patch_radius": ("0.5", "0.6"),
            "surface/friction/torsional/surface_radius": ("0.5", "0.6"),
            "surface/friction/torsional/use_patch_radius": ("true", "false"),
            "surface/friction/torsional/ode": ("", ""), "surface/bounce/restitution_coefficient": ("0.5", "0.6"),
            "surface/bounce/threshold": ("1", "2"), "surface/contact/ode/kp": ("1e5", "1e6"),
            "surface/contact/ode/kd": ("10", "20"), "surface/contact/ode/soft_cfm": ("0.1", "0.2"),
            "surface/contact/ode/soft_erp": ("0.1", "0.2"), "surface/contact/ode/max_vel": ("0.1", "0.2"),
            "surface/contact/ode/min_depth": ("0.1", "0.2"), "surface/contact/bullet": ("", ""),
            "surface/contact/collide_bitmask": ("0", "3"), "surface/contact/category_bitmask": ("1", "3"),
            "surface/contact/collide_without_contact": ("true", "false"),
            "surface/contact/poissons_ratio": ("0.3", "0.4"), "surface/contact/elastic_modulus": ("1e5", "1e6"),
            "surface/soft_contact": ("", ""),
        },
    ),
    "visual": (
        wrap_in_link(f"<visual name='v'>{BOX}{{}}</visual>"),
        {
            "pose": ("1 0 0 0 0 0", "2 0 0 0 0 0"), "transparency": ("0.2", "0.4"), "cast_shadows": ("true", "false"),
            "laser_retro": ("1", "2"), "visibility_flags": ("1", "2"), "meta": ("", ""),
            "material/diffuse": ("1 0 0 1", "0 1 0 1"), "material/ambient": ("1 0 0 1", "0 1 0 1"),
            "material/emissive": ("1 0 0 1", "0 1 0 1"), "material/specular": ("1 0 0 1", "0 1 0 1"),
            "material/lighting": ("true", "false"), "material/shininess": ("1", "2"),
            "material/render_order": ("1", "2"), "material/double_sided": ("true", "false"),
            "material/shader": ("", ""), "material/script/name": ("Gazebo/Red", "Gazebo/Blue"),
            "material/pbr/metal/albedo_map": ("a.png", "b.png"), "material/pbr/metal/roughness_map": ("a", "b"),
            "material/pbr/metal/metalness_map": ("a", "b"), "material/pbr/metal/normal_map": ("a", "b"),
            "material/pbr/metal/emissive_map": ("a", "b"), "material/pbr/metal/environment_map": ("a", "b"),
            "material/pbr/metal/light_map": ("a", "b"), "material/pbr/metal/ambient_occlusion_map": ("a", "b"),
            "material/pbr/specular/specular_map": ("a", "b"), "material/pbr/specular/glossiness_map": ("a", "b"),
            "material/pbr/specular/glossiness": ("0.1", "0.2"),
        },
    ),
    "joint": (
        wrap_in_model(JOINT.format(kind="revolute").format("{}")),
        {
            "pose": ("1 0 0 0 0 0", "2 0 0 0 0 0"), "axis/xyz": ("1 0 0", "0 1 0"),
            "axis/initial_position": ("0.1", "0.2"), "axis/dynamics/damping": ("1", "2"),
            "axis/dynamics/friction": ("1", "2"), "axis/dynamics/spring_stiffness": ("1", "2"),
            "axis/dynamics/spring_reference": ("1", "2"), "axis/limit/lower": ("-1", "-2"),
            "axis/limit/upper": ("1", "2"), "axis/limit/effort": ("1", "2"), "axis/limit/velocity": ("1", "2"),
            "axis/limit/stiffness": ("1", "2"), "axis/limit/dissipation": ("1", "2"), "axis2/xyz": ("1 0 0", "0 1 0"),
            "physics": ("", ""),
        },
    ),
    "sensor": (
        wrap_in_sensor("imu", ""),
        {"pose": ("1 0 0 0 0 0", "2 0 0 0 0 0"), "topic": ("a", "b"), "frame_id": ("a", "b")},
    ),
    "imu": (
        wrap_in_sensor("imu", "imu"),
        {f"{part}/{axis}/{tag}": values for part in ("angular_velocity", "linear_acceleration") for axis in "xyz"
         for tag, values in NOISE.items()},
    ),
    "lidar": (
        wrap_in_sensor("lidar", "lidar"),
        {
            "scan/horizontal/samples": ("10", "20"), "scan/horizontal/min_angle": ("-1", "-0.5"),
            "scan/horizontal/max_angle": ("1", "0.5"), "range/min": ("0.1", "0.2"), "range/max": ("5", "6"),
            **NOISE,
        },
    ),
    "altimeter": (
        wrap_in_sensor("altimeter", "altimeter"),
        {f"{part}/{tag}": values for part in ("vertical_position", "vertical_velocity")
         for tag, values in NOISE.items()},
    ),
    "magnetometer": (
        wrap_in_sensor("magnetometer", "magnetometer"),
        {f"{axis}/{tag}": values for axis in "xyz" for tag, values in NOISE.items()},
    ),
}  # fmt: skip


def classify_element(context: str, path: str) -> str:
    """Return "read", "warned" or "ignored"."""
    template, elements = CONTEXTS[context]
    tags = path.split("/")

    def load_with(value: str) -> tuple[str, set[str]]:
        content = value
        for tag in reversed(tags):
            content = f"<{tag}>{content}</{tag}>"
        world = load_world(f"<sdf version='1.12'><world name='w'>{template.format(content)}</world></sdf>")
        record = repr(replace(world, warnings=()))
        return record, {warning.message for warning in world.warnings}

    (first_record, first_warnings), (second_record, second_warnings) = (load_with(value) for value in elements[path])
    if first_record != second_record:
        return "read"
    if first_warnings != second_warnings:  # for example, each warning names a missing file
        return "read"
    messages = first_warnings | second_warnings
    return "warned" if any(tags[-1] in message or f"<{tags[0]}>" in message for message in messages) else "ignored"


def format_table() -> str:
    """Return the table as Markdown."""
    rows = ["| in | read | no effect, with a warning |", "| --- | --- | --- |"]
    for context, (_, elements) in CONTEXTS.items():
        cells = [
            ", ".join(f"`{path}`" for path in elements if classify_element(context, path) == kind)
            for kind in ("read", "warned")
        ]
        rows.append(f"| `{context}` | {cells[0]} | {cells[1]} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(format_table())
