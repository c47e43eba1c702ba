"""Schema texts and type hashes agree with rosbags and with hashes that ROS 2 itself publishes."""

import subprocess
import sys

import pytest
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from roboyard.errors import MessageError
from roboyard.messages import action_type, register, schema, type_hash, type_names
from roboyard.messages.stubs import generate
from roboyard.messages.type_registry import definition_of

STORE = get_typestore(Stores.ROS2_JAZZY)


def contains_chars(name):
    return any(f.type == "char" or (f.is_message and contains_chars(f.type)) for f in definition_of(name).fields)


@pytest.mark.parametrize("name", sorted(STORE.fielddefs))
def test_schemas_and_hashes_of_standard_messages_agree(name):
    assert schema(name) == STORE.generate_msgdef(name, ros_version=2)[0]
    if not contains_chars(name):  # rosbags hashes char as a separate type, rosidl as uint8
        assert type_hash(name) == STORE.hash_rihs01(name)


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("std_msgs/msg/String", "df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"),
        # from the design document of rmw_zenoh; its event contains a char array
        ("example_interfaces/srv/AddTwoInts", "e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a"),
    ],
)
def test_hashes_agree_with_ros_2(name, digest):
    assert type_hash(name) == f"RIHS01_{digest}"


@pytest.mark.parametrize("name", [n for n in type_names("msg") if "/msg/" in n])
def test_schemas_parse_to_their_types(name):
    types = get_types_from_msg(schema(name), name)
    expected = [(f.name, f.type) for f in definition_of(name).fields if f.name != "structure_needs_at_least_one_member"]
    assert [field for field, _ in types[name][1]] == [field for field, _ in expected]
    register(schema(name), name)  # an equal definition is accepted again


def test_service_and_action_parts_have_schema_and_hash():
    for name in type_names("srv"):
        assert type_hash(name).startswith("RIHS01_")
        assert isinstance(schema(f"{name}_Request"), str)
    for name in type_names("action"):
        action = action_type(name)
        hashes = [name, action.SendGoal.name, action.GetResult.name, action.FeedbackMessage.__msgtype__]
        assert len({type_hash(n) for n in hashes}) == 4
        assert f"MSG: {name}_Feedback\n" in schema(f"{name}_FeedbackMessage")


def test_unknown_types_have_no_schema_and_hash():
    for function in (schema, type_hash):
        for name in ("std_msgs/msg/Sting", "std_srvs/srv/SetBol", "nav2_msgs/action/Nothing_SendGoal"):
            with pytest.raises(MessageError, match="unknown"):
                function(name)


def test_stubs_are_current():
    """The stub files equal the generated ones, in a process without registered types.

    If this test fails, run ``python -m roboyard.messages.stubs``.
    """
    code = (
        "from importlib.resources import files; from roboyard.messages.stubs import generate;"
        "print([n for n, t in generate().items() if files('roboyard.messages').joinpath(n).read_text('utf-8') != t])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_stubs_are_valid_python():
    for name, text in generate().items():
        compile(text, name, "exec")
