// A client of @foxglove/ws-protocol: node foxglove.mjs URL
import WebSocket from "ws";
import protocol from "@foxglove/ws-protocol";
const { FoxgloveClient } = protocol;

const socket = new WebSocket(process.argv[2], [FoxgloveClient.SUPPORTED_SUBPROTOCOL]);
const client = new FoxgloveClient({ ws: socket });
const said = (what, value) => console.log(JSON.stringify({ what, value }));
const channels = new Map();
client.on("error", (error) => said("error", String(error)));
client.on("serverInfo", (info) => said("capabilities", info.capabilities));
client.on("advertise", (offered) => {
  for (const channel of offered) channels.set(channel.topic, channel);
  if (!channels.has("/speed") || client.subscribed) return;
  client.subscribed = true;
  said("schema", channels.get("/speed").schemaName);
  client.subscribe(channels.get("/speed").id);
  const number = client.advertise({ topic: "/cmd_vel", encoding: "json", schemaName: "geometry_msgs/Twist" });
  client.sendMessage(number, new TextEncoder().encode(JSON.stringify({ linear: { x: 0.5, y: 0, z: 0 } })));
  client.getParameters(["/wheels.gain"], "p");
});
client.on("parameterValues", ({ parameters }) => said("parameters", parameters));
client.on("advertiseServices", (offered) => {
  const ring = offered.find((service) => service.name === "/ring");
  if (ring == undefined) return;
  const data = new Uint8Array([0, 1, 0, 0, 1]);
  client.sendServiceCallRequest({ serviceId: ring.id, callId: 1, encoding: "cdr", data: new DataView(data.buffer) });
});
client.on("serviceCallResponse", (answer) =>
  said("ring", Buffer.from(answer.data.buffer, answer.data.byteOffset, answer.data.byteLength).toString("latin1")));
client.on("time", ({ timestamp }) => {
  if (!client.told) { client.told = true; said("time", Number(timestamp)); }
});
let count = 0;
client.on("message", ({ data }) => {
  count += 1;
  if (count === 20) { said("speed", data.getFloat64(4, true)); setTimeout(() => process.exit(0), 500); }
});
