// The panels on the right: one is open; each is a module that fills its element.

export class Panels {
  constructor(tabs, element) {
    this.tabs = tabs;
    this.element = element;
    this.all = new Map();
  }

  add(key, title) {
    const button = document.createElement("button");
    button.textContent = title;
    button.dataset.panel = key;
    button.addEventListener("click", () => this.open(key));
    const panel = document.createElement("section");
    panel.className = "panel";
    panel.id = `panel-${key}`;
    this.tabs.append(button);
    this.element.append(panel);
    this.all.set(key, { button, panel });
    if (this.all.size === 1) this.open(key);
    return panel;
  }

  open(key) {
    for (const [name, { button, panel }] of this.all) {
      button.classList.toggle("on", name === key);
      panel.classList.toggle("open", name === key);
    }
  }

  isOpen(key) {
    return this.all.get(key)?.panel.classList.contains("open") ?? false;
  }

  hide(key, hidden) {
    const entry = this.all.get(key);
    if (!entry) return;
    entry.button.style.display = hidden ? "none" : "";
    if (hidden && this.isOpen(key)) this.open([...this.all.keys()].find((name) => this.all.get(name).button.style.display !== "none"));
  }
}

// Whether keys that are pressed there mean what is written or chosen there.
export function takesKeys(element) {
  return element.matches?.("select, textarea, input:not([type=checkbox])") ?? false;
}

// An element with properties and children.
export function make(tag, values = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(values)) {
    if (key === "data") Object.assign(element.dataset, value);
    else element[key] = value;
  }
  element.append(...children);
  return element;
}
