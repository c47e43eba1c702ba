// The list of displays: what can be seen, each with a switch.

import { colourOf } from "./drawings.js";

const GROUPS = [
  ["Sensors", /LaserScan|PointCloud2|\/Range|WrenchStamped|ContactsState/],
  ["Maps", /OccupancyGrid|GridMap|Octomap/],
  ["Plans", /\/Path|DisplayTrajectory|FootstepPlan|PolygonStamped|GaitState/],
  ["Cameras", /\/Image|CompressedImage/],
];
const OFF = /\/truth\/|CompressedImage|\/Image|odom|ContactsState|WrenchStamped|PersonBody|octomap_full|floor_map|cell_map|octomap_point|projected/;
const short = (type) => type.split("/").pop().replace("WithCovarianceStamped", "±").replace("Stamped", "").replace("OccupancyGrid", "").replace("LaserScan", "");

export class Displays extends EventTarget {
  constructor(element, filter, socket) {
    super();
    this.element = element;
    this.socket = socket;
    this.chosen = new Map(); // by name: whether it is on
    this.rows = new Map();
    this.sections = new Map();
    filter.addEventListener("input", () => this.filter(filter.value));
  }

  section(title) {
    if (!this.sections.has(title)) {
      const section = document.createElement("section");
      const heading = document.createElement("h3");
      heading.textContent = title;
      section.append(heading);
      this.sections.set(title, section);
      const order = ["Scene", ...GROUPS.map(([name]) => name), "Poses"];
      const next = order.slice(order.indexOf(title) + 1).map((name) => this.sections.get(name)).find(Boolean);
      this.element.insertBefore(section, next || null);
    }
    return this.sections.get(title);
  }

  row(title, key, name, note, colour, on, change) {
    const label = document.createElement("label");
    label.className = "display";
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = on;
    box.dataset.display = key;
    box.addEventListener("change", () => { this.chosen.set(key, box.checked); change(box.checked); });
    const text = document.createElement("span");
    text.className = "name";
    text.textContent = name;
    text.title = `${name} ${note}`;
    const small = document.createElement("small");
    small.textContent = note;
    label.append(box);
    if (colour !== null) {
      const swatch = document.createElement("i");
      swatch.style.background = `#${colour.toString(16).padStart(6, "0")}`;
      label.append(swatch);
    }
    label.append(text, small);
    this.section(title).append(label);
    this.rows.set(key, { label, box });
  }

  // Something of the scene's own.
  scene(key, name, on, change) {
    this.row("Scene", key, name, "", null, on, change);
  }

  // Topics of a frame "graph": [name, type, count, last, publishers, subscribers, drawn, rate if it is known].
  update(topics) {
    for (const [name, type, count, , , , drawn] of topics) {
      if (!drawn) continue;
      if (!this.rows.has(name)) {
        const title = (GROUPS.find(([, pattern]) => pattern.test(type)) || ["Poses"])[0];
        const on = this.chosen.get(name) ?? !OFF.test(`${name} ${type}`);
        this.row(title, name, name, short(type), colourOf(name), on, (want) => this.want(name, want));
        if (on) this.want(name, true);
      }
      this.rows.get(name).label.classList.toggle("silent", count === 0);
    }
  }

  want(name, on) {
    this.socket.say("want", { topic: name, on });
    this.dispatchEvent(new CustomEvent("want", { detail: { name, on } }));
  }

  // After the connection has come anew.
  again() {
    for (const [name, { box }] of this.rows) if (name.startsWith("/") && box.checked) this.want(name, true);
  }

  isOn(name) {
    return this.rows.get(name)?.box.checked ?? false;
  }

  // Forgets the topics of the run that was shown before.
  forget() {
    for (const [name, { label }] of [...this.rows]) {
      if (!name.startsWith("/")) continue;
      label.remove();
      this.rows.delete(name);
    }
  }

  filter(text) {
    for (const [name, { label }] of this.rows) label.style.display = name.toLowerCase().includes(text.toLowerCase()) ? "" : "none";
  }
}
