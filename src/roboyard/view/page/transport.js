// The bar at the bottom: pause, step, pace; of a recording also its time.

import { make, takesKeys } from "./panels.js";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 0];

export class Transport {
  constructor(element, socket) {
    this.socket = socket;
    this.kind = "live";
    this.paused = false;
    this.dragging = false;
    this.play = make("button", { id: "play", textContent: "Pause", title: "space" });
    this.step = make("button", { id: "step", textContent: "Step", title: "one tenth of a second" });
    this.speed = make("select", { id: "speed" }, ...SPEEDS.map((value) => make("option", { value, textContent: value ? `${value} ×` : "fastest", selected: value === 1 })));
    this.speed.setAttribute("aria-label", "pace");
    this.slider = make("input", { id: "slider", type: "range", min: 0, max: 1, step: 0.01, value: 0 });
    this.slider.setAttribute("aria-label", "time");
    this.output = make("output", { id: "position" });
    this.reset = make("button", { id: "reset", textContent: "Begin anew" });
    this.stop = make("button", { id: "end", textContent: "End", className: "danger" });
    element.append(this.play, this.step, this.speed, this.slider, this.output, this.reset, this.stop);
    this.play.addEventListener("click", () => this.toggle());
    this.step.addEventListener("click", () => this.say("step", { seconds: 0.1 }));
    this.speed.addEventListener("change", () => this.say("rate", { rate: Number(this.speed.value) }));
    this.slider.addEventListener("input", () => { this.dragging = true; this.say("seek", { time: Number(this.slider.value) }); });
    this.slider.addEventListener("change", () => { this.dragging = false; });
    this.reset.addEventListener("click", () => this.say("reset"));
    this.stop.addEventListener("click", () => this.say("end"));
    document.addEventListener("keydown", (event) => {
      if (event.code === "Space" && !takesKeys(event.target) && event.target.tagName !== "BUTTON") {
        event.preventDefault();
        this.toggle();
      }
    });
  }

  async say(op, values = {}) {
    const answer = await this.socket.ask(op, values);
    if (answer.op === "refused") this.socket.tell("notice", { text: answer.what, bad: true });
  }

  toggle() {
    this.say(this.paused ? "resume" : "pause");
  }

  // What is shown: {kind, duration, start}.
  about(run) {
    this.kind = run.kind;
    this.start = run.start || 0;
    const recorded = run.kind === "recording";
    this.slider.min = this.start;
    this.slider.max = this.start + (run.duration || 0);
    this.slider.disabled = !recorded;
    this.slider.style.visibility = recorded || run.duration ? "visible" : "hidden";
    this.reset.style.display = this.stop.style.display = recorded ? "none" : "";
    this.duration = run.duration;
  }

  update({ t, paused, rate }) {
    this.paused = paused;
    this.play.textContent = paused ? "Play" : "Pause";
    this.step.disabled = !paused;
    if (document.activeElement !== this.speed && SPEEDS.includes(rate)) this.speed.value = String(rate);
    if (!this.dragging) this.slider.value = t;
    this.output.textContent = `${t.toFixed(2)}${this.duration ? ` of ${(this.start + this.duration).toFixed(1)}` : ""} s`;
  }

  allow(on) {
    for (const button of [this.play, this.reset, this.stop, this.speed]) button.disabled = !on;
    if (!on) this.step.disabled = true;
  }
}
