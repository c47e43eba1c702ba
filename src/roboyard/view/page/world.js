// Things of the world and faults.

import { make } from "./panels.js";

const FAULTS = [
  ["sensor_dropout", "sensor: lidar, duration: 5 s"], ["sensor_frozen", "sensor: lidar, duration: 5 s"], ["sensor_delay", "sensor: lidar, delay: 0.3 s, duration: 5 s"],
  ["sensor_noise", "sensor: lidar, stddev: 0.1, duration: 5 s"], ["joint_locked", "joint: left_wheel_joint, duration: 5 s"],
  ["joint_degraded", "joint: left_wheel_joint, effort_scale: 0.3, duration: 5 s"], ["power_loss", "duration: 3 s"],
  ["low_friction_area", "pose: [1, 0, 0], size: [1, 1], friction: 0.1, duration: 20 s"], ["message_loss", "topic: /scan, probability: 0.5, duration: 5 s"],
];

const CLIPS = ["wave", "inspect", "sit", "idle", "pick_up", "put_down", "turn"];

export class WorldPanel {
  constructor(panel, page) {
    this.page = page;
    this.shape = make("select", { id: "shape" }, ...["box", "cylinder", "sphere"].map((name) => make("option", { textContent: name })));
    this.shape.setAttribute("aria-label", "shape");
    this.size = ["length", "width", "height"].map((name) => {
      const input = make("input", { type: "number", min: 0.01, max: 20, step: 0.05, value: 0.4, title: `${name} [m]` });
      input.setAttribute("aria-label", name);
      return input;
    });
    this.put = make("button", { textContent: "Put in: press on the floor", className: "primary" });
    this.put.addEventListener("click", () => page.tools.choose("put"));
    this.list = make("table");
    this.kind = make("select", { id: "fault-kind" }, ...FAULTS.map(([name]) => make("option", { textContent: name })));
    this.kind.setAttribute("aria-label", "kind of fault");
    this.values = make("input", { id: "fault-values", value: FAULTS[0][1], spellcheck: false });
    this.values.setAttribute("aria-label", "of the fault");
    this.kind.addEventListener("change", () => { this.values.value = FAULTS.find(([name]) => name === this.kind.value)[1]; });
    this.begin = make("button", { textContent: "Let it begin", className: "danger", id: "fault-begin" });
    this.begin.addEventListener("click", () => this.inject());
    this.active = make("div");
    panel.append(make("h3", { textContent: "Put a thing in" }), make("div", { className: "row" }, this.shape, ...this.size), make("div", { className: "row" }, this.put),
      make("h3", { textContent: "Things" }), this.list,
      make("h3", { textContent: "Faults" }), make("div", { className: "row" }, this.kind), make("div", { className: "row" }, this.values), make("div", { className: "row" }, this.begin),
      make("p", { className: "soft", textContent: "As an entry of a scenario's faults, without its time. Without `duration` it lasts until it is ended." }), this.active);
    const named = (select, about) => { select.setAttribute("aria-label", about); return select; };
    const act = (name, what) => { const made = make("button", { textContent: name }); made.addEventListener("click", what); return made; };
    this.people = named(make("select", { id: "person" }), "person");
    this.clip = named(make("select", { id: "clip" }, ...CLIPS.map((name) => make("option", { textContent: name }))), "what they do");
    this.peoplePart = make("div", {}, make("h3", { textContent: "People" }), make("div", { className: "row" }, this.people, act("Walk: press on the floor", () => page.tools.choose("walk"))),
      make("div", { className: "row" }, this.clip, act("Do it", () => page.tools.say("animate", { person: this.people.value, clip: this.clip.value }, `${this.people.value}: ${this.clip.value}`))));
    this.task = named(make("select", { id: "task" }), "task");
    this.taskPart = make("div", {}, make("h3", { textContent: "Tasks" }), make("div", { className: "row" }, this.task, act("Pursue", () => {
      const [node, goal] = JSON.parse(this.task.value);
      page.tools.say("task", { node, goal }, `one more task: ${goal}`);
    })));
    panel.append(this.peoplePart, this.taskPart);
    page.tools.person = () => this.people.value;
    page.tools.shape = () => ({ shape: this.shape.value, size: this.size.map((input) => Number(input.value)) });
  }

  update(things, people, tasks) {
    const fill = (select, part, options) => {
      part.style.display = options.length ? "" : "none";
      const told = JSON.stringify(options);
      if (select.dataset.told === told) return;
      select.dataset.told = told;
      select.replaceChildren(...options.map(([name, value]) => new Option(name, value)));
    };
    fill(this.people, this.peoplePart, people.map((name) => [name, name]));
    fill(this.task, this.taskPart, Object.entries(tasks).flatMap(([node, goals]) => goals.map((goal) => [goal, JSON.stringify([node, goal])])));
    if (things.join() === this.before) return;
    this.before = things.join();
    this.list.replaceChildren(...things.map((name) => {
      const remove = make("button", { textContent: "Remove" });
      remove.addEventListener("click", () => this.page.tools.say("remove", { name }, `${name} removed`));
      return make("tr", {}, make("td", { textContent: name }), make("td", { className: "number" }, remove));
    }));
    if (!things.length) this.list.append(make("tr", {}, make("td", { className: "soft", textContent: "none that can be moved" })));
  }

  async inject() {
    const fault = `{type: ${this.kind.value}, ${this.values.value}}`;
    const answer = await this.page.socket.ask("fault", { fault });
    if (answer.op === "refused") { this.page.notice(answer.what, true); return; }
    const end = make("button", { textContent: "End" });
    const row = make("div", { className: "row" }, make("span", { textContent: `${this.kind.value} ${this.values.value}` }), end);
    end.addEventListener("click", async () => {
      const over = await this.page.socket.ask("end_fault", { name: answer.name });
      if (over.op === "refused") this.page.notice("it is over already");
      row.remove();
    });
    this.active.append(row);
  }
}
