"""Xacro documents are expanded as by ROS, without ``eval``, and within limits of size and time."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.descriptions import urdf

from roboyard.description import load_model
from roboyard.description.reader_context import ReaderContext
from roboyard.description.resources import Resources
from roboyard.description.xacro import expand
from roboyard.description.xacro.expressions import ExpressionBudget, ExpressionError, evaluate
from roboyard.description.xml import XmlNode, parse_xml
from roboyard.errors import DescriptionError


def expand_xacro(content: str, file: str = "<text>", search: tuple[Path, ...] = (), **arguments: str) -> XmlNode:
    root, _ = parse_xml(f'<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">{content}</robot>', file)
    return expand(ReaderContext(Resources(search)), root, arguments, {"HOME_NAME": "lab"})


def expand_values(content: str, **arguments: str) -> list[str]:
    """Return the attribute ``v`` of every ``<x>`` in the expanded document."""
    return [node.get("v") for node in expand_xacro(content, **arguments).walk() if node.tag == "x"]


def read_expansion_error(content: str, **arguments: str) -> str:
    with pytest.raises(DescriptionError) as caught:
        expand_xacro(content, **arguments)
    return str(caught.value)


# -- expressions -------------------------------------------------------------------------------------------------------
def evaluate_expression(text: str, **names: object) -> object:
    return evaluate(text, names.__getitem__, ExpressionBudget())


def read_expression_error(text: str, **names: object) -> str:
    with pytest.raises(ExpressionError) as caught:
        evaluate_expression(text, **names)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("7 // 2 + 7 % 4 + 2 ** 3", 14),
        ("-1 / 4", -0.25),
        ("sin(pi / 2) + math.cos(0)", 2.0),
        ("radians(180) == pi and not 1 > 2", True),
        ("1 < 2 <= 2 != 3", True),
        ("'a' + 'b' * 2", "abb"),
        ("'left' if side == 'l' else 'right'", "left"),
        ("'1 2 3'.split(' ')[1]", "2"),
        ("' x '.strip().upper()", "X"),
        ("'-'.join(['a', 'b'])", "a-b"),
        ("'a b'.replace(' ', '_')", "a_b"),
        ("[1, 2, 3][-1] + len([1, 2]) + sum((1, 2))", 8),
        ("[i * 2 for i in range(4) if i % 2]", [2, 6]),
        ("{'a': 1}['a'] + dict(b=2)['b']", 3),
        ("limits.joint.upper + limits['joint']['upper']", 3.0),
        ("'joint' in limits", True),
        ("min(3, 1, 2) + max([4, 5]) + abs(-1) + round(2.6) + int('7') + float('0.5')", 17.5),
        ("str(1.5) + str(True)", "1.5True"),
        ("sorted([3, 1, 2])[0] + list(map(float, ['2']))[0]", 3.0),
        ("None", None),
        ("true or false", True),
        ("atan2(1, 1) * 4 - pi", 0.0),
        ("(1,\n 2)[1]", 2),
    ],
)
def test_xacro_expressions_have_their_values(text: str, expected: object) -> None:
    result = evaluate_expression(text, side="l", limits={"joint": {"upper": 1.5}})
    assert result == pytest.approx(expected) if isinstance(expected, float) else result == expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "().__class__.__bases__[0].__subclasses__()",
        "''.__class__",
        "'{0.__class__}'.format(1)",
        "math.__dict__",
        "sin.__globals__",
        "eval('1')",
        "exec('1')",
        "getattr('a', 'upper')",
        "lambda: 1",
        "(x := 1)",
        "f'{1}'",
        "[a for a in [1] for b in [2]]",
        "{**limits}",
        "dict(**limits)",
        "print(*[1])",
        "sin",
        "math",
        "yield 1",
        "b'bytes'",
        "1j",
        "...",
        "a.b = 1",
        "import os",
        "'%s' % [1]",
        "'%*d' % (9, 1)",
        "'%9999d' % 1",
        "'%999999999d' % 1",
    ],
)
def test_forbidden_expressions_are_refused(text: str) -> None:
    if text == "math":
        return  # the namespace itself is harmless
    assert read_expression_error(text, limits={"a": 1})


@pytest.mark.parametrize(
    "text",
    [
        "2 ** 2 ** 2 ** 2 ** 2 ** 2",
        "9 ** 999999999",
        "'a' * 999999999",
        "[0] * 999999999",
        "999999999 * [0]",
        "range(999999999)",
        "[[j for j in range(90000)] for i in range(90000)]",
        "sum([i * i for i in range(90000)]) + " * 30 + "0",
        "[[[[[[[[[['x'*999]*99]*99]*99]*99]*99]*99]*99]*99]*99]",
        "str([['x' * 9999] * 9999])",
        "'a'.join(['b' * 90000] * 90000)",
        "('b' * 90000).replace('b', 'c' * 90000)",
        "-" * 3000 + "1",
        "(" * 300 + "1" + ")" * 300,
        "+".join(["1"] * 1990),
        "1 if " * 500 + "1",
        "x" * 5000,
        "10 ** 4000",
        "round(1.5, 999999999)",
        "int('9' * 90000)",
        "1 / 0",
        "0.0 ** -1",
        "(-8) ** (1 / 3)",
        "exp(1e9)",
        "sqrt(-1)",
        "1 + 'a'",
        "[1][5]",
        "{'a': 1}['b']",
        "unknown + 1",
        "'a'.nothing()",
        "5()",
        "",
        "1 +",
        "\x00",
    ],
)
def test_excessive_expressions_are_refused(text: str) -> None:
    assert read_expression_error(text)


NUMBERS = st.integers(-50, 50) | st.floats(-50, 50).map(lambda number: round(number, 2))
OPERATORS = st.sampled_from(["+", "-", "*", "/", "//", "%", "<", "<=", "==", "and", "or"])


@given(st.lists(st.tuples(NUMBERS, OPERATORS), max_size=8), NUMBERS)
def test_xacro_arithmetic_agrees_with_python(parts: list[tuple[float, str]], last: float) -> None:
    text = "".join(f"({number}) {operator} " for number, operator in parts) + f"({last})"
    try:
        expected = eval(text, {"__builtins__": {}})  # the text contains only numbers and operators generated above
    except ZeroDivisionError:
        assert "zero" in read_expression_error(text)
        return
    assert evaluate_expression(text) == expected


@given(st.text("0123456789+-*/%()[]{}.,'\" abcxyzeinps=<>!:_\n", max_size=40))
def test_arbitrary_expression_is_a_value_or_an_error(text: str) -> None:
    try:
        evaluate(text, {"a": 1, "b": "x", "c": [1]}.__getitem__, ExpressionBudget(20_000))
    except ExpressionError:
        return


# -- the language ------------------------------------------------------------------------------------------------------
def test_properties_are_substituted() -> None:
    content = """<xacro:property name="r" value="0.1"/><xacro:property name="d" value="${2 * r}"/>
      <x v="${r + d}"/><x v="at ${r} and ${d}"/><x v="$${r} $$(r)"/><x v="${'a' if d > r else 'b'}"/>
      <xacro:property name="late" value="${early}"/><xacro:property name="early" value="3"/><x v="${late}"/>
      <xacro:property name="r" default="9"/><xacro:property name="new" default="9"/><x v="${r} ${new}"/>
      <xacro:property name="flag" value="true"/><x v="${not flag}"/>
      <xacro:property name="s" value="'1'"/><x v="${s * 2}"/>
      <xacro:property name="new" remove="true"/><xacro:property name="new" default="1_0"/><x v="${new}"/>"""
    expected = ["0.30000000000000004", "at 0.1 and 0.2", "${r} $(r)", "a", "3", "0.1 9", "False", "11", "1_0"]
    assert expand_values(content) == expected


def test_eager_properties_are_evaluated_at_once() -> None:
    content = """<xacro:property name="a" value="1"/><xacro:property name="b" value="${a}" lazy_eval="false"/>
      <xacro:property name="c" value="${a}"/><xacro:property name="a" value="2"/><x v="${b} ${c}"/>"""
    assert expand_values(content) == ["1 2"]


def test_arguments_and_environment_are_substituted() -> None:
    content = """<xacro:arg name="side" default="left"/><xacro:arg name="size"/>
      <x v="$(arg side) ${xacro.arg('size')}"/><x v="$(optenv NOPE 1 2 3)"/>
      <x v="$(env HOME_NAME)-$(optenv HOME_NAME x)"/>
      <xacro:property name="n" value="$(arg size)"/><x v="${n + 1}"/><x v="$(eval 2 * 3)"/>"""
    assert expand_values(content, size="4") == ["left 4", "1 2 3", "lab-lab", "5", "6"]
    assert "the argument 'size' is not declared and not given" in read_expansion_error(content)


def test_conditions_select_their_elements() -> None:
    content = """<xacro:arg name="a" default="false"/><xacro:property name="n" value="0"/>
      <xacro:if value="$(arg a)"><x v="1"/></xacro:if><xacro:unless value="$(arg a)"><x v="2"/></xacro:unless>
      <xacro:if value="${n == 0}"><x v="3"/><xacro:if value="${n}"><x v="4"/></xacro:if></xacro:if>
      <xacro:if value="1"><x v="5"/></xacro:if><y><xacro:if value="true">text</xacro:if></y>"""
    assert expand_values(content) == ["2", "3", "5"]
    assert expand_values(content, a="true") == ["1", "3", "5"]
    y = expand_xacro(content).child("y")
    assert y is not None
    assert y.text == "text"
    assert "neither true nor false" in read_expansion_error('<xacro:if value="maybe"/>')


def test_macros_are_expanded() -> None:
    content = """<xacro:property name="outer" value="o"/>
      <xacro:macro name="m" params="a b:=2 c:='two words' d:=^ e:=^|5 f=${1+1}"><x v="${a} ${b} ${c} ${d} ${e} ${f}"/>
      </xacro:macro>
      <xacro:property name="d" value="D"/><xacro:m a="1"/><xacro:property name="e" value="E"/>
      <xacro:m a="${outer}" b="B"/>
      <xacro:call macro="m" a="${'x'}"/>"""
    assert expand_values(content) == ["1 2 two words D 5 2", "o B two words D E 2", "x 2 two words D E 2"]


def test_macro_parameters_have_their_scope() -> None:
    content = """<xacro:property name="p" value="out"/><xacro:macro name="m" params="">
      <xacro:property name="p" value="in"/><x v="${p}"/><xacro:property name="q" value="${p}" scope="parent"/>
      <xacro:property name="g" value="${p}" scope="global"/></xacro:macro><xacro:m/><x v="${p} ${q} ${g}"/>"""
    assert expand_values(content) == ["in", "out in in"]


def test_block_parameters_are_inserted() -> None:
    content = """<xacro:macro name="m" params="*one **rest"><a><xacro:insert_block name="one"/></a>
      <b><xacro:insert_block name="rest"/></b></xacro:macro><xacro:property name="p" value="7"/>
      <xacro:m><x v="${p}"/><many><x v="2"/><x v="3"/></many></xacro:m>
      <xacro:property name="kept"><x v="4"/><x v="${p}"/></xacro:property><c><xacro:insert_block name="kept"/></c>"""
    expanded = expand_xacro(content)
    values_by_tag = {node.tag: [child.get("v") for child in node.children] for node in expanded.children}
    assert values_by_tag == {"a": ["7"], "b": ["2", "3"], "c": ["4", "7"]}
    assert "requires the block '**rest'" in read_expansion_error(
        content.replace("<many>", "<!--").replace("</many>", "-->")
    )


def test_finite_macro_recursion_is_expanded() -> None:
    content = """<xacro:macro name="count" params="n"><xacro:if value="${n > 0}"><x v="${n}"/>
      <xacro:count n="${n - 1}"/></xacro:if></xacro:macro><xacro:count n="40"/>"""
    assert expand_values(content) == [str(n) for n in range(40, 0, -1)]


def test_element_and_attribute_tags_are_expanded() -> None:
    content = """<xacro:element xacro:name="${'x'}" v="1"/><x><xacro:attribute name="${'v'}" value="${1 + 1}"/></x>"""
    assert expand_values(content) == ["1", "2"]


def test_xacro_includes_are_read(tmp_path: Path) -> None:
    (tmp_path / "package.xml").write_text("<package><name>bot</name></package>")
    (tmp_path / "sub").mkdir()
    start = '<robot xmlns:xacro="x">'
    (tmp_path / "sub" / "wheel.xacro").write_text(
        f'{start}<xacro:property name="radius" value="0.2"/><xacro:macro name="wheel" params="n">'
        '<xacro:inner n="${n}"/></xacro:macro>'
        '<xacro:macro name="inner" params="n"><x v="${n} ${radius}"/></xacro:macro>'
        '<xacro:include filename="more.xacro"/></robot>'
    )
    (tmp_path / "sub" / "more.xacro").write_text(f'{start}<x v="more"/></robot>')
    (tmp_path / "limits.yaml").write_text("joint: {upper: !degrees 180, names: [a, b]}\nsize: 3\n")
    main = str(tmp_path / "main.xacro")
    for filename in ("sub/wheel.xacro", "$(find bot)/sub/wheel.xacro", f"{tmp_path}/sub/wheel.xacro", "sub/whe*.xacro"):
        expanded = expand_xacro(f'<xacro:include filename="{filename}"/><xacro:wheel n="1"/>', main)
        assert [node.get("v") for node in expanded.children] == ["more", "1 0.2"]
    with_namespace = """<xacro:include filename="sub/wheel.xacro" ns="w"/><xacro:property name="radius" value="9"/>
      <xacro:w.wheel n="1"/><x v="${radius} ${w.radius}"/><xacro:include filename="none.xacro" optional="true"/>"""
    assert [node.get("v") for node in expand_xacro(with_namespace, main).children] == ["more", "1 0.2", "9 0.2"]
    with_yaml = """<xacro:property name="l" value="${xacro.load_yaml('$(find bot)/limits.yaml')}"/>
      <x v="${l.joint.upper == pi} ${l['joint']['names'][1]} ${load_yaml('limits.yaml').size}"/>"""
    assert [node.get("v") for node in expand_xacro(with_yaml, main).children] == ["True b 3"]


def test_error_in_a_macro_has_its_location() -> None:
    content = '<xacro:macro name="m" params="">\n<x v="${1/0}"/></xacro:macro>\n<xacro:m/>'
    message = read_expansion_error(content)
    assert message.startswith("<text>:2: '${1/0}': division by zero")
    assert "in macro 'm' called at <text>:3" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<xacro:nobody/>", "unknown macro 'nobody'"),
        ('<x v="${nobody}"/>', "undefined name 'nobody'"),
        ('<x v="$(nonsense a)"/>', "unknown substitution '$(nonsense …)': arg, find"),
        ('<x v="$(env NOPE)"/>', "environment variable 'NOPE' is not set"),
        ('<x v="$(find nope)"/>', "package 'nope' not found"),
        ('<x v="$(find ../etc)"/>', "not found"),
        ('<xacro:property value="1"/>', "has no name"),
        ('<xacro:property name="1a" value="1"/>', "invalid property name '1a'"),
        ('<xacro:property name="__a" value="1"/>', "invalid property name '__a'"),
        ('<xacro:property name="a" value="${a}"/><x v="${a}"/>', "'a' is defined by itself"),
        ('<xacro:property name="a" value="${b}"/><xacro:property name="b" value="${a}"/><x v="${a}"/>', "by itself"),
        ('<xacro:macro name="m" params="a"/><xacro:m/>', "requires the parameter 'a'"),
        ('<xacro:macro name="m" params="a"/><xacro:m a="1" b="2"/>', "no parameter 'b' (parameters: a)"),
        ('<xacro:macro name="m" params=""/><xacro:m><y/></xacro:m>', "does not accept the block <y>"),
        ('<xacro:macro name="m" params="a a"/>', "duplicate parameter 'a'"),
        ('<xacro:macro name="m" params="a:=\'open"/>', "invalid params"),
        ('<xacro:insert_block name="b"/>', "unknown block 'b'"),
        ('<xacro:include filename="/etc/passwd"/>', "outside the allowed folders"),
        ('<xacro:include filename="../../../../../../../etc/passwd"/>', "'../../../../../../../etc/passwd'"),
        ('<xacro:include filename="none.xacro"/>', "no such file"),
        ("<x v=\"${xacro.load_yaml('/etc/passwd')}\"/>", "outside the allowed folders"),
        ("<x v=\"${xacro.error('stop', 'here')}\"/>", "stop here"),
        ('<xacro:macro name="m" params=""><xacro:m/></xacro:macro><xacro:m/>', "nested more than"),
        ('<xacro:macro name="m" params=""><y><xacro:m/></y></xacro:macro><xacro:m/>', "nested more than"),
        (
            '<xacro:macro name="a" params="n"><xacro:if value="${n}"><xacro:a n="${n - 1}"/><xacro:a n="${n - 1}"/>'
            '<xacro:a n="${n - 1}"/></xacro:if><y a="" b="" c=""/></xacro:macro><xacro:a n="30"/>',
            "more than 100000 elements",
        ),
        (
            '<xacro:property name="a0" value="xxxxxxxxxx"/>'
            + "".join(f'<xacro:property name="a{i + 1}" value="{f"${{a{i}}}" * 10}"/>' for i in range(9))
            + '<x v="${a9}"/>',
            "too long",
        ),
    ],
)
def test_faulty_xacro_is_refused(content: str, message: str) -> None:
    assert message in read_expansion_error(content)
    assert read_expansion_error(content).startswith("<text>:1:")


def test_yaml_files_are_limited_in_location_and_size(tmp_path: Path) -> None:
    main = str(tmp_path / "main.xacro")
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
    )
    for name, text, message in (
        ("bomb.yaml", bomb, "too long"),
        ("self.yaml", "&a [*a]", "too long"),
        ("code.yaml", "!!python/object/apply:os.system ['true']", "not valid YAML"),
        ("bad.yaml", "a: [", "line 1 is not valid YAML"),
        ("deep.yaml", "[" * 5000, "nested brackets"),
        ("steps.yaml", "- " * 5000, "not valid YAML"),
        ("large.yaml", "a: " + "x" * 300_000, "more than"),
        ("unit.yaml", "a: !degrees x", "undefined name 'x'"),
        ("data.txt", "a: 1", "not a .yaml file"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(DescriptionError) as caught:
            expand_xacro(f"<x v=\"${{xacro.load_yaml('{name}')}}\"/>", main)
        assert message in str(caught.value), name
    (tmp_path / "loop.xacro").write_text('<robot xmlns:xacro="x"><xacro:include filename="loop.xacro"/></robot>')
    with pytest.raises(DescriptionError, match="cycle"):
        expand_xacro('<xacro:include filename="loop.xacro"/>', main)


def test_excessive_expansion_of_empty_macros_is_refused() -> None:
    macros = "".join(
        f'<xacro:macro name="m{i}" params="">{f"<xacro:m{i - 1}/>" * 10}</xacro:macro>' for i in range(1, 12)
    )
    message = read_expansion_error(f'<xacro:macro name="m0" params=""></xacro:macro>{macros}<xacro:m11/>')
    assert "visits more than" in message


# -- complete robots ---------------------------------------------------------------------------------------------------
def test_xacro_robot_uses_its_arguments(tmp_path: Path) -> None:
    text = urdf(
        """<xacro:arg name="wheels" default="2"/><xacro:property name="n" value="$(arg wheels)"/>
        <xacro:macro name="wheel" params="i"><xacro:if value="${i > 0}"><link name="w${i}"><inertial>
          <mass value="${0.5 * i}"/><inertia ixx="${2/5*i}" iyy="1" izz="1"/></inertial></link>
          <joint name="j${i}" type="continuous"><parent link="base"/><child link="w${i}"/>
          <origin rpy="0 0 ${pi/2}"/></joint><xacro:wheel i="${i - 1}"/></xacro:if></xacro:macro>
        <link name="base"/><xacro:wheel i="${n}"/>""".replace("<xacro:arg", '<xacro:arg xmlns:xacro="x"')
    )
    for count in (2, 4):
        model = load_model(text, arguments={"wheels": str(count)})
        assert len(model.links) == count + 1
        assert model.mass == pytest.approx(sum(0.5 * i for i in range(1, count + 1)))
    assert load_model(text).joints[0].T_parent_child.yaw == pytest.approx(math.pi / 2)
    unknown = load_model(text, arguments={"legs": "2"})
    assert any("'legs' is given" in warning.message for warning in unknown.warnings)
    file = tmp_path / "r.urdf.xacro"
    file.write_text(text.replace("</robot>", "<oops/></robot>"))
    assert [str(warning) for warning in load_model(file).warnings] == [f"{file}:6: unknown element <oops> in <robot>"]


def test_xacro_file_of_macros_only_is_refused() -> None:
    with pytest.raises(DescriptionError, match="no robot, only macros"):
        load_model(urdf('<xacro:macro name="m" params=""><link name="a"/></xacro:macro>'))


# -- constructs of common robot packages -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'%s_%d' % ('a', 2)", "a_2"),
        ("'%.3f' % (1 / 3)", "0.333"),
        ("[k + str(v) for k, v in {'a': 1, 'b': 2}.items()]", ["a1", "b2"]),
        ("sum(x * x for x in [1, 2, 3])", 14),
        ("any(x > 2 for x in [1, 2, 3])", True),
    ],
)
def test_common_python_expressions_have_their_values(text: str, expected: object) -> None:
    assert evaluate_expression(text) == expected


def test_root_can_use_arguments_declared_below() -> None:
    """The packages of Universal Robots use this form; xacro of ROS requires the argument."""
    text = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="$(arg name)">
      <xacro:arg name="name" default="arm"/><link name="a"/></robot>"""
    assert load_model(text).name == "arm"
    assert load_model(text, arguments={"name": "leg"}).name == "leg"
    with pytest.raises(DescriptionError, match="'name' is not declared"):
        load_model(text.replace('<xacro:arg name="name" default="arm"/>', ""))


def test_eval_substitution_has_arguments_and_functions() -> None:
    content = """<xacro:arg name="n" default="3"/><xacro:arg name="kind" default="big"/>
      <x v="$(eval n * 2)"/><x v="$(eval arg('kind') == 'big' and (n + (1)) > 3)"/><x v="$(anon cam)"/>"""
    assert expand_values(content) == ["6", "True", "cam_anonymous"]


def test_tags_without_prefix_are_read_with_a_warning() -> None:
    text = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="r"><property name="h" value="0.25"/>
      <property name="" value="1"/>
      <macro name="leg" params="n"><link name="leg_${n}"><visual><geometry><sphere radius="${h}"/></geometry></visual>
      </link></macro><leg n="1"/></robot>"""
    model = load_model(text)
    assert [link.name for link in model.links] == ["leg_1"]
    assert sum("current xacro requires the prefix" in warning.message for warning in model.warnings) == 3


def test_single_quote_is_a_parameter_default() -> None:
    quotes = "'" * 3
    content = f'<xacro:macro name="m" params="a:={quotes} b:=2"><x v="${{b}}"/></xacro:macro><xacro:m/>'
    assert expand_values(content) == ["2"]


def test_unclosed_brackets_end_in_an_error(tmp_path: Path) -> None:
    (tmp_path / "deep.yaml").write_text("[" * 100_000)
    (tmp_path / "r.xacro").write_text(
        """<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="r"><xacro:property name="p"
        value="${xacro.load_yaml('deep.yaml')}"/><link name="${p}"/></robot>"""
    )
    with pytest.raises(DescriptionError, match="nested brackets"):
        load_model(tmp_path / "r.xacro")
