// What the mouse does on the stage besides turning it: goals, poses, way points, things put in and moved.

import * as THREE from "./three/three.module.min.js";
import { arrow, flat, ribbon } from "./drawings.js";
import { make, takesKeys } from "./panels.js";
import { discard } from "./stage.js";

const LIFT = 0.06;
const TOOLS = [
  ["look", "Look", "turn, shift and zoom (Esc)", () => true],
  ["goal", "Goal", "press where the robot shall go, drag where it shall look (G)", (robot) => robot?.goal],
  ["follow", "Way points", "press and drag for each, then Send (W)", (robot) => robot?.follow],
  ["initial", "Pose", "press where the robot is, drag where it looks (P)", (robot) => robot?.initial],
  ["put", "Put in", "press where the thing of the panel World shall stand", () => true],
  ["walk", "Walk", "press where the person of the panel World shall go", (robot, things, people) => people.length],
  ["move", "Move", "drag a thing that nothing holds", (robot, things) => things.length],
];
const KEYS = { KeyG: "goal", KeyW: "follow", KeyP: "initial" };

export class Tools {
  constructor(element, page) {
    this.page = page;
    this.element = element;
    this.tool = "look";
    this.robots = {};
    this.things = [];
    this.people = [];
    this.points = [];
    this.person = () => "";
    this.shape = () => ({ shape: "box", size: [0.4, 0.4, 0.4] });
    this.buttons = new Map();
    for (const [key, name, about] of TOOLS) {
      const button = make("button", { textContent: name, title: about, data: { tool: key } });
      button.addEventListener("click", () => this.choose(key));
      this.buttons.set(key, button);
      element.append(button);
    }
    this.robot = make("select", { id: "robot", title: "robot that is meant" });
    this.robot.setAttribute("aria-label", "robot");
    this.robot.addEventListener("change", () => this.refresh());
    this.send = make("button", { textContent: "Send", className: "primary", id: "send-points" });
    this.send.addEventListener("click", () => this.follow());
    this.cancel = make("button", { textContent: "Cancel goal", className: "danger", id: "cancel-goal" });
    this.cancel.addEventListener("click", () => this.say("cancel"));
    element.append(this.robot, this.send, this.cancel);
    const canvas = page.stage.canvas;
    canvas.addEventListener("pointerdown", (event) => this.down(event), { capture: true });
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    document.addEventListener("keydown", (event) => {
      if (takesKeys(event.target) || event.ctrlKey || event.metaKey) return;
      if (event.code === "Escape") this.choose("look");
      else if (KEYS[event.code] && !page.drive?.listening && !this.buttons.get(KEYS[event.code]).disabled) this.choose(KEYS[event.code]);
    });
    this.ghost = new THREE.Mesh(arrow(), flat(0x00a896, 0.9));
    this.ghost.visible = false;
    page.stage.scene.add(this.ghost);
    this.refresh();
  }

  get space() {
    return this.robots[this.robot.value]?.space ?? "";
  }

  // What can be done, of a frame "abilities".
  update({ robots, things, people }) {
    this.robots = robots;
    this.things = things;
    this.people = people;
    const names = Object.keys(robots);
    const before = this.robot.value;
    if (names.join() !== [...this.robot.options].map((option) => option.value).join()) {
      this.robot.replaceChildren(...names.map((name) => new Option(name, name)));
      if (names.includes(before)) this.robot.value = before;
    }
    this.robot.style.display = names.length > 1 ? "" : "none";
    this.refresh();
  }

  refresh() {
    const robot = this.robots[this.robot.value];
    for (const [key, , , can] of TOOLS) this.buttons.get(key).disabled = key !== "look" && !(this.page.mine && can(robot, this.things, this.people));
    if (this.buttons.get(this.tool).disabled) this.choose("look");
    for (const [key, button] of this.buttons) button.classList.toggle("on", key === this.tool);
    this.send.style.display = this.tool === "follow" && this.points.length ? "" : "none";
    this.send.textContent = `Send ${this.points.length}`;
    this.cancel.style.display = robot?.cancel && this.page.mine ? "" : "none";
  }

  choose(key) {
    this.tool = key;
    this.start = null;
    this.ghost.visible = false;
    if (key !== "follow") this.clear();
    this.page.stage.controls.enabled = key === "look";
    this.page.stage.canvas.style.cursor = key === "look" ? "" : "crosshair";
    this.refresh();
    this.page.stage.change();
  }

  clear() {
    this.points = [];
    if (this.way) discard(this.way);
    this.way = null;
    this.page.stage.change();
  }

  down(event) {
    if (this.tool === "look" || event.button !== 0) return;
    event.stopImmediatePropagation();
    this.page.stage.canvas.setPointerCapture(event.pointerId);
    if (this.tool === "move") {
      this.held = this.thingAt(event);
      if (!this.held) return;
    }
    this.start = this.page.stage.floorAt(event, this.held ? this.held.floor : 0);
    this.yaw = null;
    if (this.start) this.show(event);
  }

  drag(event) {
    if (this.start) this.show(event);
  }

  show(event) {
    const at = this.page.stage.floorAt(event, this.held ? this.held.floor : 0);
    if (!at) return;
    if (this.held) {
      this.held.to = at.clone().sub(this.start);
      this.held.body.position.copy(this.held.from).add(this.held.to);
    } else {
      const way = at.clone().sub(this.start);
      if (way.length() > 0.08) this.yaw = Math.atan2(way.y, way.x);
      this.ghost.position.copy(this.start).setZ(LIFT);
      this.ghost.rotation.z = this.yaw ?? 0;
      const size = Math.max(0.5, Math.min(way.length(), 1.5));
      this.ghost.scale.set(size, size, size);
      this.ghost.visible = true;
    }
    this.page.stage.change();
  }

  up() {
    if (!this.start) return;
    const { x, y } = this.start;
    this.start = null;
    this.ghost.visible = false;
    this.page.stage.change();
    if (this.tool === "move") { this.drop(); return; }
    if (this.tool === "walk") {
      this.say("walk", { person: this.person(), clip: "walk", at: [x, y] }, `${this.person()} walks`);
      this.choose("look");
      return;
    }
    if (this.tool === "put") { this.put(x, y, this.yaw ?? 0); return; }
    const pose = [x, y, this.yaw ?? this.heading(x, y)];
    if (this.tool === "follow") {
      this.points.push(pose);
      this.drawWay();
      this.refresh();
      return;
    }
    this.say(this.tool, { poses: [pose] }, { goal: "goal sent", initial: "pose told" }[this.tool]);
    this.choose("look");
  }

  // A click without a drag: look the way that leads there.
  heading(x, y) {
    const body = this.page.bodies.bodyOf(this.robot.value);
    return body ? Math.atan2(y - body.position.y, x - body.position.x) : 0;
  }

  drawWay() {
    if (this.way) discard(this.way);
    this.way = new THREE.Group();
    const flatPoints = this.points.flatMap(([x, y]) => [x, y, LIFT]);
    if (this.points.length > 1) this.way.add(new THREE.Mesh(ribbon(flatPoints, 0.03), flat(0x00a896, 0.6)));
    for (const [x, y, yaw] of this.points) {
      const mark = new THREE.Mesh(arrow(), flat(0x00a896, 0.9));
      mark.position.set(x, y, LIFT);
      mark.rotation.z = yaw;
      mark.scale.setScalar(0.5);
      this.way.add(mark);
    }
    this.page.stage.scene.add(this.way);
    this.page.stage.change();
  }

  async follow() {
    const poses = this.points;
    if (await this.say("follow", { poses }, `${poses.length} way points sent`)) this.choose("look");
  }

  async put(x, y, yaw) {
    const thing = this.shape();
    const height = thing.shape === "sphere" ? thing.size[0] : thing.size[2];
    await this.say("put", { ...thing, at: [x, y, height / 2 + 0.002], yaw }, "put in");
  }

  thingAt(event) {
    const hits = this.page.stage.rayAt(event).intersectObject(this.page.bodies.root, true);
    const hit = hits.find(({ object }) => object.visible);
    const name = hit?.object.userData.model;
    if (!name || !this.things.includes(name)) {
      this.page.notice(name ? `${name} cannot be moved` : "nothing is there", true);
      return null;
    }
    const body = this.page.bodies.bodyOf(name);
    return { name, body, from: body.position.clone(), floor: hit.point.z, to: new THREE.Vector3() };
  }

  async drop() {
    const { name, body, from, to } = this.held;
    this.held = null;
    if (to.length() < 0.005) return;
    const turn = new THREE.Euler().setFromQuaternion(body.quaternion, "ZYX");
    await this.say("move", { name, at: [from.x + to.x, from.y + to.y, from.z + 0.001], yaw: turn.z }, `${name} moved`);
  }

  async say(op, values = {}, done = "") {
    const answer = await this.page.socket.ask(op, { space: this.space, ...values });
    if (answer.op === "refused") this.page.notice(answer.what, true);
    else if (done) this.page.notice(done);
    return answer.op !== "refused";
  }
}
