// Parameters of nodes, and behaviour trees as they stand.

import { make } from "./panels.js";

export class ParameterPanel {
  constructor(panel, page) {
    this.page = page;
    this.node = make("select", { id: "parameter-node" });
    this.node.setAttribute("aria-label", "node");
    this.table = make("div");
    panel.append(make("div", { className: "row" }, this.node), this.table);
    this.node.addEventListener("change", () => this.load());
    this.panel = panel;
  }

  update(nodes) {
    const names = nodes.map(([name]) => name);
    if (names.join() === this.before) return;
    this.before = names.join();
    const chosen = this.node.value;
    this.node.replaceChildren(...names.map((name) => new Option(name, name)));
    if (names.includes(chosen)) this.node.value = chosen;
    this.load();
  }

  async load() {
    const answer = await this.page.socket.ask("parameters", { node: this.node.value });
    if (answer.op === "refused" || answer.node !== this.node.value) return;
    this.table.replaceChildren(...answer.parameters.map((one) => this.row(one)));
    if (!answer.parameters.length) this.table.append(make("p", { className: "soft", textContent: "It has none." }));
  }

  row(one) {
    const input = one.choices.length
      ? make("select", {}, ...one.choices.map((choice) => make("option", { textContent: choice, selected: choice === one.value })))
      : typeof one.value === "boolean"
        ? make("select", {}, ...["true", "false"].map((word) => make("option", { textContent: word, selected: word === String(one.value) })))
        : make("input", { value: typeof one.value === "string" ? one.value : JSON.stringify(one.value), spellcheck: false });
    input.disabled = one.fixed;
    input.dataset.parameter = one.name;
    input.setAttribute("aria-label", one.name);
    input.addEventListener("change", async () => {
      const answer = await this.page.socket.ask("set_parameter", { node: this.node.value, name: one.name, value: read(input.value, one.value) });
      if (answer.op === "refused") this.page.notice(answer.what, true);
      else this.page.notice(`${one.name} is set`);
      this.load();
    });
    const row = make("div", { className: "row parameter" }, make("span", { textContent: one.unit ? `${one.name} [${one.unit}]` : one.name }), input);
    row.title = `${one.about}${one.fixed ? "\nfixed while the node runs" : ""}`;
    return row;
  }
}

// A text as the kind of value that is there.
function read(text, before) {
  if (typeof before === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const MARKS = [["RUNNING", "warn"], ["SUCCESS", "good"], ["FAILURE", "bad"]];

export class TreePanel {
  constructor(panel, page) {
    this.panel = panel;
    this.page = page;
    this.texts = "";
  }

  update(trees) {
    const told = JSON.stringify(trees);
    if (told === this.texts) return;
    this.texts = told;
    const parts = Object.entries(trees).flatMap(([node, text]) => [
      make("h3", { textContent: node }),
      make("pre", {}, ...text.split("\n").map((line) => {
        const mark = MARKS.find(([word]) => line.endsWith(`[${word}]`));
        return make("div", { textContent: line, className: mark ? mark[1] : "" });
      })),
    ]);
    this.panel.replaceChildren(...(parts.length ? parts : [make("p", { className: "soft", textContent: "No behaviour tree runs here." })]));
  }
}
