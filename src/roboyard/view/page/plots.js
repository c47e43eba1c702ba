// Numbers of messages over time.

import { make } from "./panels.js";
import { floats } from "./socket.js";

const COLOURS = ["#e5484d", "#3b82f6", "#12a594", "#f76b15", "#8e4ec6", "#46a758", "#d6409f", "#0894b3"];
const MOST = 6000;

export class PlotPanel {
  constructor(panel, page) {
    this.page = page;
    this.panel = panel;
    this.curves = new Map(); // by "topic field"
    this.topic = make("select", { id: "plot-topic" });
    this.topic.setAttribute("aria-label", "topic");
    this.field = make("select", { id: "plot-field" });
    this.field.setAttribute("aria-label", "field");
    this.add = make("button", { textContent: "Add", className: "primary", id: "plot-add" });
    this.span = make("select", {}, ...[5, 10, 30, 60, 300].map((value) => make("option", { value, textContent: `${value} s`, selected: value === 10 })));
    this.span.setAttribute("aria-label", "time shown");
    this.canvas = make("canvas", { className: "plot", width: 312, height: 230 });
    this.legend = make("div");
    panel.append(make("div", { className: "row" }, this.topic), make("div", { className: "row" }, this.field, this.add),
      make("div", { className: "row" }, make("span", { textContent: "last" }), this.span), this.canvas, this.legend);
    this.topic.addEventListener("change", () => this.ask());
    this.add.addEventListener("click", () => this.begin(this.topic.value, this.field.value));
    page.socket.on("curves", (head) => this.take(head));
    setInterval(() => this.draw(), 100);
  }

  update(topics) {
    const names = topics.filter(([, , count]) => count > 0).map(([name]) => name).sort();
    if (names.join() === this.before) return;
    this.before = names.join();
    const chosen = this.topic.value;
    this.topic.replaceChildren(...names.map((name) => new Option(name, name)));
    if (names.includes(chosen)) this.topic.value = chosen;
    else this.ask();
  }

  async ask() {
    const topic = this.topic.value;
    if (!topic) return;
    this.field.replaceChildren(new Option("waiting for a message", ""));
    this.add.disabled = true;
    const answer = await this.page.socket.ask("fields", { topic });
    if (topic !== this.topic.value) return;
    const fields = answer.fields ?? [];
    this.field.replaceChildren(...fields.map((name) => new Option(name, name)));
    this.add.disabled = !fields.length;
  }

  begin(topic, field) {
    const key = `${topic} ${field}`;
    if (!field || this.curves.has(key)) return;
    const colour = COLOURS.find((one) => ![...this.curves.values()].some((curve) => curve.colour === one)) ?? COLOURS[0];
    const value = make("b");
    const remove = make("button", { textContent: "×", title: "remove" });
    const swatch = make("i", { className: "swatch" });
    swatch.style.background = colour;
    const row = make("div", { className: "row curve" }, swatch, make("span", { textContent: key }), value, remove);
    remove.addEventListener("click", () => { this.curves.delete(key); row.remove(); this.page.socket.say("plot", { topic, field, on: false }); });
    this.legend.append(row);
    this.curves.set(key, { topic, field, colour, value, points: [] });
    this.page.socket.say("plot", { topic, field, on: true });
  }

  again() {
    for (const { topic, field } of this.curves.values()) this.page.socket.say("plot", { topic, field, on: true });
  }

  take(head) {
    head.curves.forEach(([topic, field], index) => {
      const curve = this.curves.get(`${topic} ${field}`);
      if (!curve) return;
      const rows = floats(head.parts[index]);
      for (let k = 0; k < rows.length; k += 2) {
        const last = curve.points[curve.points.length - 1];
        if (last && rows[k] < last[0]) curve.points = [];
        curve.points.push([rows[k], rows[k + 1]]);
      }
      if (curve.points.length > MOST) curve.points.splice(0, curve.points.length - MOST);
    });
  }

  draw() {
    if (!this.panel.classList.contains("open")) return;
    const { canvas } = this;
    const scale = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth || 312, 230];
    if (canvas.width !== width * scale) { canvas.width = width * scale; canvas.height = height * scale; }
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const style = getComputedStyle(document.documentElement);
    const [ink, line] = [style.getPropertyValue("--soft"), style.getPropertyValue("--line")];
    context.clearRect(0, 0, width, height);
    const end = this.page.time;
    const start = end - Number(this.span.value);
    let low = Infinity;
    let high = -Infinity;
    for (const { points } of this.curves.values()) {
      for (const [t, v] of points) if (t >= start && Number.isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
    }
    if (!(low <= high)) { low = -1; high = 1; }
    if (high - low < 1e-6) { low -= 0.5; high += 0.5; }
    const room = 0.08 * (high - low);
    low -= room;
    high += room;
    const left = 52;
    const bottom = height - 18;
    const x = (t) => left + ((t - start) / (end - start)) * (width - left - 4);
    const y = (v) => bottom - ((v - low) / (high - low)) * (bottom - 6);
    context.font = "10.5px system-ui, sans-serif";
    context.fillStyle = ink;
    context.strokeStyle = line;
    context.lineWidth = 1;
    const step = nice((high - low) / 5);
    context.textAlign = "right";
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) {
      context.beginPath();
      context.moveTo(left, y(v));
      context.lineTo(width, y(v));
      context.stroke();
      context.fillText(Number(v.toPrecision(4)), left - 5, y(v) + 3.5);
    }
    const tick = nice((end - start) / 4);
    context.textAlign = "center";
    for (let t = Math.ceil(start / tick) * tick; t <= end; t += tick) if (t >= 0) context.fillText(`${Number(t.toFixed(2))} s`, Math.min(x(t), width - 16), height - 4);
    context.lineWidth = 1.6;
    for (const { points, colour, value } of this.curves.values()) {
      context.strokeStyle = colour;
      context.beginPath();
      let drawing = false;
      for (const [t, v] of points) {
        if (t < start || !Number.isFinite(v)) { drawing = false; continue; }
        if (drawing) context.lineTo(x(t), y(v)); else context.moveTo(x(t), y(v));
        drawing = true;
      }
      context.stroke();
      const last = points[points.length - 1];
      value.textContent = last ? Number(last[1].toPrecision(5)) : "–";
    }
  }
}

function nice(raw) {
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10);
}
