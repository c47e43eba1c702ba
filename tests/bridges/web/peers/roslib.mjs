// A client of roslib: node roslib.mjs URL
import * as ROSLIB from "roslib";

const ros = new ROSLIB.Ros({ url: process.argv[2] });
const said = (what, value) => console.log(JSON.stringify({ what, value }));
ros.on("error", (error) => said("error", String(error)));
ros.on("connection", () => {
  ros.getTopics((found) => said("topics", found.topics), (why) => said("error", why));
  ros.getNodes((found) => said("nodes", found), (why) => said("error", why));
  new ROSLIB.Topic({ ros, name: "/plan", messageType: "std_msgs/String" }).subscribe((m) => said("plan", m.data));
  const command = new ROSLIB.Topic({ ros, name: "/cmd_vel", messageType: "geometry_msgs/Twist" });
  command.publish({ linear: { x: 0.7, y: 0, z: 0 }, angular: { x: 0, y: 0, z: 0 } });
  new ROSLIB.Service({ ros, name: "/ring", serviceType: "std_srvs/SetBool" })
    .callService({ data: true }, (answer) => said("ring", answer), (why) => said("error", why));
  const gain = new ROSLIB.Param({ ros, name: "/wheels:gain" });
  gain.get((value) => {
    said("gain", value);
    gain.set(4.0, () => gain.get((after) => said("gain after", after)));
  });
  const action = new ROSLIB.Action({ ros, name: "/count", actionType: "example_interfaces/Fibonacci" });
  const told = [];
  action.sendGoal({ order: 3 }, (result) => {
    said("result", result);
    said("feedback", told);
    setTimeout(() => process.exit(0), 500);
  }, (feedback) => told.push(feedback), (why) => said("error", why));
});
