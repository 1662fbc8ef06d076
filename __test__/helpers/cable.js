// A cable between this machine and a process: a network namespace, whose device hangs on a bridge until it is taken off. Unlike that
// of a proxy, nobody's kernel answers for whoever is cut off.

const { execFileSync } = require('node:child_process');

const run = (command, ...args) => execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const ip = (line) => run('ip', ...line.split(' '));

let last = 0;

/** `{ address, exec, cut(), heal(), remove() }`: the address of this machine, and what runs a program at the other end. */
exports.layCable = () => {
  last += 1;
  const id = `sb${process.pid % 100_000}x${last}`;
  const net = `10.${(process.pid % 200) + 20}.${last}`;
  const cable = {
    address: `${net}.1`,
    exec: ['netns', 'exec', id],
    cut: () => ip(`link set ${id}a nomaster`),
    heal: () => ip(`link set ${id}a master ${id}`),
    remove() {
      // The process at its other end may live a little longer.
      for (const line of [`netns del ${id}`, `link del ${id}a`, `link del ${id}`]) {
        try {
          ip(line);
        } catch {
          // It was not made.
        }
      }
    },
  };
  try {
    for (const line of [
      `netns add ${id}`,
      `link add ${id} type bridge`,
      `addr add ${net}.1/24 dev ${id}`,
      `link set ${id} up`,
      `link add ${id}a type veth peer name ${id}b`,
      `link set ${id}a master ${id}`,
      `link set ${id}a up`,
      `link set ${id}b netns ${id}`,
      `netns exec ${id} ip addr add ${net}.2/24 dev ${id}b`,
      `netns exec ${id} ip link set ${id}b up`,
    ]) {
      ip(line);
    }
  } catch (error) {
    cable.remove();
    throw error;
  }
  return cable;
};

/** Why there can be no cable here; false if there can. */
exports.noCable = () => {
  if (process.platform !== 'linux') return 'there are no network namespaces here';
  if (process.getuid() !== 0) return 'only root makes network namespaces';
  try {
    exports.layCable().remove();
    return false;
  } catch ({ message }) {
    return `no network namespace can be made here: ${message.trim().split('\n').at(-1)}`;
  }
};
