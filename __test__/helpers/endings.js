// The ways in which a puppet's thread can end; each resolves once the thread is gone.

const endings = [
  { name: 'normal exit', end: (puppet) => puppet.call('end') },
  { name: 'an uncaught error', end: (puppet) => puppet.call('throw') },
  { name: 'process.exit()', end: (puppet) => puppet.call('exit', 0) },
  { name: 'terminate()', end: (puppet) => puppet.terminate() },
  {
    name: 'its resource limits',
    end: (puppet) => puppet.call('exhaust'),
    options: { resourceLimits: { maxOldGenerationSizeMb: 12 } },
    needs: ['resource limits'],
  },
];

exports.endings = endings.map(({ name, end, options, needs = [] }) => ({
  name,
  options,
  needs,
  end(puppet) {
    Promise.resolve(end(puppet)).catch(() => {}); // the thread does not live to answer
    return puppet.exited;
  },
}));
