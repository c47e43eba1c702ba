// What cameras see, as cards over the scene.

import { bytes } from "./socket.js";

export class Pictures {
  constructor(element) {
    this.element = element;
    this.cards = new Map();
  }

  show(head) {
    if (!this.cards.has(head.topic)) {
      const figure = document.createElement("figure");
      const image = document.createElement("img");
      image.alt = `picture of ${head.topic}`;
      const caption = document.createElement("figcaption");
      caption.textContent = head.topic;
      figure.append(image, caption);
      this.element.append(figure);
      this.cards.set(head.topic, { figure, image });
    }
    const { image } = this.cards.get(head.topic);
    const before = image.src;
    image.src = URL.createObjectURL(new Blob([bytes(head.parts[0])], { type: head.type }));
    if (before) URL.revokeObjectURL(before);
  }

  remove(topic) {
    this.cards.get(topic)?.figure.remove();
    this.cards.delete(topic);
  }
}
