#!/usr/bin/env node
// `npx sablock`: one command for each thing that is asked for in a shell.

const { inspect } = require('node:util');
const { MISUSED, print } = require('./output.js');

const USAGE = `Usage: sablock <command>

  doctor [node options] program.js [arguments]
      Runs a program with the lock doctor in all of its threads. If something
      hangs or could deadlock, a report is printed to stderr; kill -USR2 <pid>
      prints it at any time, Ctrl-C at the end.

  run NAME [options] [--] command [arguments]
      Runs a command while it holds the lock of this name of the machine.
      --shared          holds it with others who share it
      --timeout 5s      waits no longer (ms, s, m); exits with 1 then
      --if-available    does not wait; exits with 1 if it is held
      --directory PATH  the directory of the locks
      --mark-consistent takes off the mark that a holder has ended inside, if the
                        command ends with 0. It has SABLOCK_ABANDONED=1 then

  locks [directory] [--json]
      Prints who holds the locks of the machine, and which are marked, because a
      holder has ended inside.

  clean [directory] [--marks]
      Removes the files of names that have not been used for a day; of those that
      are marked only with --marks.

  --help, --version
`;

const COMMANDS = {
  clean: () => require('./clean.js'),
  doctor: () => require('./doctor.js'),
  locks: () => require('./locks.js'),
  run: () => require('./run.js'),
};

function main([command, ...args]) {
  if (command === '--help' || command === '-h' || args[0] === '--help') {
    print(USAGE);
  } else if (command === '--version' || command === '-v') {
    print(`${require('../../package.json').version}\n`);
  } else if (Object.hasOwn(COMMANDS, command ?? '')) {
    COMMANDS[command]()(args);
  } else {
    const unknown = command === undefined ? '' : `sablock: There is no command ${inspect(command)}.\n\n`;
    process.stderr.write(unknown + USAGE);
    process.exitCode = MISUSED;
  }
}

main(process.argv.slice(2));
