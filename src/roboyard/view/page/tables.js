// Nodes and topics with their rates, and the log.

import { make } from "./panels.js";

const MOST_LINES = 500;

export class GraphPanel {
  constructor(panel) {
    this.panel = panel;
    this.before = new Map();
    this.filter = make("input", { type: "search", placeholder: "filter" });
    this.filter.setAttribute("aria-label", "filter topics");
    this.nodes = make("table");
    this.topics = make("table");
    panel.append(make("div", { className: "row" }, this.filter), make("h3", { textContent: "Topics" }), this.topics,
      make("h3", { textContent: "Nodes" }), this.nodes);
    this.filter.addEventListener("input", () => this.draw());
  }

  update(graph) {
    this.graph = graph;
    this.rates = new Map();
    for (const [name, , count, last] of graph.topics) {
      const seen = this.before.get(name) || [];
      if (!seen.length || seen[seen.length - 1][1] !== last || seen[seen.length - 1][0] !== count) seen.push([count, last]);
      while (seen.length > 6) seen.shift();
      this.before.set(name, seen);
      const [first, end] = [seen[0], seen[seen.length - 1]];
      if (end[1] > first[1] && end[0] > first[0]) this.rates.set(name, (end[0] - first[0]) / (end[1] - first[1]));
    }
    this.draw();
  }

  draw() {
    if (!this.graph || !this.panel.classList.contains("open")) return;
    const wanted = this.filter.value.toLowerCase();
    const hidden = ([name]) => !wanted && name.includes("/_action/"); // shown when they are asked for
    const rows = this.graph.topics.filter((row) => !hidden(row) && `${row[0]} ${row[1]}`.toLowerCase().includes(wanted)).sort((a, b) => (a[0] < b[0] ? -1 : 1));
    this.topics.replaceChildren(head("topic", "Hz", "count"), ...rows.map(([name, type, count, , from, to, , told]) => {
      const rate = told ?? this.rates.get(name);
      const row = make("tr", {}, make("td", { textContent: name }), number(rate ? rate.toPrecision(3) : "–"), number(count));
      row.title = `${type}\nfrom ${from.join(", ") || "nobody"}\nto ${to.join(", ") || "nobody"}`;
      return row;
    }));
    this.nodes.replaceChildren(head("node", "", ""), ...this.graph.nodes.map(([name, kind, level, text]) => {
      const row = make("tr", {}, make("td", { textContent: name }),
        make("td", { textContent: level, className: { ok: "good", warn: "warn", error: "bad" }[level] || "soft" }), make("td", { textContent: text }));
      row.title = kind;
      return row;
    }));
  }
}

function head(...names) {
  return make("tr", {}, ...names.map((name, k) => make("th", { textContent: name, className: k && name ? "number" : "" })));
}

function number(value) {
  return make("td", { textContent: value, className: "number" });
}

export class LogPanel {
  constructor(panel) {
    this.panel = panel;
    this.level = make("select", {}, ...["debug", "info", "warn", "error"].map((name) => make("option", { textContent: name, selected: name === "info" })));
    this.level.setAttribute("aria-label", "least level shown");
    this.node = make("input", { type: "search", placeholder: "node or text" });
    this.node.setAttribute("aria-label", "filter the log");
    this.lines = make("div", { className: "log" });
    panel.append(make("div", { className: "row" }, this.level, this.node), this.lines);
    this.all = [];
    for (const input of [this.level, this.node]) input.addEventListener("input", () => this.redraw());
  }

  clear() {
    this.all = [];
    this.redraw();
  }

  add(record) {
    this.all.push(record);
    if (this.all.length > MOST_LINES) this.all.shift();
    if (!this.fits(record)) return;
    this.lines.prepend(line(record));
    while (this.lines.children.length > MOST_LINES) this.lines.lastChild.remove();
  }

  fits({ level, node, text }) {
    const order = ["debug", "info", "warn", "error", "fatal"];
    return order.indexOf(level) >= order.indexOf(this.level.value) && `${node} ${text}`.toLowerCase().includes(this.node.value.toLowerCase());
  }

  redraw() {
    this.lines.replaceChildren(...this.all.filter((record) => this.fits(record)).reverse().map(line));
  }
}

function line({ t, level, node, text }) {
  return make("div", { className: level, textContent: `${t.toFixed(2)}  ${node}: ${text}` });
}
