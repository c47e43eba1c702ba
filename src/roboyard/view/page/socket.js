// The socket: text is JSON, bytes are a JSON head with arrays behind it (see wire.py).

const token = location.hash.slice(1);

export class Socket extends EventTarget {
  constructor() {
    super();
    this.open = false;
    this.waiting = new Map();
    this.number = 0;
    this.connect();
  }

  connect() {
    const socket = new WebSocket(`ws://${location.host}/socket?token=${encodeURIComponent(token)}`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => { this.open = true; this.tell("open", {}); };
    socket.onclose = () => {
      const was = this.open;
      this.open = false;
      this.tell("closed", { was });
      setTimeout(() => this.connect(), 1000);
    };
    socket.onmessage = (event) => this.take(event.data);
    this.socket = socket;
  }

  take(data) {
    if (typeof data === "string") {
      const said = JSON.parse(data);
      const answer = said.id !== undefined && said.id !== null && this.waiting.get(said.id);
      if (answer) {
        this.waiting.delete(said.id);
        answer(said);
      }
      this.tell(said.op, said);
      return;
    }
    const length = new DataView(data).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
    let at = 4 + length;
    head.parts = head.sizes.map((size) => {
      const part = { buffer: data, offset: at, size };
      at += size + ((4 - (size % 4)) % 4);
      return part;
    });
    this.tell(head.op, head);
  }

  tell(op, said) {
    this.dispatchEvent(new CustomEvent(op, { detail: said }));
  }

  on(op, callback) {
    this.addEventListener(op, (event) => callback(event.detail));
  }

  // Says something; gives false while nobody hears it.
  say(op, values = {}) {
    if (!this.open || this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify({ op, ...values }));
    return true;
  }

  // Says something and waits for its answer, which is {op: "refused", what} if it cannot be done.
  ask(op, values = {}) {
    this.number += 1;
    const id = this.number;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      if (!this.say(op, { ...values, id })) {
        this.waiting.delete(id);
        resolve({ op: "refused", what: "the connection is lost" });
      }
    });
  }
}

export const floats = (part) => new Float32Array(part.buffer, part.offset, part.size / 4);
export const bytes = (part) => new Uint8Array(part.buffer, part.offset, part.size);
export const signed = (part) => new Int8Array(part.buffer, part.offset, part.size);
