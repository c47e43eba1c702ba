// Driving by held keys, by a stick on the screen, or by a gamepad.  What is not held is let go at once, and a page that is
// not looked at lets go of everything.

import { make, takesKeys } from "./panels.js";

const KEYS = {
  KeyW: [1, 0, 0], ArrowUp: [1, 0, 0], KeyS: [-1, 0, 0], ArrowDown: [-1, 0, 0],
  KeyA: [0, 0, 1], ArrowLeft: [0, 0, 1], KeyD: [0, 0, -1], ArrowRight: [0, 0, -1], KeyQ: [0, 1, 0], KeyE: [0, -1, 0],
};
const PERIOD = 50; // between two messages while something is held [ms]
const DEAD = 0.12; // of a gamepad's stick

export class DrivePanel {
  constructor(panel, page) {
    this.page = page;
    this.panel = panel;
    this.held = new Set();
    this.stick = [0, 0];
    this.moving = false;
    this.speed = slider("speed", 0.05, 2, 0.05, 0.5, "m/s");
    this.turn = slider("turn", 0.1, 3, 0.1, 1, "rad/s");
    this.pad = make("div", { className: "stick", id: "stick", title: "drag to drive; let go to stop" }, make("i"));
    this.pad.tabIndex = 0;
    this.told = make("output", { className: "soft", id: "drive-told", textContent: "nothing is held" });
    this.operator = make("input", { type: "checkbox", id: "operator" });
    this.link = make("output", { id: "link", className: "soft" });
    this.gamepad = make("output", { className: "soft", textContent: "none; press one of its buttons" });
    panel.append(
      this.who = make("h3", { textContent: "Drive" }),
      this.pad, make("div", { className: "row" }, this.told), this.speed.row, this.turn.row,
      make("p", { className: "soft", textContent: "Hold w a s d or the arrows (q and e: sideways) while this panel is open; letting go stops." }),
      make("h3", { textContent: "Operator" }),
      make("label", { className: "row" }, this.operator, "I am there: tell the robot that the link holds"),
      make("p", { className: "soft", textContent: "While this is on, a page that is closed is an operator who is lost: a robot with a tracker comes home." }),
      make("div", { className: "row" }, "Link: ", this.link),
      make("h3", { textContent: "Gamepad" }), make("div", { className: "row" }, this.gamepad),
      make("p", { className: "soft", textContent: "Left stick drives while a shoulder button is held." }),
    );
    document.addEventListener("keydown", (event) => this.key(event, true));
    document.addEventListener("keyup", (event) => this.key(event, false));
    for (const name of ["blur", "pagehide"]) window.addEventListener(name, () => this.letGo());
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.letGo(); });
    this.pad.addEventListener("pointerdown", (event) => { this.pad.setPointerCapture(event.pointerId); this.point(event); });
    this.pad.addEventListener("pointermove", (event) => { if (this.pad.hasPointerCapture(event.pointerId)) this.point(event); });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) this.pad.addEventListener(name, () => this.point(null));
    this.operator.addEventListener("change", () => this.say("operator", { on: this.operator.checked ? 1 : 0 }));
    setInterval(() => this.tick(), PERIOD);
    setInterval(() => this.measure(), 1000);
  }

  get robot() {
    return this.page.tools.robots[this.page.tools.robot.value];
  }

  // Whether keys drive now.
  get listening() {
    return this.page.panels.isOpen("drive") && this.page.mine && Boolean(this.robot?.drive);
  }

  update() {
    const robot = this.robot;
    this.who.textContent = robot?.drive ? `Drive ${this.page.tools.robot.value}` : "Nothing here can be driven";
    this.pad.classList.toggle("off", !(robot?.drive && this.page.mine));
    this.operator.disabled = !(robot?.drive && this.page.mine);
    if (!this.page.mine) { this.operator.checked = false; this.letGo(); }
  }

  key(event, down) {
    if (!KEYS[event.code]) return;
    if (!down) {
      if (this.held.delete(event.code)) this.tick(true);
      return;
    }
    if (!this.listening || takesKeys(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (!event.repeat) { this.held.add(event.code); this.tick(true); }
  }

  point(event) {
    if (!event || !this.page.mine || !this.robot?.drive) this.stick = [0, 0];
    else {
      const box = this.pad.getBoundingClientRect();
      const reach = box.width / 2;
      let x = (event.clientX - box.left - reach) / (reach - 18);
      let y = (box.top + reach - event.clientY) / (reach - 18);
      const length = Math.hypot(x, y);
      if (length > 1) { x /= length; y /= length; }
      this.stick = [y, -x];
    }
    const knob = this.pad.firstElementChild;
    knob.style.transform = `translate(${-this.stick[1] * 52}px, ${-this.stick[0] * 52}px)`;
    this.tick(true);
  }

  letGo() {
    this.held.clear();
    if (this.stick[0] || this.stick[1]) this.point(null);
    this.tick(true);
  }

  pads() {
    for (const pad of navigator.getGamepads?.() ?? []) {
      if (!pad) continue;
      const deadman = pad.buttons[4]?.pressed || pad.buttons[5]?.pressed;
      this.gamepad.textContent = `${pad.id.slice(0, 40)}${deadman ? " · held" : ""}`;
      const axis = (k) => (Math.abs(pad.axes[k] ?? 0) < DEAD ? 0 : pad.axes[k]);
      return deadman ? [-axis(1), 0, -axis(0)] : null;
    }
    return null;
  }

  wanted() {
    let [forward, left, turn] = this.pads() ?? [0, 0, 0];
    for (const code of this.held) {
      forward += KEYS[code][0];
      left += KEYS[code][1];
      turn += KEYS[code][2];
    }
    forward += this.stick[0];
    turn += this.stick[1];
    const clip = (value) => Math.min(Math.max(value, -1), 1);
    const [speed, rate] = [this.speed.value(), this.turn.value()];
    return [clip(forward) * speed, clip(left) * speed, clip(turn) * rate];
  }

  // Says what is wanted: again and again while something is held, once when it is let go.
  tick(changed = false) {
    if (this.operator.checked) this.page.socket.say("beat");
    const able = this.page.mine && this.robot?.drive;
    const v = able ? this.wanted() : [0, 0, 0];
    const moves = v.some((value) => value !== 0);
    if (moves || this.moving) this.say("drive", { v });
    if (moves || this.moving || changed) {
      this.told.textContent = moves ? `${v[0].toFixed(2)} m/s${v[1] ? `, ${v[1].toFixed(2)} m/s left` : ""}, ${v[2].toFixed(2)} rad/s` : "nothing is held";
    }
    this.moving = moves;
  }

  say(op, values) {
    this.page.socket.say(op, { space: this.robot?.space ?? "", ...values });
  }

  async measure() {
    const start = performance.now();
    const answer = await this.page.socket.ask("ping");
    const took = performance.now() - start;
    this.link.textContent = answer.op === "pong" ? `${took.toFixed(0)} ms` : "lost";
    this.link.className = answer.op !== "pong" ? "bad" : took < 150 ? "good" : "warn";
  }
}

function slider(name, low, high, step, value, unit) {
  const input = make("input", { type: "range", min: low, max: high, step, value, id: `drive-${name}` });
  input.setAttribute("aria-label", name);
  const told = make("output", { textContent: `${value} ${unit}` });
  input.addEventListener("input", () => { told.textContent = `${input.value} ${unit}`; });
  return { row: make("div", { className: "row" }, make("span", { textContent: name, className: "word" }), input, told), value: () => Number(input.value) };
}
