"""Message, service and action definitions that users register."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import MessageError
from roboyard.messages import (
    action_type,
    deserialize,
    message_type,
    register,
    register_folder,
    schema,
    serialize,
    service_type,
)

BATTERY_DEFINITION = """# State of a battery
uint8 STATE_FULL = 2
string NAME="pack"

std_msgs/Header header
float32 voltage 12.5       # [V]
float64[] cells [1.0, 2.5]
int32[3] counts
string<=5 label "abc"
bool charging true
geometry_msgs/Point[<=2] places
"""


def test_registered_message_type_is_used():
    register(BATTERY_DEFINITION, "test_register/msg/Battery")
    battery = message_type("test_register/msg/Battery")
    message = battery()
    assert message.voltage == 12.5
    assert message.cells.tolist() == [1.0, 2.5]
    assert message.counts.tolist() == [0, 0, 0]
    assert message.label == "abc"
    assert message.charging is True
    assert battery.STATE_FULL == 2
    assert battery.NAME == "pack"
    assert deserialize(serialize(message), "test_register/msg/Battery") == message
    battery().cells[0] = 7.0
    assert battery().cells.tolist() == [1.0, 2.5]


def test_registering_again_needs_an_equal_definition():
    register("int8 a\nint8 b", "test_register/msg/Again")
    register("# other words\nint8 a\n\n  int8 b   # note", "test_register/msg/Again")
    with pytest.raises(MessageError, match="test_register/msg/Again: another definition has this name"):
        register("int8 a", "test_register/msg/Again")
    with pytest.raises(MessageError, match="another definition"):
        register("int8 a", "geometry_msgs/msg/Twist")
    register("Vector3 linear\nVector3 angular", "geometry_msgs/msg/Twist")


def test_registered_schema_includes_inner_types():
    """The schema in a recording contains the definitions of all inner types."""
    register("int8 x", "test_schema/msg/Inner")
    register("Inner[] list", "test_schema/msg/Outer")
    text = schema("test_schema/msg/Outer").replace("test_schema", "test_schema2")
    register(text, "test_schema2/msg/Outer")
    outer = message_type("test_schema2/msg/Outer")(list=[message_type("test_schema2/msg/Inner")(x=3)])
    assert deserialize(serialize(outer), "test_schema2/msg/Outer") == outer


def test_registered_services_and_actions_are_used():
    register("int8 a\n---\nint8 b", "test_register/srv/Ask")
    assert service_type("test_register/srv/Ask").Response(b=3).b == 3
    register("---\n---\nfloat32 progress", "test_register/action/Wait")
    wait = action_type("test_register/action/Wait")
    assert wait.FeedbackMessage().feedback.progress == 0.0
    register("---\n---\nfloat32 progress", "test_register/action/Wait")


def test_register_folder_finds_all_definitions(tmp_path):
    for file, text in {
        "zoo_msgs/msg/Animal.msg": "Leg[] legs",
        "zoo_msgs/msg/Leg.msg": "float64 length",
        "zoo_msgs/srv/Feed.srv": "Animal animal\n---\nbool eaten",
        "zoo_msgs/action/Walk.action": "float64 far\n---\n---\n",
        "zoo_msgs/README.md": "no definition",
    }.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    names = register_folder(tmp_path)
    assert names == ("zoo_msgs/action/Walk", "zoo_msgs/msg/Animal", "zoo_msgs/msg/Leg", "zoo_msgs/srv/Feed")
    assert register_folder(tmp_path / "zoo_msgs") == names
    assert service_type("Feed").Request().animal.legs == []


def test_register_folder_refuses_folders_without_definitions(tmp_path):
    with pytest.raises(MessageError, match="no definitions found"):
        register_folder(tmp_path)
    with pytest.raises(MessageError, match="is not a folder"):
        register_folder(tmp_path / "missing")
    (tmp_path / "a_msgs" / "msg").mkdir(parents=True)
    (tmp_path / "a_msgs" / "msg" / "Good.msg").write_text("int8 a")
    (tmp_path / "a_msgs" / "msg" / "Torn.msg").write_bytes(b"\xff\xfe")
    with pytest.raises(MessageError, match=r"Torn.msg: cannot be read"):
        register_folder(tmp_path)
    with pytest.raises(MessageError, match="unknown message type"):
        message_type("a_msgs/msg/Good")  # a folder with an error registers no type


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int8 a\n?! what", r"line 2: cannot parse '\?! what'"),
        ("int8 a\nint8", "line 2"),
        ("in8 a", "unknown type 'test_bad/msg/in8'"),
        ("wstring a", "unknown type"),
        ("geometry_msgs/Twits a", r"test_bad/msg/Bad.a: unknown type.*geometry_msgs/msg/Twist"),
        ("int8 a\nint8 a", "'a' is defined twice"),
        ("int8 A=1\nint8 A", "defined twice"),
        ("int8 A=300", "300 is not a valid int8"),
        ("uint8 a -1", "-1 is not a valid uint8"),
        ("bool a maybe", "not a valid bool"),
        ("int8 a 1.5", "1.5 is not a valid int8"),
        ("float64[2] a [1.0]", "the default has 1 values"),
        ("float64 a [1.0]", "default of a single value is a list"),
        ("float64[] a 1.0", "the default of a list is a single value"),
        ("geometry_msgs/Point a 1", "default value for"),
        ("int8[0] a", "array length 0"),
        ("int8[99999999999] a", "array length"),
        ("Bad a", "contains itself"),
        ("geometry_msgs/PoseStamped[1000000] a", "has .* values"),
        ("int8 a\0", "definition text is empty"),
        (5, "definition text is empty"),
        ("int8 a" * 200_000, "at most"),
    ],
)
def test_register_refuses_invalid_definitions(text, message):
    with pytest.raises(MessageError, match=message):
        register(text, "test_bad/msg/Bad")
    with pytest.raises(MessageError, match="unknown message type"):
        message_type("test_bad/msg/Bad")


@pytest.mark.parametrize(
    "name", ["", "Bad", "a/Bad", "a/msg/", "a/msg/Bad/c", "A/msg/Bad", "a/msg/B ad", "a/msg/__x", "a/nav/Bad"]
)
def test_register_refuses_invalid_names(name):
    with pytest.raises(MessageError, match="not a type name"):
        register("int8 a", name)


def test_register_refuses_wrong_numbers_of_parts():
    with pytest.raises(MessageError, match=r"1 parts.*2 for a srv"):
        register("int8 a", "test_bad/srv/Bad")
    with pytest.raises(MessageError, match=r"2 parts.*3 for a action"):
        register("int8 a\n---\nint8 b", "test_bad/action/Bad")


@given(st.text(st.sampled_from("int8 f[]<=\n#='\"-.aB3/"), max_size=60))
def test_register_reads_or_refuses_any_definition_text(text):
    try:
        register(text, "test_any/msg/Any")
    except MessageError:
        return


@given(st.text(max_size=30))
def test_register_reads_or_refuses_any_characters(text):
    for name in ("test_any/msg/Other", "test_any/srv/Other"):
        with contextlib.suppress(MessageError):
            register(text, name)
