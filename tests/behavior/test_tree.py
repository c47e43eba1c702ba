"""Trees from XML: blackboards, time, custom nodes, versions, substitution, and errors of invalid files."""

import pickle
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from roboyard.behavior import (
    Blackboard,
    ExecutionError,
    GeneratorActionNode,
    InvalidTreeError,
    MockConfig,
    NodeFactory,
    NodeStatus,
    SyncActionNode,
    Tree,
    TreeNode,
    TreeNodeError,
    input_port,
    load_tree,
    load_trees,
    output_port,
    read_tree,
    register_converter,
)
from roboyard.behavior.tree_drawing import tree_to_svg, tree_to_text

MS = 1_000_000


def xml(body: str, *more: str, version: str = "4") -> str:
    trees = "".join(f'<BehaviorTree ID="T{k}">{text}</BehaviorTree>' for k, text in enumerate(more, 1))
    root = f'<root BTCPP_format="{version}" main_tree_to_execute="Main">'
    return f'{root}<BehaviorTree ID="Main">{body}</BehaviorTree>{trees}</root>'


def blackboard_after_tick(body: str, *more: str, **entries: object) -> Blackboard:
    """The blackboard after one tick."""
    blackboard = Blackboard()
    for name, value in entries.items():
        blackboard.set(name, value)
    read_tree(xml(body, *more), blackboard=blackboard).tick_once()
    return blackboard


# -- blackboards ---------------------------------------------------------------------------------------------------
def test_subtree_reads_only_remapped_entries() -> None:
    with pytest.raises(ExecutionError, match="Variable not found: x"):
        blackboard_after_tick('<SubTree ID="T1"/>', '<Script code="y := x"/>', x=1)


def test_entries_are_remapped_into_and_out_of_subtrees() -> None:
    blackboard = blackboard_after_tick(
        '<SubTree ID="T1" inside="{outside}" answer="{result}"/>', '<Script code="answer := inside * 2"/>', outside=4
    )
    assert blackboard.get("result") == 8.0


def test_autoremapped_subtrees_see_all_but_private_entries() -> None:
    blackboard = blackboard_after_tick('<SubTree ID="T1" _autoremap="true"/>', '<Script code="a := 1; _b := 2"/>')
    assert blackboard.get("a") == 1
    assert blackboard.entry("_b") is None


def test_numeric_constants_reach_subtrees_as_numbers() -> None:
    blackboard = blackboard_after_tick(
        '<SubTree ID="T1" n="4" w="4a" out="{out}"/>', '<Script code="out := w .. n + 1 - 1"/>'.replace(" + 1 - 1", "")
    )
    assert blackboard.get("out") == "4a4"


def test_at_sign_addresses_the_root_blackboard() -> None:
    blackboard = blackboard_after_tick('<SubTree ID="T1"/>', '<SubTree ID="T2"/>', '<Script code="@far := 5"/>')
    assert blackboard.get("far") == 5


def test_entry_type_is_fixed_by_the_first_typed_port() -> None:
    with pytest.raises(InvalidTreeError, match="initially created with type"):
        read_tree(xml('<Sequence><Sleep msec="{t}"/><Repeat num_cycles="{t}"><AlwaysSuccess/></Repeat></Sequence>'))


def test_loop_decorator_takes_each_value_in_turn() -> None:
    loop = '<LoopDouble queue="1;2;3.5" value="{v}"><Script code="s := s + v"/></LoopDouble>'
    tree = read_tree(xml(f'<Sequence><Script code="s := 0.5"/>{loop}</Sequence>'))
    statuses = [tree.tick_once() for _ in range(4)]
    assert statuses == [NodeStatus.RUNNING] * 3 + [NodeStatus.SUCCESS]
    assert tree.blackboard.get("s") == 7.0


# -- time ----------------------------------------------------------------------------------------------------------
def test_sleep_and_delay_use_tick_times() -> None:
    tree = read_tree(xml('<Sequence><Sleep msec="100"/><Delay delay_msec="50"><AlwaysSuccess/></Delay></Sequence>'))
    times = [0, 99, 100, 149, 150]
    assert [tree.tick_once(t * MS) for t in times] == [NodeStatus.RUNNING] * 4 + [NodeStatus.SUCCESS]
    assert tree.next_timer_ns is None


def test_timeout_halts_its_child_between_ticks() -> None:
    tree = read_tree(xml('<Timeout msec="100"><Sleep name="nap" msec="1000"/></Timeout>'))
    assert [tree.tick_once(t * MS) for t in (0, 99, 100)] == [
        NodeStatus.RUNNING,
        NodeStatus.RUNNING,
        NodeStatus.FAILURE,
    ]
    assert tree.next_timer_ns is None
    assert tree.find("nap")[0].status is NodeStatus.IDLE


def test_saved_tree_keeps_running_timers() -> None:
    text = xml('<Sequence><Sleep msec="100"/><Script code="x := 1"/></Sequence>')
    tree = read_tree(text)
    tree.tick_once(0)
    other = read_tree(text)
    other.load_state(pickle.loads(pickle.dumps(tree.save_state())))
    assert other.next_timer_ns == 100 * MS
    assert other.tick_once(100 * MS) is NodeStatus.SUCCESS
    with pytest.raises(TreeNodeError, match="is not this one"):
        read_tree(xml("<AlwaysSuccess/>")).load_state(tree.save_state())


# -- custom nodes ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Place:
    x: float
    y: float


def parse_place(text: str) -> Place:
    x, y = text.split(";")
    return Place(float(x), float(y))


register_converter(Place, parse_place)


class Drive(GeneratorActionNode):
    ports: ClassVar = {"to": input_port(Place), "way": output_port(float)}

    def run(self) -> Generator[None, None, NodeStatus]:
        goal = self.get_input("to")
        try:
            for _ in range(2):
                yield
            self.set_output("way", goal.x + goal.y)
            return NodeStatus.SUCCESS
        finally:
            self.blackboard.set("left", True)


def custom_factory() -> NodeFactory:
    factory = NodeFactory()
    factory.register(Drive)
    factory.register_condition(
        "Near",
        lambda node: NodeStatus.SUCCESS if node.get_input("d") < 1.0 else NodeStatus.FAILURE,
        {"d": input_port(float)},
    )
    factory.register_enum("HOME", 7)
    return factory


def test_generator_actions_run_over_several_ticks() -> None:
    tree = read_tree(xml('<Drive to="1;2" way="{w}"/>'), custom_factory())
    assert [tree.tick_once() for _ in range(3)] == [NodeStatus.RUNNING, NodeStatus.RUNNING, NodeStatus.SUCCESS]
    assert tree.blackboard.get("w") == 3.0
    tree.tick_once()
    with pytest.raises(TreeNodeError, match="generator"):
        tree.save_state()
    tree.blackboard.unset("left")
    tree.halt()
    assert tree.blackboard.get("left") is True
    tree.save_state()


def test_values_of_custom_types_pass_through_the_blackboard() -> None:
    tree = read_tree(xml('<Sequence><Drive to="{goal}"/></Sequence>'), custom_factory())
    tree.blackboard.set("goal", Place(3.0, 4.0))
    assert tree.tick_once() is NodeStatus.RUNNING
    with pytest.raises(InvalidTreeError, match="no Place"):
        read_tree(xml('<Drive to="here"/>'), custom_factory())


def test_registered_functions_and_enums_are_usable() -> None:
    tree = read_tree(xml('<Sequence><Script code="d := HOME - 6.5"/><Near d="{d}"/></Sequence>'), custom_factory())
    assert tree.tick_once() is NodeStatus.SUCCESS


def test_substitution_rules_replace_nodes() -> None:
    factory = custom_factory()
    rules = '{"TestNodeConfigs": {"T": {"return_status_script": "n > 1 ? SUCCESS : FAILURE", "async_delay": 20}},'
    factory.substitute_from_json(rules + '"SubstitutionRules": {"dri*": "T"}}')
    factory.substitute("Near", MockConfig(post_script="n := n + 1"))
    tree = read_tree(
        xml('<Sequence><Script code="n := 1"/><Near d="9"/><Drive name="drive" to="1;2"/></Sequence>'), factory
    )
    assert [tree.tick_once(t * MS) for t in (0, 19, 20)] == [NodeStatus.RUNNING, NodeStatus.RUNNING, NodeStatus.SUCCESS]
    with pytest.raises(InvalidTreeError, match="no substitution rules"):
        factory.substitute_from_json("[]")


def test_synchronous_action_must_not_return_running() -> None:
    factory = NodeFactory()
    factory.register_action("Lazy", lambda _: NodeStatus.RUNNING)
    with pytest.raises(ExecutionError, match="MUST never return RUNNING"):
        read_tree(xml("<Sequence><Lazy/></Sequence>"), factory).tick_once()
    factory.register_action("Odd", lambda _: "done")  # type: ignore[arg-type, return-value]
    with pytest.raises(ExecutionError, match="is no status"):
        read_tree(xml("<Sequence><Odd/></Sequence>"), factory).tick_once()


# -- versions ------------------------------------------------------------------------------------------------------
def test_version_3_trees_keep_their_semantics() -> None:
    body = '<Sequence><SetBlackboard output_key="here" value="3"/><SubTree ID="T1" there="here"/><T1/></Sequence>'
    check = (
        '<SequenceStar><BlackboardCheckInt value_A="{there}" value_B="3" return_on_mismatch="FAILURE"><AlwaysSuccess/>'
    )
    tree = read_tree(xml(body.replace("<T1/>", ""), f"{check}</BlackboardCheckInt></SequenceStar>", version="3"))
    assert tree.tick_exactly_once() is NodeStatus.SUCCESS


def test_repeat_pauses_in_version_4_but_not_in_version_3() -> None:
    body = '<Repeat num_cycles="3"><AlwaysSuccess/></Repeat>'
    assert read_tree(xml(body, version="3")).tick_exactly_once() is NodeStatus.SUCCESS
    tree = read_tree(xml(body))
    assert [tree.tick_exactly_once() for _ in range(3)] == [NodeStatus.RUNNING, NodeStatus.RUNNING, NodeStatus.SUCCESS]
    assert read_tree(xml(body)).tick_once() is NodeStatus.SUCCESS


def test_version_3_uses_one_blackboard_if_declared() -> None:
    text = xml(
        '<SubTree ID="T1" __shared_blackboard="true"/>', '<SetBlackboard output_key="k" value="v"/>', version="3"
    )
    tree = read_tree(text)
    tree.tick_once()
    assert tree.blackboard.get("k") == "v"


# -- files ---------------------------------------------------------------------------------------------------------
def test_files_of_other_projects_are_read(external_data: Path) -> None:
    errors = {}
    for file in sorted((external_data / "bt").rglob("*.xml")):
        try:
            load_trees(file, mock=True)  # with Roboyard's leaves instead of Nav2's
            trees: list[Tree] = load_trees(file, NodeFactory(), mock=True)
        except InvalidTreeError as error:
            errors[file.name] = str(error)
            continue
        for tree in trees:
            for tick in range(3):
                tree.tick_once(tick * 100 * MS)
            tree.halt()
            assert all(node.status is NodeStatus.IDLE for node in tree.walk())
            assert tree.name in tree_to_svg(tree)
            assert len(tree_to_text(tree).splitlines()) == len(tree.nodes)
    # inputs for BehaviorTree.CPP's fuzzing: it refuses them as well
    assert errors.keys() == {"corpus2.xml", "corpus3.xml", "corpus4.xml"}


def test_included_files_are_read_and_cycles_refused(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(xml('<SubTree ID="B"/>').replace("<Beh", '<include path="b.xml"/><Beh', 1))
    (tmp_path / "b.xml").write_text(
        '<root BTCPP_format="4"><BehaviorTree ID="B"><AlwaysSuccess/></BehaviorTree></root>'
    )
    assert load_tree(tmp_path / "a.xml").tick_once() is NodeStatus.SUCCESS
    (tmp_path / "b.xml").write_text('<root BTCPP_format="4"><include path="b.xml"/></root>')
    with pytest.raises(InvalidTreeError, match=r"b\.xml:1: .*includes itself"):
        load_tree(tmp_path / "a.xml")
    (tmp_path / "b.xml").unlink()
    with pytest.raises(InvalidTreeError, match=r"a\.xml:1: there is no file b\.xml"):
        load_tree(tmp_path / "a.xml")


BOMB = '<!DOCTYPE r [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><root BTCPP_format="4"/>'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "is empty"),
        ("<root", "not well-formed"),
        (BOMB, "declares entities"),
        ("<tree/>", "root node called <root>"),
        (xml("<Sequenc><AlwaysSuccess/></Sequenc>"), "Node not recognized: Sequenc .perhaps Sequence"),
        (xml("<Sequence/>"), "1 or more children"),
        (xml("<Inverter/>"), "exactly 1 child"),
        (xml("<AlwaysSuccess><AlwaysSuccess/></AlwaysSuccess>"), "must not have any child"),
        (xml('<Sleep msec="soon"/>'), "port msec: 'soon' is no unsigned int"),
        (xml('<Sleep msec="-1"/>'), "out of bound"),
        (xml('<Sleep sec="1"/>'), r"no port \[sec\] .*msec"),
        (xml('<SubTree ID="Main"/>'), "Main → Main"),
        (xml('<SubTree ID="T1"/>', '<SubTree ID="T2"/>', '<SubTree ID="T1"/>'), "T1 → T2 → T1"),
        (xml('<SubTree ID="Nix"/>'), "Can't find a tree with name: Nix .*Main"),
        (xml('<Script code="x :="/>'), "Expected operand at position 4"),
        (xml('<AlwaysSuccess _skipIf="1 &lt;"/>'), "_skipIf: .*position 3"),
        (xml('<include path="other.xml"/>').replace("BehaviorTree", "include"), "Invalid <include>"),
        (
            xml("<Repeat><AlwaysSuccess/></Repeat>"),
            r"<Repeat>, port num_cycles: the port \[num_cycles\] is missing.*int",
        ),
        (xml('<SetBlackboard name="s" output_key="{a}"/>'), "<SetBlackboard> 's', port value: .*missing"),
        (xml('<SubTree ID="T1"/>', "<Sleep/>"), "<Sleep>, port msec: .*missing.*unsigned int"),
        (xml('<Switch2 variable="{a}" case_1="1" case_2="2"><AlwaysSuccess/></Switch2>'), "1 children .3 of them"),
        (xml('<AlwaysSuccess _post="a := 4 / (2 - 2)"/>'), "(?s)_post.*Division by zero at position 7"),
        (xml('<Script code="a := 1 / 0" name="s"/>'), "<Script> 's': Division by zero at position 7"),
        (xml("<IfThenElse><AlwaysSuccess/></IfThenElse>"), "1 children .2 to 3 of them"),
        (xml("<Sequence>" * 119 + "<AlwaysSuccess/>" + "</Sequence>" * 119), "nested more than"),
    ],
)
def test_invalid_trees_are_refused_with_the_location(text: str, error: str) -> None:
    with pytest.raises(InvalidTreeError, match=error) as caught:
        read_tree(text, NodeFactory(), source="my.xml")
    assert str(caught.value).startswith("my.xml")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ('<Script code="a := 0; b := 1 / a"/>', "Division by zero"),
        ('<AlwaysSuccess _while="x"/>', "(?s)_while: .*Variable not found: x"),
        ('<AlwaysSuccess _post="x = 1"/>', "(?s)_post: .*doesn't exist"),
    ],
)
def test_errors_in_a_tick_name_the_location(body: str, error: str) -> None:
    tree = read_tree(xml(f"<Sequence>{body}</Sequence>"), source="my.xml")
    with pytest.raises(ExecutionError, match=error) as caught:
        tree.tick_once()
    assert str(caught.value).startswith("my.xml:1")


def test_missing_ports_are_found_in_the_tick_if_not_strict() -> None:
    body = "<Repeat><AlwaysSuccess/></Repeat>"
    tree = read_tree(xml(body), source="my.xml", strict=False)  # as BehaviorTree.CPP has it
    with pytest.raises(ExecutionError, match=r"my.xml:1: <Repeat>: Missing parameter \[num_cycles\]"):
        tree.tick_once()
    read_tree(xml(f"<Sequence>{body}</Sequence>").replace("Repeat", "Foreign"), mock=True).tick_once()


class Greet(SyncActionNode):
    """Joins a word, an optional name and an end."""

    ports: ClassVar = {
        "word": input_port(str, doc="What to say"),
        "end": input_port(str, ""),
        "whom": input_port(str, optional=True),
    }
    texts: ClassVar[list[str]] = []

    def tick(self) -> NodeStatus:
        self.texts.append(
            self.get_input("word") + (self.get_input("whom") if "whom" in self.inputs else "") + self.get_input("end")
        )
        return NodeStatus.SUCCESS


def test_ports_without_default_are_required_unless_optional() -> None:
    factory = NodeFactory()
    factory.register(Greet)
    read_tree(xml('<Sequence><Greet word="a"/><Greet word="b" whom="c" end="!"/></Sequence>'), factory).tick_once()
    assert Greet.texts == ["a", "bc!"]
    with pytest.raises(
        InvalidTreeError, match=r"my.xml:1: <Greet>, port word: the port .word. is missing: What to say"
    ):
        read_tree(xml('<Greet whom="c"/>'), factory, source="my.xml")
    factory.substitute("Greet", MockConfig())
    assert read_tree(xml('<Greet whom="c"/>'), factory).tick_once() is NodeStatus.SUCCESS


def test_types_and_enums_are_registered_only_once() -> None:
    class Work(SyncActionNode):
        def tick(self: TreeNode) -> NodeStatus:
            return NodeStatus.SUCCESS

    factory = NodeFactory()
    factory.register(Work)
    with pytest.raises(InvalidTreeError, match="already registered"):
        factory.register(Work)
    with pytest.raises(InvalidTreeError, match="twice with different values"):
        factory.register_enum("A", 1) or factory.register_enum("A", 2)


@pytest.mark.parametrize(("msec", "ends"), [(0, "SUCCESS"), (200, "FAILURE"), (400, "SUCCESS")])
def test_timeout_of_zero_never_expires(msec: int, ends: str) -> None:
    tree = read_tree(xml(f'<Timeout msec="{msec}"><Sleep msec="300"/></Timeout>'))
    for tick in range(40):
        status = tree.tick_once(tick * 10_000_000)
        if status is not NodeStatus.RUNNING:
            break
    assert status.name == ends


def test_converter_applies_to_ports_declared_before() -> None:
    class Door:
        def __init__(self, text: str) -> None:
            self.number = int(text)

    class Knock(SyncActionNode):
        ports: ClassVar = {"door": input_port(Door, doc="a number")}

        def tick(self) -> NodeStatus:
            return NodeStatus.SUCCESS if self.get_input("door").number == 7 else NodeStatus.FAILURE

    factory = NodeFactory()
    factory.register(Knock)
    register_converter(Door, Door)
    assert read_tree(xml('<Knock door="7"/>'), factory).tick_once() is NodeStatus.SUCCESS
    with pytest.raises(InvalidTreeError, match=r"<Knock> 'early', port door: 'x' is no Door: a number"):
        read_tree(xml('<Knock door="x" name="early"/>'), factory)
