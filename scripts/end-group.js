// A program that may hang is begun as a group of its own (`detached`), and ends with whatever it has started: that may be busy for
// ever, or be stopped, with the program's output open.

exports.endGroup = (leader) => {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    // The group has ended.
    if (error.code !== 'ESRCH') throw error;
  }
};
