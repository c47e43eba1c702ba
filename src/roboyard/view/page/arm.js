// An arm's tool led by a gizmo: tried at once, planned, looked at as a ghost, followed.

import * as THREE from "./three/three.module.min.js";
import { TransformControls } from "./three/TransformControls.js";
import { make } from "./panels.js";

const COLOURS = { reachable: 0x30a46c, colliding: 0xf76b15, unreachable: 0xe5484d, "": 0x8b989e };

export class ArmPanel {
  constructor(panel, page, ghosts) {
    this.page = page;
    this.ghosts = ghosts;
    this.arms = {};
    this.state = "";
    const button = (text, id, act, className = "") => {
      const made = make("button", { textContent: text, id, className });
      made.addEventListener("click", act);
      return made;
    };
    this.robot = make("select", { id: "arm-robot" });
    this.robot.setAttribute("aria-label", "arm");
    this.robot.addEventListener("change", () => { this.hide(); this.refresh(); });
    this.grab = button("Lead the tool", "arm-grab", () => (this.shown ? this.hide() : this.show()), "primary");
    this.mode = button("Turn it", "arm-mode", () => this.setMode(this.gizmo.mode === "translate" ? "rotate" : "translate"));
    this.told = make("output", { id: "arm-state", className: "soft", textContent: "the tool is not led" });
    this.speed = make("input", { type: "range", min: 0.05, max: 1, step: 0.05, value: 0.5 });
    this.speed.setAttribute("aria-label", "share of full speed");
    this.plan = button("Plan", "arm-plan", () => this.ask({ pose: this.pose() }));
    this.execute = button("Execute", "arm-execute", () => this.follow(), "primary");
    this.halt = button("Stop", "arm-halt", () => this.say("halt"), "danger");
    this.named = make("select", { id: "arm-named" });
    this.named.setAttribute("aria-label", "named pose");
    this.planNamed = button("Plan", "arm-plan-named", () => this.ask({ named: this.named.value }));
    this.position = make("input", { type: "number", step: 0.005, value: 0.02, id: "grip-position", title: "position [m or rad]" });
    this.position.setAttribute("aria-label", "position of the fingers");
    this.grip = make("div", { className: "row" }, this.position, button("Move fingers", "grip", () => this.say("grip", {
      gripper: this.arms[this.robot.value]?.gripper, position: Number(this.position.value) }, "the fingers move")));
    this.gripTitle = make("h3", { textContent: "Gripper" });
    panel.append(make("h3", { textContent: "Arm" }), make("div", { className: "row" }, this.robot, this.grab, this.mode), make("div", { className: "row" }, this.told),
      make("h3", { textContent: "Motion" }), make("div", { className: "row" }, make("span", { textContent: "speed", className: "word" }), this.speed),
      make("div", { className: "row" }, this.plan, this.execute, this.halt),
      make("p", { className: "soft", textContent: "A plan is shown as a ghost; it is followed when it is executed." }),
      make("h3", { textContent: "Named poses" }), make("div", { className: "row" }, this.named, this.planNamed), this.gripTitle, this.grip);
    this.target = new THREE.Group();
    this.ball = new THREE.Mesh(new THREE.SphereGeometry(0.025, 20, 14), new THREE.MeshBasicMaterial({ color: COLOURS[""], transparent: true, opacity: 0.85 }));
    this.target.add(this.ball, new THREE.AxesHelper(0.12));
    this.target.visible = false;
    page.stage.scene.add(this.target);
    this.gizmo = new TransformControls(page.stage.camera, page.stage.canvas);
    this.gizmo.setSize(0.7);
    this.gizmo.addEventListener("change", () => page.stage.change());
    this.gizmo.addEventListener("dragging-changed", ({ value }) => { page.stage.controls.enabled = !value && page.tools.tool === "look"; });
    this.gizmo.addEventListener("objectChange", () => this.try());
    page.stage.scene.add(this.gizmo.getHelper());
    this.refresh();
  }

  // What arms there are, of a frame "abilities".
  update(arms) {
    this.arms = arms;
    const names = Object.keys(arms);
    if (names.join() !== [...this.robot.options].map((option) => option.value).join()) {
      this.robot.replaceChildren(...names.map((name) => new Option(name, name)));
      this.poses = null;
    }
    const arm = arms[this.robot.value];
    if (arm && this.poses !== arm.poses.join()) {
      this.poses = arm.poses.join();
      this.named.replaceChildren(...arm.poses.map((name) => new Option(name, name)));
    }
    if (this.shown && !arm) this.hide();
    this.refresh();
  }

  get shown() { return this.target.visible; }

  refresh() {
    const arm = this.arms[this.robot.value];
    const able = Boolean(arm) && this.page.mine;
    for (const element of [this.grab, this.halt]) element.disabled = !able;
    this.mode.disabled = !this.shown;
    this.plan.disabled = !able || !this.shown || this.state !== "reachable";
    this.execute.disabled = !able || !this.planned;
    this.planNamed.disabled = !able || !this.named.options.length;
    this.grab.textContent = this.shown ? "Let go" : "Lead the tool";
    this.grip.style.display = this.gripTitle.style.display = arm?.gripper ? "" : "none";
    if (!this.page.mine && this.shown) this.hide();
  }

  show() {
    const arm = this.arms[this.robot.value];
    if (!arm) return;
    this.page.place(this.target, arm.at);
    this.target.visible = true;
    this.gizmo.attach(this.target);
    this.setMode("translate");
    this.try();
    this.refresh();
  }

  hide() {
    this.target.visible = false;
    this.gizmo.detach();
    this.ghosts.remove(`own ${this.robot.value}`);
    this.planned = false;
    this.told.textContent = "the tool is not led";
    this.refresh();
    this.page.stage.change();
  }

  setMode(mode) {
    this.gizmo.setMode(mode);
    this.mode.textContent = mode === "translate" ? "Turn it" : "Shift it";
  }

  pose() {
    const { position: p, quaternion: q } = this.target;
    return [p.x, p.y, p.z, q.w, q.x, q.y, q.z];
  }

  // Has the pose tried: one question at a time, and the newest pose next.
  async try() {
    this.planned = false;
    if (this.trying) { this.again = true; return; }
    this.trying = true;
    do {
      this.again = false;
      const answer = await this.page.socket.ask("ik", { robot: this.robot.value, pose: this.pose() });
      this.colour(answer.op === "refused" ? "" : answer.state, answer.what ?? answer.why);
    } while (this.again && this.shown);
    this.trying = false;
    this.refresh();
  }

  colour(state, why = "") {
    this.state = state;
    this.ball.material.color.set(COLOURS[state]);
    this.told.textContent = { reachable: "reachable", colliding: "something would be touched", unreachable: "out of reach" }[state] ?? why;
    this.told.className = { reachable: "good", colliding: "warn", unreachable: "bad" }[state] ?? "soft";
    if (state !== "reachable") this.ghosts.remove(`own ${this.robot.value}`);
    this.refresh();
    this.page.stage.change();
  }

  async ask(what) {
    this.told.textContent = "planning …";
    const answer = await this.page.socket.ask("plan", { robot: this.robot.value, speed: Number(this.speed.value), ...what });
    this.planned = answer.op !== "refused";
    this.told.textContent = this.planned ? `a plan of ${answer.duration.toFixed(1)} s` : answer.what;
    this.told.className = this.planned ? "good" : "bad";
    this.refresh();
  }

  async follow() {
    this.planned = false;
    if (await this.say("execute", {}, "the arm moves")) {
      this.told.textContent = "following the plan";
      setTimeout(() => this.ghosts.remove(`own ${this.robot.value}`), 500);
    }
    this.refresh();
  }

  async say(op, values = {}, done = "") {
    const answer = await this.page.socket.ask(op, { robot: this.robot.value, ...values });
    if (answer.op === "refused") this.page.notice(answer.what, true);
    else if (done) this.page.notice(done);
    return answer.op !== "refused";
  }
}
